/**
 * The driver's part of read replicas: the data of a hot standby, copied from the running primary like that of a branch,
 * and the removal of a replica, which must leave no slot behind: an unused slot retains WAL.
 */

import {
  type ComputeRef,
  type ComputeSpec,
  type ReplicaData,
  type ReplicaObservation,
  StaleGenerationError,
} from '../../interface/driver.ts';
import { slotName } from '../../interface/own-logins.ts';
import { adminLogin, type Session, withSession } from '../../server/admin-session.ts';
import { dropSlot, ensureReplicationRole, makeSlot, observeSlot } from '../../server/replication.ts';
import type { HostCalls, HostedCompute } from '../channel/host-calls.ts';
import { checkpointMsMax, cloneInSession } from './live-clone.ts';

/** Keeps the existing data if the replica can continue from it, otherwise copies the primary's. */
export async function buildReplica(host: HostCalls, spec: ComputeSpec, anew: boolean): Promise<ReplicaData> {
  const seen = (await host.inspect(spec))?.seenGeneration ?? 0;
  if (spec.generation < seen) throw new StaleGenerationError(spec.endpointId, spec.generation, seen);
  const hasData = !anew && (await host.hasReplica(spec));
  const primary = await host.findServer(spec);
  if (!primary) return hasData ? 'kept' : 'needs_primary';
  const slot = slotName(spec.endpointId);
  return inPrimary(primary, async (sql) => {
    await ensureReplicationRole(sql, primary.adminSecret);
    if (hasData && !(await observeSlot(sql, slot)).lost) return 'kept';
    const { projectId, tenantUid, branchId, pgVersion, endpointId, generation } = spec;
    const replica = { endpointId, generation };
    await host.claimReplica(spec);
    await makeSlot(sql, slot);
    await cloneInSession(sql, host, { projectId, tenantUid, branchId, pgVersion, sourceId: branchId, replica });
    return 'built';
  });
}

export async function observeReplica(host: HostCalls, ref: ComputeRef): Promise<ReplicaObservation | null> {
  const primary = await host.findServer(ref);
  if (!primary?.process?.ready) return null;
  return inPrimary(primary, (sql) => observeSlot(sql, slotName(ref.endpointId)));
}

/** While the primary is asleep a slot is only a directory, which the host removes. */
export async function removeReplicaSlot(host: HostCalls, ref: ComputeRef): Promise<void> {
  const primary = await host.findServer(ref);
  if (primary) await inPrimary(primary, (sql) => dropSlot(sql, slotName(ref.endpointId)));
  else await host.removeSlot(ref, slotName(ref.endpointId));
}

async function inPrimary<T>(primary: HostedCompute, work: (sql: Session) => Promise<T>): Promise<T> {
  if (!primary.process?.ready || primary.firstSecret !== null) {
    throw new Error(`the primary ${primary.endpointId} does not answer yet`);
  }
  const address = { kind: 'unix', path: primary.socketPath } as const;
  return withSession(address, adminLogin(primary.adminSecret), work, { statementMs: checkpointMsMax });
}
