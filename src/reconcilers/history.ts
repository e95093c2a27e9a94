/**
 * Keeps the histories of branches: of those that are awake every few seconds, of one that fell asleep once more, and of
 * those that sleep now and then, so that they lose what is too old. The driver does the work; what it reports is
 * recorded. A turn reads the branches that have something to do and no others, however many there are.
 */
import type { HistoryPolicy } from '../compute/interface/driver.ts';
import { type KeptBranch, putHistoryOff, recordHistory, selectKeptBranches } from '../db/histories.ts';
import { delay, minuteMs } from '../lib/clock.ts';
import type { BranchId } from '../lib/ids.ts';
import type { BranchHistory } from '../lib/model.ts';
import { lsnBytes } from '../lib/moments.ts';
import { makeReconciler, type Reconciler, type ReconcilerParts } from './reconciler.ts';

const everyMs = 10_000;
const newEveryMs = 1_000;
/** Of a branch that sleeps: the smallest part of its window that is given up by itself, within bounds. */
const asleepPart = 1 / 100;
const asleepMsMin = 5 * minuteMs;
const asleepMsMax = 60 * minuteMs;
const failedAsleepMs = minuteMs;
/** What a branch that is awake may be behind before somebody is told. */
const behindMsMax = minuteMs;
/** How many are worked on at once, and after how long one that is slow no longer keeps others waiting. */
const lanes = 4;
const slowMs = 2_000;
/** After so much log in one turn the next one follows at once: a server keeps a bounded part of what was not copied. */
const muchLogBytes = 64 * 1024 ** 2;
/** A time alone is written this often, so that a branch that nobody writes to costs next to nothing. */
const sameAgainMs = 30_000;

interface Watched {
  /** When it was last brought up to date, first seen, or woken. */
  keptAt: number;
  isAwake: boolean;
  isUnderWay: boolean;
  /** What was told already, so that it is told once. */
  isBehind: boolean;
  isFailing: boolean;
}

/** Asks about new data once, so that its past is known before anybody looks for it; the other loop goes on with it. */
export function makeNewHistories(): Reconciler {
  const asked = new Set<string>();
  return makeReconciler('new histories', newEveryMs, async (parts) => {
    const found = await selectKeptBranches(parts.core.database.sql, { isNew: true });
    const keys = found.map(({ id, lastResetAt }) => `${id} ${lastResetAt?.getTime()}`);
    for (const key of asked) if (!keys.includes(key)) asked.delete(key);
    const fresh = found.filter((_, index) => !asked.has(keys[index] ?? ''));
    for (const key of keys) asked.add(key);
    return fresh.map((branch) => ({ subject: branch.id, work: () => keepOnce(parts, branch) }));
  });
}

async function keepOnce({ core, driver }: ReconcilerParts, branch: KeptBranch): Promise<void> {
  const { id: branchId, projectId, tenantUid, retentionSeconds } = branch;
  const kept = driver.keepHistory({ projectId, branchId, tenantUid }, { retentionSeconds });
  const history = await kept.catch(async (error: unknown) => {
    if (await isGone(core, branch)) return null;
    throw error;
  });
  if (history !== null) await recordHistory(core.database.sql, branch, history);
}

/** A branch that somebody removes meanwhile takes its files from under the copy, which is no failure. */
async function isGone({ database }: ReconcilerParts['core'], { projectId, id }: KeptBranch): Promise<boolean> {
  const kept = await selectKeptBranches(database.sql, { projectId });
  return kept.every((other) => other.id !== id);
}

