/** A double that listens, and clients of it. */
import type { ServerOptions } from 'node:https';
import type { ClusterAccess } from '../../../src/compute/kubernetes/client/access.ts';
import { KubernetesClient } from '../../../src/compute/kubernetes/client/client.ts';
import type { Patience } from '../../../src/compute/kubernetes/client/retries.ts';
import {
  clusters,
  pods,
  secrets,
  services,
  volumeClaims,
  volumeSnapshots,
} from '../../../src/compute/kubernetes/objects/kinds.ts';
import { ApiServerDouble } from './api-server.ts';

export interface OpenDouble {
  readonly double: ApiServerDouble;
  readonly server: URL;
  /** Without credentials, which the double does not ask for. */
  client(patience?: Patience): KubernetesClient;
  close(): Promise<void>;
}

/** Long enough for any machine, with pauses that a test need not notice. */
export const testPatience: Patience = { forMs: 150_000, firstPauseMs: 2, pauseMsMax: 20 };

export async function openDouble(options: { readonly tls?: ServerOptions } = {}): Promise<OpenDouble> {
  const double = new ApiServerDouble([clusters, pods, secrets, services, volumeClaims, volumeSnapshots], options);
  const server = await double.listen();
  const opened: KubernetesClient[] = [];
  const access: ClusterAccess = {
    server,
    namespace: double.namespace,
    authority: null,
    certificate: null,
    serverName: null,
    readToken: null,
  };
  return {
    double,
    server,
    client(patience = testPatience) {
      const client = new KubernetesClient(access, { patience });
      opened.push(client);
      return client;
    },
    async close() {
      for (const client of opened) client.close();
      await double.close();
    },
  };
}
