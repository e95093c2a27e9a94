/**
 * Removes the data of a branch, or replaces it by renames: the old directory moves away, and the staged one takes its
 * name. While the staged directory exists the replacement is unfinished, so the next call completes one that was cut
 * off anywhere, and a late call finds nothing to do.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asEndpointId } from '../../../../lib/ids.ts';
import type { KeyedLock } from '../../../../lib/keyed-lock.ts';
import type { BranchRef, BranchReplacement } from '../../../interface/driver.ts';
import { historySlot } from '../../../interface/own-logins.ts';
import type { EndpointRef } from '../../channel/host-calls.ts';
import type { Cgroups } from '../cgroups/compute-groups.ts';
import { renameDurably } from '../copy/tree.ts';
import { diskLocationOf, type TemporaryDisks } from '../disks/temporary.ts';
import { dataDirectory, type Layout } from '../home/layout.ts';
import { branchLock, endpointLock } from '../home/lock-names.ts';
import { type BranchRecord, readBranchRecord, readEndpointRecord, writeBranchRecord } from '../home/records.ts';
import { type DataRef, dataDirectoryOf } from '../home/server-data.ts';
import { discard, idsIn, type TenantDirectories } from '../home/tenant-directories.ts';
import { findHolder } from '../postgres/holder.ts';
import { stopPostmaster } from '../postgres/postmaster.ts';
import { removeSlotDirectory } from './backup-files.ts';
import { removeUnfinished } from './create.ts';

export interface BranchDataParts {
  readonly layout: Layout;
  readonly tenants: TenantDirectories;
  readonly locks: KeyedLock;
  readonly disks: TemporaryDisks;
  readonly cgroups: Cgroups;
}

export async function removeBranchData(parts: BranchDataParts, ref: BranchRef): Promise<void> {
  const { layout, locks, tenants } = parts;
  await tenants.check(ref);
  await locks.exclusive(branchLock(ref), async () => {
    await stopServer(parts, ref);
    const home = layout.branch(ref.projectId, ref.branchId);
    const record = await readBranchRecord(home);
    // The data goes last of what only its name leads to: a removal of the whole project goes by what is there.
    await discard(layout.replicationDirectory(ref.branchId), layout);
    await discard(home, layout);
    await discardPast(layout, ref, record);
    await removeUnfinished(layout.branches(ref.projectId), ref.branchId);
  });
}

/** Drops a replica's slot from a branch that is asleep. */
export async function removeSlotOf({ layout, locks }: BranchDataParts, ref: BranchRef, slot: string): Promise<void> {
  const { projectId, branchId, tenantUid } = ref;
  const data = dataDirectoryOf(layout, { projectId, branchId, tenantUid });
  await locks.exclusive(branchLock(ref), async () => {
    if (await findHolder(data, tenantUid)) throw new Error(`branch ${branchId} is not asleep`);
    await removeSlotDirectory(data, slot, layout);
  });
}

export async function replaceBranchData(parts: BranchDataParts, ref: BranchRef, by: BranchReplacement): Promise<void> {
  await parts.tenants.check(ref);
  if (!(await isStaged(parts, ref, by))) return;
  for (const endpointId of await idsIn(parts.layout.endpoints(ref.projectId))) {
    await discardReplica(parts, ref, { ...ref, endpointId: asEndpointId(endpointId) });
  }
  const involved = [ref.branchId, by.stagingId, ...(by.keepAs === null ? [] : [by.keepAs])];
  const keys = involved.map((branchId) => branchLock({ ...ref, branchId }));
  await parts.locks.exclusiveAll(keys, async () => {
    if (!(await isStaged(parts, ref, by))) return;
    await stopServer(parts, ref);
    await exchange(parts.layout, ref, by);
  });
}

/** False when the staged data has already become the branch's. */
async function isStaged(
  { layout }: BranchDataParts,
  ref: BranchRef,
  { stagingId }: BranchReplacement,
): Promise<boolean> {
  if (await readBranchRecord(layout.branch(ref.projectId, stagingId))) return true;
  if (await readBranchRecord(layout.branch(ref.projectId, ref.branchId))) return false;
  throw new Error(`branch ${ref.branchId} has no data`);
}

/** A replica of the old data has nothing to continue from. */
async function discardReplica(parts: BranchDataParts, ref: BranchRef, replica: EndpointRef): Promise<void> {
  const { layout, locks } = parts;
  await locks.exclusive(endpointLock(replica), async () => {
    const record = await readEndpointRecord(layout.endpoint(ref.projectId, replica.endpointId));
    if (record?.branchId !== ref.branchId || !record.readOnly) return;
    await stopServer(parts, { ...replica, branchId: ref.branchId, readOnly: true });
    await discard(layout.replica(ref.projectId, replica.endpointId), layout);
  });
}

/** Stops it whichever endpoint it belongs to: one just moved away or deleted may still run on the branch's data. */
async function stopServer({ layout, disks, cgroups }: BranchDataParts, ref: DataRef): Promise<void> {
  const data = dataDirectoryOf(layout, ref);
  const held = (await findHolder(data, ref.tenantUid))?.endpointId;
  if (held) await cgroups.release(held);
  await stopPostmaster(data, ref.tenantUid);
  if (!held) return;
  await cgroups.remove(held);
  await disks.detach(diskLocationOf(layout, { ...ref, endpointId: asEndpointId(held) }));
}

async function exchange(layout: Layout, { projectId, branchId }: BranchRef, by: BranchReplacement): Promise<void> {
  const home = layout.branch(projectId, branchId);
  const leaving = join(layout.trash, `${branchId}-${randomBytes(6).toString('hex')}`);
  const old = await readBranchRecord(home);
  if (old) {
    if (by.keepAs === null) {
      await rename(home, leaving);
    } else {
      await forgetReplicas(home, layout);
      await renameDurably(home, layout.branch(projectId, by.keepAs));
    }
  }
  await beginAnew(layout.branch(projectId, by.stagingId));
  await renameDurably(layout.branch(projectId, by.stagingId), home);
  if (by.keepAs === null) await discardPast(layout, { projectId }, old);
  // Last, because it may take long; what a killed Catnap leaves in the trash is removed at the next start.
  await rm(leaving, { recursive: true, force: true });
}

/** Until now the branch had other data, so this is the first moment that the staged data can give of it. */
async function beginAnew(staged: string): Promise<void> {
  const record = await readBranchRecord(staged);
  if (!record?.past) return;
  await writeBranchRecord(staged, { ...record, past: { ...record.past, madeAt: new Date().toISOString() } });
}

/** The past goes with the data; what a kill in between leaves is removed at the next start. */
async function discardPast(
  layout: Layout,
  { projectId }: Pick<BranchRef, 'projectId'>,
  record: BranchRecord | null,
): Promise<void> {
  if (record?.past) await discard(layout.history(projectId, record.past.historyId), layout);
}

/** Removes the slots of replicas that follow other data from now on: they would retain WAL here forever. */
async function forgetReplicas(home: string, layout: Layout): Promise<void> {
  const slots = join(dataDirectory(home), 'pg_replslot');
  const names = (await readdir(slots)).filter((name) => name !== historySlot);
  for (const name of names) await discard(join(slots, name), layout);
}