export function makeHistory(timing: { readonly slowMs?: number } = {}): Reconciler {
  const watched = new Map<BranchId, Watched>();
  const turn = async (parts: ReconcilerParts) => {
    const dueAt = parts.core.clock.now();
    const now = dueAt.getTime();
    const branches = await selectKeptBranches(parts.core.database.sql, { dueAt });
    forget(watched, branches);
    const next = branches.filter(({ id }) => watched.get(id)?.isUnderWay !== true).values();
    const lane = async () => {
      for (const branch of next) {
        const work = keep(parts, branch, watch(watched, branch, now));
        await Promise.race([work, delay(timing.slowMs ?? slowMs)]);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    for (const branch of branches) tellIfBehind(parts, branch, watched.get(branch.id), now);
  };
  return { name: 'history', everyMs, turn };
}

/** One that fails is remembered while it sleeps, so that it is reported once. */
function forget(watched: Map<BranchId, Watched>, branches: readonly KeptBranch[]): void {
  const known = new Set(branches.map(({ id }) => id));
  for (const [id, { isFailing, isUnderWay }] of watched) {
    if (!known.has(id) && !isFailing && !isUnderWay) watched.delete(id);
  }
}

function watch(watched: Map<BranchId, Watched>, { id, isAwake }: KeptBranch, now: number): Watched {
  const flags = { isUnderWay: false, isBehind: false, isFailing: false };
  const seen = watched.get(id) ?? { keptAt: now, isAwake, ...flags };
  watched.set(id, seen);
  return seen;
}

/** Never rejects. */
async function keep(parts: ReconcilerParts, branch: KeptBranch, seen: Watched): Promise<void> {
  const { core, driver, log } = parts;
  const { id: branchId, projectId, tenantUid, retentionSeconds } = branch;
  const policy: HistoryPolicy = { retentionSeconds };
  seen.isUnderWay = true;
  let kept = branch.history;
  try {
    for (let isBehind = true; isBehind; ) {
      const history = await driver.keepHistory({ projectId, branchId, tenantUid }, policy);
      if (history !== null && !isSame(kept, history)) {
        await recordHistory(core.database.sql, branch, history);
        tellOfGaps(parts, { id: branchId, history: kept }, history);
      }
      Object.assign(seen, { keptAt: core.clock.now().getTime(), isFailing: false });
      isBehind = writtenBytes(kept, history) > muchLogBytes;
      kept = history;
    }
    await putOff(parts, branch, nextVisit(kept, retentionSeconds, core.clock.now().getTime()));
  } catch (error) {
    const isFailure = !(await isGone(core, branch).catch(() => false));
    if (isFailure && !seen.isFailing) {
      log.error({ err: error, branch: branchId }, 'the history of a branch could not be kept');
    }
    seen.isFailing = isFailure;
    await putOff(parts, branch, new Date(core.clock.now().getTime() + failedAsleepMs)).catch(() => undefined);
  } finally {
    seen.isUnderWay = false;
  }
}

/** When a branch that sleeps is visited next; null when all that it has must be kept for as long as it sleeps. */
function nextVisit(history: BranchHistory | null, retentionSeconds: number, now: number): Date | null {
  const windowMs = retentionSeconds * 1_000;
  const hasWindowLeft = history === null || (history.until !== null && Date.parse(history.until.at) > now - windowMs);
  return hasWindowLeft ? new Date(now + Math.min(asleepMsMax, Math.max(asleepMsMin, windowMs * asleepPart))) : null;
}

/** One that is awake stays due, and is kept once more when it has fallen asleep. */
async function putOff({ core }: ReconcilerParts, branch: KeptBranch, until: Date | null): Promise<void> {
  if (!branch.isAwake) await putHistoryOff(core.database.sql, branch, until);
}

function isSame(known: BranchHistory | null, seen: BranchHistory): boolean {
  if (known === null) return false;
  const gaps = ({ gaps: found }: BranchHistory) => found.map(({ from, until }) => `${from.lsn} ${until.lsn}`).join();
  const facts = (history: BranchHistory) =>
    [
      history.from?.lsn,
      history.until?.lsn,
      history.baseCount,
      history.baseBytes,
      history.logBytes,
      gaps(history),
    ].join();
  const elapsedMs = Date.parse(seen.until?.at ?? '') - Date.parse(known.until?.at ?? '');
  return facts(known) === facts(seen) && !(elapsedMs > sameAgainMs);
}

/** How much longer a history has become; 0 where that cannot be said. */
function writtenBytes(before: BranchHistory | null, after: BranchHistory | null): number {
  if (!before?.until || !after?.until) return 0;
  return Number(lsnBytes(after.until.lsn) - lsnBytes(before.until.lsn));
}

function tellOfGaps(
  { log }: ReconcilerParts,
  { id, history }: Pick<KeptBranch, 'id' | 'history'>,
  seen: BranchHistory,
): void {
  const known = new Set(history?.gaps.map(({ from }) => from.lsn));
  for (const { from, until } of seen.gaps.filter((gap) => !known.has(gap.from.lsn))) {
    log.warn({ branch: id, from, until }, 'the history of a branch has a gap: its moments cannot be given');
  }
}

function tellIfBehind({ log }: ReconcilerParts, branch: KeptBranch, seen: Watched | undefined, now: number): void {
  if (seen === undefined) return;
  if (branch.isAwake && !seen.isAwake) seen.keptAt = now;
  seen.isAwake = branch.isAwake;
  const behindMs = branch.isAwake && branch.retentionSeconds > 0 ? now - seen.keptAt : 0;
  const isBehind = behindMs > behindMsMax;
  if (isBehind && !seen.isBehind) {
    log.warn({ branch: branch.id, seconds: Math.round(behindMs / 1_000) }, 'the history of a branch is behind');
  }
  if (!isBehind && seen.isBehind) log.info({ branch: branch.id }, 'the history of a branch is up to date again');
  seen.isBehind = isBehind;
}
