/** What is off the machine: how far the store is behind, and what an operator must know about it. */
import {
  type BackupHistoryRow,
  type BackupReport,
  type BackupStateRow,
  deleteBackupHistories,
  deleteOtherBackupHistories,
  type GoneHistory,
  type LocalReport,
  recordBackupHistories,
  recordBackupState,
  recordGoneHistories,
  recordLocalHistories,
  selectBackupFacts,
  selectBackupHistories,
  selectBackupState,
} from '../db/backups.ts';
import { daySeconds, minuteMs } from '../lib/clock.ts';
import type { Caller } from './access.ts';
import { requireOperator } from './account.ts';
import type { Scope } from './context.ts';

export type { BackupHistoryRow };

/** For as long as a deleted project can be recovered, and should somebody notice too late that a disk was missing. */
const keepGoneSeconds = 7 * daySeconds;
/** The uploader reports every few seconds; without a word for this long it does not run. */
const silentMs = 5 * minuteMs;
/** Beyond the delay that the operator has allowed: uploads take time, and a busy minute is no reason for an alert. */
const patienceMs = 5 * minuteMs;

export interface HistoryBackup extends BackupHistoryRow {
  /** How old the newest moment is that the store can give, if the machine has newer log; 0 if it has none. */
  readonly behindSeconds: number | null;
}

export interface BackupStatus {
  readonly state: 'off' | 'ok' | 'behind' | 'failing';
  /** Sentences for the operator, the most urgent first. */
  readonly alerts: readonly string[];
  readonly url: string | null;
  readonly uploader: BackupStateRow | null;
  readonly histories: readonly HistoryBackup[];
}

export async function getBackupStatus(scope: Scope, caller: Caller): Promise<BackupStatus> {
  await requireOperator(scope, caller);
  return readBackupStatus(scope);
}

/** Without asking who wants to know; for metrics. */
export async function readBackupStatus(scope: Scope): Promise<BackupStatus> {
  const { backup } = scope.config;
  if (backup === undefined) return { state: 'off', alerts: [], url: null, uploader: null, histories: [] };
  const now = scope.clock.now();
  const found = await selectBackupState(scope.sql);
  const uploader = found?.url === backup.url ? found : null;
  const histories = (await selectBackupHistories(scope.sql)).map((row) => ({
    ...row,
    behindSeconds: behindSeconds(row, now),
  }));
  const trouble = whyFailing(uploader, now);
  const late = histories.filter((one) => isLate(one, backup.delaySeconds, now));
  const alerts = [
    ...trouble,
    ...verdict(uploader, backup.verifySeconds, now),
    ...lateness(late),
    ...histories.filter((one) => one.goneSince === null).flatMap(problemOf),
  ];
  const state = trouble.length > 0 ? 'failing' : late.length > 0 || alerts.length > 0 ? 'behind' : 'ok';
  return { state, alerts, url: backup.url, uploader, histories };
}

/** Of a branch that wrote nothing for a night, only what it has written since is behind. */
function behindSeconds({ storedAt, behindSince, goneSince, localLsn }: BackupHistoryRow, now: Date): number | null {
  if (goneSince !== null || localLsn === null) return null;
  if (behindSince === null) return 0;
  // A clock that was set back must not make it negative.
  return storedAt === null ? null : Math.max(0, Math.round(lackingMs(storedAt, behindSince, now) / 1_000));
}

const lackingMs = (storedAt: Date | null, behindSince: Date, now: Date) =>
  now.getTime() - Math.max(storedAt?.getTime() ?? 0, behindSince.getTime());

/** The branches and snapshots of a project that are later than the operator has allowed, by project. */
export async function findLateBackups(scope: Scope): Promise<Map<string, HistoryBackup[]>> {
  const { backup } = scope.config;
  if (backup === undefined) return new Map();
  const now = scope.clock.now();
  const { histories } = await readBackupStatus(scope);
  const late = new Map<string, HistoryBackup[]>();
  for (const one of histories.filter((history) => isLate(history, backup.delaySeconds, now))) {
    late.set(one.projectId, [...(late.get(one.projectId) ?? []), one]);
  }
  return late;
}

