/** Which endpoints have a server, and what the driver must know to reach it. Changes nothing. */
import { asEndpointId, asProjectId } from '../../../../lib/ids.ts';
import type { EndpointRef, HostedCompute } from '../../channel/host-calls.ts';
import { dataDirectory, type Layout, socketFile } from '../home/layout.ts';
import { readEndpointRecord, readFirstSecret } from '../home/records.ts';
import { dataHome } from '../home/server-data.ts';
import { idsIn, type TenantDirectories } from '../home/tenant-directories.ts';
import { findHolder } from '../postgres/holder.ts';

/** Null for an endpoint that never started here. */
export async function inspectCompute(layout: Layout, ref: EndpointRef): Promise<HostedCompute | null> {
  const { projectId, endpointId } = ref;
  const record = await readEndpointRecord(layout.endpoint(projectId, endpointId));
  if (!record) return null;
  const { branchId, generation, adminSecret, readOnly = false } = record;
  const home = dataHome(layout, { ...ref, branchId, readOnly });
  const holder = await findHolder(dataDirectory(home), ref.tenantUid);
  const own = holder?.endpointId === endpointId ? holder : null;
  return {
    endpointId,
    projectId,
    branchId,
    adminSecret,
    readOnly,
    seenGeneration: generation,
    process: own && {
      pid: own.pid,
      generation: own.generation,
      ready: own.ready,
      release: own.release,
      isEnforced: own.isEnforced,
    },
    socketPath: socketFile(layout.socketDirectory(endpointId)),
    firstSecret: await readFirstSecret(home),
  };
}

/** Every endpoint that has a process. */
export async function listComputes(layout: Layout, tenants: TenantDirectories): Promise<HostedCompute[]> {
  const found: HostedCompute[] = [];
  for (const projectId of (await idsIn(layout.projects)).map(asProjectId)) {
    const tenantUid = await tenants.recordedUid(projectId);
    for (const endpointId of (await idsIn(layout.endpoints(projectId))).map(asEndpointId)) {
      const compute = await inspectCompute(layout, { projectId, endpointId, tenantUid });
      if (compute?.process) found.push(compute);
    }
  }
  return found;
}

/** Any server of this home that is in a control group, to find where an earlier Catnap made its groups. */
export async function findEnforcedServer(layout: Layout, tenants: TenantDirectories): Promise<number | null> {
  const found = await listComputes(layout, tenants);
  return found.find(({ process }) => process?.isEnforced)?.process?.pid ?? null;
}
