/** Where the server of a pod takes connections: the pod itself, which answers before any Service leads to it. */
import type { ComputeAddress } from '../../../lib/model.ts';
import { serverContainer } from '../manifests/sizes.ts';
import type { Pod } from '../objects/kinds.ts';

/** As the operator names it in its pods. */
const serverPort = 'postgresql';

/** Null while the pod has no address, and for one that is on its way out. */
export function addressOf({ metadata, spec, status }: Pod): ComputeAddress | null {
  const container = spec.containers.find(({ name }) => name === serverContainer);
  const port = container?.ports?.find(({ name }) => name === serverPort)?.containerPort;
  if (status?.podIP === undefined || port === undefined || metadata.deletionTimestamp !== undefined) return null;
  return { kind: 'tcp', host: status.podIP, port };
}
