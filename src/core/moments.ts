/**
 * Which history gives a moment of a branch: its own, or that of an ancestor for a moment before its data began. Decided
 * from what drivers last reported, so that a caller learns at once what cannot be given; the driver has the last word.
 */
import { type BranchRow, selectBranchInAnyState } from '../db/branches.ts';
import { type HistoryTotals, sumHistories } from '../db/histories.ts';
import { selectProjectInAnyState } from '../db/projects.ts';
import { CatnapError, invalid } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import type { BranchHistory } from '../lib/model.ts';
import { isLsn, type LogPosition, lsnBytes, type Moment, readTime } from '../lib/moments.ts';
import { type Caller, requireBranch, requireProject } from './access.ts';
import type { Scope } from './context.ts';

export interface MomentInput {
  readonly lsn?: string | undefined;
  readonly timestamp?: string | undefined;
}

/** What messages call the two, as in `body.branch.parent_lsn`. */
export interface MomentFields {
  readonly lsn: string;
  readonly timestamp: string;
}

export interface ResolvedMoment {
  /** The branch whose history gives it. */
  readonly branchId: BranchId;
  readonly moment: Moment;
}

/** The times between which a branch can give moments, gaps aside; those of its ancestors included. */
export interface HistoryWindow {
  readonly from: Date;
  readonly until: Date;
}

type Past = Pick<BranchRow, 'parentId' | 'parentTimestamp' | 'parentLsn' | 'initSource'>;

/** Positions are reported every few seconds; no server writes more than this in between. */
const writtenSinceReportMax = 64n * 1024n ** 3n;

export const isMomentGiven = ({ lsn, timestamp }: MomentInput) => lsn !== undefined || timestamp !== undefined;

/** The caller has checked that the branch may be seen. */
export async function resolveMoment(
  scope: Scope,
  branch: BranchRow,
  input: MomentInput,
  fields: MomentFields,
): Promise<ResolvedMoment> {
  const moment = readMoment(scope, input, fields);
  const field = moment.kind === 'lsn' ? fields.lsn : fields.timestamp;
  const retentionSeconds = await retentionOf(scope, branch);
  if (retentionSeconds === 0) {
    throw refused(`${field} cannot be given: history_retention_seconds of the project is 0, so no history is kept`);
  }
  const outside = async () => {
    const window = await historyWindow(scope, branch);
    return refused(`${field} is outside the history of the branch ${branch.name}, ${windowText(branch, window)}`);
  };
  const oldest = scope.clock.now().getTime() - retentionSeconds * 1_000;
  if (moment.kind === 'time' && Date.parse(moment.at) < oldest) throw await outside();
  const owner = await ownerOf(scope, branch, moment, field);
  if (owner.history === null && owner.currentState === 'ready') {
    if (owner.parentId === null && moment.kind === 'time' && Date.parse(moment.at) < owner.createdAt.getTime()) {
      const madeAt = owner.createdAt.toISOString();
      throw refused(`${field} cannot be given: the branch ${owner.name} was made at ${madeAt}`);
    }
    // Nobody has asked about data that was just made; the driver finds out what it can give.
    return { branchId: owner.id, moment };
  }
  if (owner.history?.from == null || owner.history.until === null) {
    throw refused(`${field} cannot be given: the branch ${owner.name} has no history yet, try again in a minute`);
  }
  if (!reaches(owner.history, moment)) {
    const parted = whileCopied(owner, owner.history.from, moment);
    if (parted === null) throw beforeOwn(owner, owner.history.from, moment, field) ?? (await outside());
    return resolveMoment(scope, owner, parted, fields);
  }
  const gap = owner.history.gaps.find(({ from, until }) => compare(moment, from) > 0 && compare(moment, until) < 0);
  if (gap !== undefined) {
    throw refused(`${field} is in a gap of the history: nothing between ${spanText(gap.from, gap.until)} can be given`);
  }
  return { branchId: owner.id, moment };
}

function readMoment(scope: Scope, { lsn, timestamp }: MomentInput, fields: MomentFields): Moment {
  if (lsn !== undefined && timestamp !== undefined) {
    throw invalid(`invalid request: ${fields.lsn} and ${fields.timestamp} exclude each other: leave one of them out`);
  }
  if (lsn !== undefined) {
    if (isLsn(lsn)) return { kind: 'lsn', lsn };
    throw invalid(`invalid request: ${fields.lsn} must be a position in the log, such as 0/1DE2850`);
  }
  if (timestamp === undefined) {
    throw invalid(`invalid request: ${fields.lsn} or ${fields.timestamp} is required`);
  }
  const at = readTime(timestamp);
  if (at === null) {
    throw invalid(`invalid request: ${fields.timestamp} must be a time such as 2026-01-31T12:00:00Z`);
  }
  if (Date.parse(at) > scope.clock.now().getTime()) throw refused(`${fields.timestamp} must not be in the future`);
  return { kind: 'time', at };
}

async function retentionOf({ sql }: Scope, { projectId }: BranchRow): Promise<number> {
  return (await selectProjectInAnyState(sql, projectId))?.historyRetentionSeconds ?? 0;
}

