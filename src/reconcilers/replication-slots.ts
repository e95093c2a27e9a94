/**
 * Records the logical replication slots of servers that are awake, and says so when one is lost: its subscriber cannot
 * continue, and must be set up again.
 */
import { computeRef } from '../core/endpoint.ts';
import { markSleepingSlotsInactive, updateReplicationSlots } from '../db/branches.ts';
import { type Publisher, selectPublishers } from '../db/endpoints.ts';
import type { ReplicationSlot } from '../lib/model.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const replicationSlots = makeReconciler('replication-slots', 5_000, async (parts) => {
  const { sql } = parts.core.database;
  await markSleepingSlotsInactive(sql);
  const publishers = await selectPublishers(sql);
  return publishers.map((publisher) => ({ subject: publisher.id, work: () => record(parts, publisher) }));
});

async function record({ core, driver, log }: ReconcilerParts, publisher: Publisher): Promise<void> {
  const { id, branchId, replicationSlots: known } = publisher;
  const seen = await driver.observeSlots(computeRef(publisher));
  if (seen === null || JSON.stringify(seen) === JSON.stringify(known?.map(inOrder))) return;
  await updateReplicationSlots(core.database.sql, branchId, seen);
  const lostBefore = new Set(known?.filter(isLost).map(({ name }) => name));
  for (const { name } of seen.filter((slot) => isLost(slot) && !lostBefore.has(slot.name))) {
    log.warn(
      { endpoint: id, branch: branchId, slot: name },
      'a replication slot is lost: its subscriber must start anew',
    );
  }
}

const isLost = ({ walStatus }: ReplicationSlot) => walStatus === 'lost';

/** JSON of the database has keys in an order of its own. */
const inOrder = ({ name, plugin, database, active, walStatus, retainedBytes }: ReplicationSlot) => ({
  name,
  plugin,
  database,
  active,
  walStatus,
  retainedBytes,
});