function whyFailing(uploader: BackupStateRow | null, now: Date): string[] {
  if (uploader === null) return ['Nothing has been uploaded to CATNAP_BACKUP_URL yet.'];
  const { problem, problemSince, reportedAt } = uploader;
  if (now.getTime() - reportedAt.getTime() > silentMs) {
    return [`The uploader has not been heard of since ${reportedAt.toISOString()}: is the process backup running?`];
  }
  return problem === null ? [] : [`Backups fail since ${problemSince?.toISOString()}: ${problem}`];
}

function verdict(uploader: BackupStateRow | null, everySeconds: number | undefined, now: Date): string[] {
  if (uploader === null || uploader.verifiedAt === null) return [];
  const { verifiedAt, verifiedOk, verification } = uploader;
  if (verifiedOk === false) return [`The last verification, at ${verifiedAt.toISOString()}, failed: ${verification}`];
  const isLate = everySeconds !== undefined && now.getTime() - verifiedAt.getTime() > 2 * everySeconds * 1_000;
  const words = 'too long ago for CATNAP_BACKUP_VERIFY: the log says why not since';
  return isLate ? [`The backup was last verified at ${verifiedAt.toISOString()}, ${words}.`] : [];
}

/**
 * That the store has no base image of what is minutes old is no lateness: it takes a while to go up. Of a branch that
 * was deleted none may come at all, as the machine makes none of it any more.
 */
function isLate({ storedAt, behindSince, goneSince, isDeleted }: HistoryBackup, delaySeconds: number, now: Date) {
  if (goneSince !== null || behindSince === null || isDeleted) return false;
  return lackingMs(storedAt, behindSince, now) > delaySeconds * 1_000 + patienceMs;
}

function lateness(late: readonly HistoryBackup[]): string[] {
  if (late.length === 0) return [];
  const none = late.filter(({ baseCount }) => baseCount === 0).length;
  const worst = Math.max(0, ...late.map(({ behindSeconds: behind }) => behind ?? 0));
  return [
    ...(none === 0
      ? []
      : [`${none} branches or snapshots have no base image in the store yet, and cannot be restored from it.`]),
    ...(none === late.length ? [] : [`${late.length - none} branches are behind, the worst by ${worst} seconds.`]),
  ];
}

function problemOf({ problem, gapCount, ...names }: HistoryBackup): string[] {
  const { branchName, branchId, projectName, projectId, snapshotId, snapshotName } = names;
  const own = snapshotId === null ? (branchName ?? branchId) : `snapshot ${snapshotName ?? snapshotId}`;
  const where = `${projectName ?? projectId} / ${own}`;
  if (problem !== null) return [`${where}: ${problem}`];
  return gapCount === 0 ? [] : [`${where}: some moments were lost before they could be uploaded (${gapCount} gaps).`];
}

/** Projects with their branches and windows, for the uploader. */
export async function readBackupFacts({ sql }: Pick<Scope, 'sql'>) {
  return { projects: await selectBackupFacts(sql) };
}

/** What the uploader found. Returns the histories that have been gone for so long that the store may drop them. */
export async function recordBackup(
  { sql }: Pick<Scope, 'sql'>,
  url: string,
  report: {
    readonly histories: readonly BackupReport[];
    readonly unmatched: readonly LocalReport[];
    readonly gone: readonly GoneHistory[];
    readonly problem: string | null;
    readonly now: Date;
  },
): Promise<readonly GoneHistory[]> {
  await recordBackupState(sql, url, report.problem);
  await recordBackupHistories(sql, report.histories);
  await recordLocalHistories(sql, report.unmatched);
  const removable = await recordGoneHistories(sql, report.gone, { now: report.now, keepSeconds: keepGoneSeconds });
  await deleteBackupHistories(
    sql,
    removable.map(({ historyId }) => historyId),
  );
  // A branch that came and went during an outage of the store is in no report any more, and would be late for good.
  if (report.problem === null) {
    const known = [...report.histories, ...report.gone].map(({ historyId }) => historyId);
    await deleteOtherBackupHistories(sql, known);
  }
  return removable;
}
