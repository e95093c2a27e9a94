/** Stops a compute's server and removes what it had beside its data. The caller holds the locks. */
import type { EndpointRef } from '../../channel/host-calls.ts';
import { type DiskLocation, diskLocationOf } from '../disks/temporary.ts';
import { dataDirectory } from '../home/layout.ts';
import type { EndpointRecord } from '../home/records.ts';
import { dataHome } from '../home/server-data.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { findHolder } from '../postgres/holder.ts';
import { stopPostmaster } from '../postgres/postmaster.ts';
import { noteRelationCaches } from '../postgres/relation-caches.ts';
import type { ServerParts } from './start.ts';

/** Returns the WAL position of the shutdown record; null when the server did not run, or did not end cleanly. */
export async function stopServer(
  { layout, cgroups }: ServerParts,
  ref: EndpointRef,
  { branchId, readOnly }: EndpointRecord,
  removeDisk: (location: DiskLocation) => Promise<void>,
): Promise<string | null> {
  const { endpointId, tenantUid } = ref;
  const on = { ...ref, branchId, readOnly };
  const home = dataHome(layout, on);
  const data = dataDirectory(home);
  const holder = await findHolder(data, tenantUid);
  const own = holder?.endpointId === endpointId ? holder : null;
  if (own !== null) {
    // It begins to stop while its limit is being lifted.
    const [stopped, released] = await Promise.allSettled([
      stopPostmaster(data, tenantUid),
      cgroups.release(endpointId),
    ]);
    for (const end of [stopped, released]) if (end.status === 'rejected') throw end.reason;
  }
  await cgroups.remove(endpointId);
  await removeDisk(diskLocationOf(layout, on));
  const control = own === null ? null : await readControlFile(data).catch(() => null);
  if (!control?.shutDown) return null;
  const { checkpointLsn } = control;
  noteRelationCaches(home, { checkpointLsn, release: own?.release ?? '' });
  return checkpointLsn;
}