/** Parents form no circle, so the walk ends. */
async function ownerOf(scope: Scope, branch: BranchRow, moment: Moment, field: string): Promise<BranchRow> {
  let owner = branch;
  while (isBefore(moment, owner)) {
    const parent = owner.parentId === null ? undefined : await selectBranchInAnyState(scope.sql, owner.parentId);
    if (parent === undefined || parent.deletingAt !== null) {
      throw refused(`${field} is before the branch ${owner.name} began, and its parent is deleted`);
    }
    owner = parent;
  }
  return owner;
}

/** Before the branch's data parted from its parent's. The tables of a schema-only branch were never its parent's. */
function isBefore(moment: Moment, { parentId, parentTimestamp, parentLsn, initSource }: Past): boolean {
  if (parentId === null || initSource === 'schema-only') return false;
  if (moment.kind === 'time') return parentTimestamp !== null && Date.parse(moment.at) <= parentTimestamp.getTime();
  return parentLsn !== null && lsnBytes(moment.lsn) <= lsnBytes(parentLsn);
}

function reaches({ from, until }: BranchHistory, moment: Moment): boolean {
  if (from === null || until === null || compare(moment, from) < 0) return false;
  // The driver brings the history up to now before it gives a moment of it.
  return moment.kind === 'time' || lsnBytes(moment.lsn) <= lsnBytes(until.lsn) + writtenSinceReportMax;
}

/**
 * While its data was copied, a new branch held what its parent did at the point where the two parted. A branch that was
 * restored had other data then.
 */
function whileCopied(branch: BranchRow, from: LogPosition, moment: Moment): MomentInput | null {
  const { parentId, parentLsn, initSource, lastResetAt } = branch;
  if (parentId === null || parentLsn === null || initSource === 'schema-only' || lastResetAt !== null) return null;
  return moment.kind === 'time' && compare(moment, from) < 0 ? { lsn: parentLsn } : null;
}

/** Of a branch that was restored, nothing is known between the copy of its source and the exchange of its data. */
function beforeOwn(branch: BranchRow, from: LogPosition, moment: Moment, field: string): CatnapError | null {
  const { parentId, parentTimestamp, initSource } = branch;
  if (parentId === null || parentTimestamp === null || initSource === 'schema-only') return null;
  if (compare(moment, from) >= 0) return null;
  const parted = `parted from its parent at ${parentTimestamp.toISOString()} (${branch.parentLsn ?? 'LSN unknown'})`;
  const own = `its own history begins at ${from.at} (${from.lsn})`;
  return refused(`${field} cannot be given: the branch ${branch.name} ${parted}, and ${own}`);
}

function compare(moment: Moment, position: LogPosition): number {
  const [a, b] =
    moment.kind === 'time'
      ? [BigInt(Date.parse(moment.at)), BigInt(Date.parse(position.at))]
      : [lsnBytes(moment.lsn), lsnBytes(position.lsn)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Null when there is no history at all. */
export async function historyWindow(scope: Scope, branch: BranchRow): Promise<HistoryWindow | null> {
  const retentionMs = (await retentionOf(scope, branch)) * 1_000;
  const { from, until } = branch.history ?? {};
  if (retentionMs === 0 || !from || !until) return null;
  const now = scope.clock.now().getTime();
  let begins = Date.parse(from.at);
  let child: Past = branch;
  while (child.parentId !== null && child.parentTimestamp !== null && child.initSource !== 'schema-only') {
    const parent = await selectBranchInAnyState(scope.sql, child.parentId);
    const first = parent?.deletingAt === null ? parent.history?.from : undefined;
    if (parent === undefined || !first || Date.parse(first.at) > child.parentTimestamp.getTime()) break;
    begins = Math.min(begins, Date.parse(first.at));
    child = parent;
  }
  return {
    from: new Date(Math.max(begins, now - retentionMs)),
    until: new Date(Math.max(begins, Date.parse(until.at))),
  };
}

function windowText({ history, createdAt }: BranchRow, window: HistoryWindow | null): string {
  if (window === null || !history?.from || !history.until)
    return `which begins with the branch, at ${createdAt.toISOString()}`;
  const lsns = `by LSN from ${history.from.lsn} to ${history.until.lsn}`;
  return `which reaches from ${window.from.toISOString()} to ${window.until.toISOString()}, ${lsns}`;
}

const spanText = (from: LogPosition, until: LogPosition) => `${from.at} (${from.lsn}) and ${until.at} (${until.lsn})`;

const refused = (message: string) => new CatnapError('unprocessable', message);

export interface KeptHistory {
  readonly history: BranchHistory | null;
  readonly window: HistoryWindow | null;
  readonly retentionSeconds: number;
}

export async function getBranchHistory(
  scope: Scope,
  caller: Caller,
  { projectId, branchId }: { readonly projectId: ProjectId; readonly branchId: BranchId },
): Promise<KeptHistory> {
  const { historyRetentionSeconds: retentionSeconds } = await requireProject(scope, caller, projectId);
  const branch = await requireBranch(scope, projectId, branchId);
  return { history: branch.history, window: await historyWindow(scope, branch), retentionSeconds };
}

/** A history that is further behind than this is a reason to look. */
const behindSeconds = 60;

export const readHistoryTotals = ({ sql }: Scope): Promise<HistoryTotals> => sumHistories(sql, behindSeconds);
export type { HistoryTotals };
