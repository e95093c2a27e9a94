/** Closes looks into the past: those that nobody uses any more, that have lost their server or their branch. */
import { commandScope } from '../core/context.ts';
import { queueLookClosing } from '../core/look.ts';
import { deleteRefusedLooks, type OpenLook, selectLook, selectOpenLooks, touchLook } from '../db/looks.ts';
import { lockProjectInAnyState } from '../db/projects.ts';
import { makeReconciler, type ReconcilerParts } from './reconciler.ts';

export const looks = makeReconciler('looks', 2_000, async (parts) => {
  const { core } = parts;
  const open = await selectOpenLooks(core.database.sql);
  const unused = unusedSince(parts);
  return [
    { subject: 'refused looks', work: () => deleteRefusedLooks(core.database.sql, unused) },
    ...open.map((look) => ({ subject: look.id, work: () => closeIfDue(parts, look) })),
  ];
});

const unusedSince = ({ core }: ReconcilerParts) =>
  new Date(core.clock.now().getTime() - core.config.lookIdleSeconds * 1_000);

async function closeIfDue(parts: ReconcilerParts, look: OpenLook): Promise<void> {
  const { core, driver, log } = parts;
  const { id, projectId, tenantUid } = look;
  const ref = { projectId, tenantUid, branchId: look.dataId, endpointId: id };
  const isLost = (await driver.observe(ref)).state === 'absent';
  const isFinal = look.isOrphan || isLost;
  const isUnused = (lastActive: Date) => lastActive <= unusedSince(parts);
  if (!isFinal) {
    if (!isUnused(look.lastActive)) return;
    const { work } = await driver.observeWork(ref);
    if (work !== null) return touchLook(core.database.sql, id, core.clock.now());
  }
  await core.database.transaction(async (tx) => {
    await lockProjectInAnyState(tx, projectId);
    // A client may have come meanwhile.
    const now = await selectLook(tx, id);
    if (now?.state !== 'open' || (!isFinal && !isUnused(now.lastActive))) return;
    log.info({ look: id, isOrphan: look.isOrphan, isLost }, 'a look into the past is closed');
    await queueLookClosing(commandScope(core, tx), now);
  });
}
