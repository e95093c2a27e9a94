/**
 * The schedule by which snapshots of a branch are made. All times are UTC. What was missed while Catnap was down is
 * made up for by one snapshot, and what is due at the same time is one snapshot, kept for the longest of their times.
 */
import { selectBranch } from '../db/branches.ts';
import { lockProject } from '../db/projects.ts';
import {
  deleteSchedule,
  type ScheduleItem,
  type ScheduleRow,
  selectSchedule,
  updateScheduleTurn,
  upsertSchedule,
} from '../db/snapshot-schedules.ts';
import { CatnapError, invalid } from '../lib/errors.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { type Caller, requireBranch, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';
import { queueSnapshot } from './snapshot.ts';

export type { ScheduleItem };
export type Schedule = Pick<ScheduleRow, 'items' | 'error'> & { readonly nextAt: Date | null };

interface Address {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
}

export async function getSchedule(scope: Scope, caller: Caller, address: Address): Promise<Schedule> {
  await requireProject(scope, caller, address.projectId);
  const { id } = await requireBranch(scope, address.projectId, address.branchId);
  return (await selectSchedule(scope.sql, id)) ?? { items: [], error: null, nextAt: null };
}

/** An empty list removes the schedule; snapshots that it has made stay until their time is up. */
export async function setSchedule(
  scope: CommandScope,
  caller: Caller,
  address: Address,
  items: readonly ScheduleItem[],
): Promise<void> {
  await requireProjectLocked(scope, caller, address.projectId);
  const { id } = await requireBranch(scope, address.projectId, address.branchId);
  for (const [index, item] of items.entries()) requireItem(item, `body.schedule[${index}]`);
  const nextAt = nextOf(items, scope.clock.now());
  if (nextAt === null) await deleteSchedule(scope.tx, id);
  else await upsertSchedule(scope.tx, { branchId: id, items, nextAt });
}

/** Which of the fields mean something, and how far a day can go. */
const applicable: Readonly<Record<ScheduleItem['frequency'], Readonly<{ fields: readonly string[]; dayMax: number }>>> =
  {
    hourly: { fields: [], dayMax: 0 },
    daily: { fields: ['hour'], dayMax: 0 },
    weekly: { fields: ['hour', 'day'], dayMax: 7 },
    monthly: { fields: ['hour', 'day'], dayMax: 31 },
    yearly: { fields: ['hour', 'day', 'month'], dayMax: 31 },
  };

function requireItem(item: ScheduleItem, path: string): void {
  const { fields, dayMax } = applicable[item.frequency];
  for (const name of ['hour', 'day', 'month'] as const) {
    if (item[name] !== undefined && !fields.includes(name)) {
      throw invalid(`invalid request: ${path}.${name} must be left out: a snapshot is taken ${item.frequency}`);
    }
  }
  if ((item.day ?? 1) > dayMax && dayMax > 0) {
    throw invalid(`invalid request: ${path}.day must be 1 (Monday) to ${dayMax} (Sunday)`);
  }
}

/** The first time after `after` at which one of the items is due; null without items. */
export function nextOf(items: readonly ScheduleItem[], after: Date): Date | null {
  const times = items.map((item) => nextTime(item, after).getTime());
  return times.length === 0 ? null : new Date(Math.min(...times));
}

export function nextTime(item: ScheduleItem, after: Date): Date {
  for (let period = 0; ; period++) {
    const at = timeIn(item, after, period);
    if (at > after) return at;
  }
}

/** The time of an item in the hour, day, week, month or year of `of`, or in one after it. */
function timeIn({ frequency, hour = 0, day = 1, month = 1 }: ScheduleItem, of: Date, period: number): Date {
  const [year, thisMonth, today] = [of.getUTCFullYear(), of.getUTCMonth(), of.getUTCDate()];
  switch (frequency) {
    case 'hourly':
      return new Date(Date.UTC(year, thisMonth, today, of.getUTCHours() + period));
    case 'daily':
      return new Date(Date.UTC(year, thisMonth, today + period, hour));
    case 'weekly':
      return new Date(Date.UTC(year, thisMonth, today - ((of.getUTCDay() + 6) % 7) + day - 1 + 7 * period, hour));
    case 'monthly':
      return dayOfMonth(year, thisMonth + period, day, hour);
    case 'yearly':
      return dayOfMonth(year + period, month - 1, day, hour);
  }
}

/** A day that the month does not have is its last one. */
function dayOfMonth(year: number, month: number, day: number, hour: number): Date {
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(day, last), hour));
}

/** Takes the snapshot that is due, if it still is. */
export async function takeDueSnapshot(scope: CommandScope, { projectId, branchId }: Address): Promise<void> {
  const project = await lockProject(scope.tx, projectId);
  const branch = await selectBranch(scope.tx, projectId, branchId);
  const schedule = await selectSchedule(scope.tx, branchId);
  const now = scope.clock.now();
  if (project === undefined || branch === undefined || schedule === undefined || schedule.nextAt > now) return;
  const nextAt = nextOf(schedule.items, now) ?? now;
  try {
    const expiresAt = expiryOf(dueOf(schedule, now), now);
    await queueSnapshot(scope, project, branch, { manual: false, expiresAt });
    await updateScheduleTurn(scope.tx, branchId, { nextAt, error: null });
  } catch (error) {
    if (!(error instanceof CatnapError)) throw error;
    // What passes by itself, such as a restore of the branch, is waited for; the rest is shown until the next time.
    const postponed = error.facts.retryable ? schedule.nextAt : nextAt;
    await updateScheduleTurn(scope.tx, branchId, { nextAt: postponed, error: error.message });
  }
}

function dueOf({ items, nextAt }: ScheduleRow, now: Date): readonly ScheduleItem[] {
  const justBefore = new Date(nextAt.getTime() - 1);
  return items.filter((item) => nextTime(item, justBefore) <= now);
}

function expiryOf(due: readonly ScheduleItem[], now: Date): Date | null {
  const seconds = due.map((item) => item.retention_seconds ?? Number.POSITIVE_INFINITY);
  const longest = Math.max(...seconds);
  return Number.isFinite(longest) ? new Date(now.getTime() + longest * 1_000) : null;
}
