/** Takes the snapshots that schedules of branches ask for. */
import { commandScope } from '../core/context.ts';
import { takeDueSnapshot } from '../core/snapshot-schedule.ts';
import { selectDueSchedules } from '../db/snapshot-schedules.ts';
import { makeReconciler } from './reconciler.ts';

export const snapshotSchedules = makeReconciler('snapshot-schedules', 10_000, async ({ core }) => {
  const due = await selectDueSchedules(core.database.sql, core.clock.now());
  return due.map((address) => ({
    subject: address.branchId,
    work: () => core.database.transaction((tx) => takeDueSnapshot(commandScope(core, tx), address)),
  }));
});
