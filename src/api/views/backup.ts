/** The reply about what is off the machine. */
import type { Static } from 'typebox';
import type { BackupStatus, HistoryBackup } from '../../core/backup.ts';
import type { BackupReply } from '../schemas/backup.ts';

type BackupView = Static<typeof BackupReply>;

const timeOf = (at: Date | null | undefined) => at?.toISOString() ?? null;

export function backupView({ state, alerts, url, uploader, histories }: BackupStatus, now: Date): BackupView {
  const sum = (read: (one: HistoryBackup) => number) => histories.reduce((total, one) => total + read(one), 0);
  return {
    state,
    alerts: [...alerts],
    url,
    reported_at: timeOf(uploader?.reportedAt),
    succeeded_at: timeOf(uploader?.succeededAt),
    failing_since: timeOf(uploader?.problemSince),
    waiting_bytes: sum((one) => one.waitingBytes),
    stored_bytes: sum((one) => one.storedBytes),
    verified_at: timeOf(uploader?.verifiedAt),
    verified_ok: uploader?.verifiedOk ?? null,
    verification: uploader?.verification ?? null,
    histories: histories.map(historyView),
    read_at: now.toISOString(),
  };
}

function historyView(one: HistoryBackup): BackupView['histories'][number] {
  return {
    history_id: one.historyId,
    project_id: one.projectId,
    project_name: one.projectName,
    branch_id: one.branchId,
    branch_name: one.branchName,
    snapshot_id: one.snapshotId,
    snapshot_name: one.snapshotName,
    stored_from: timeOf(one.storedFrom),
    stored_until: timeOf(one.storedAt),
    stored_lsn: one.storedLsn,
    behind_seconds: one.behindSeconds,
    waiting_bytes: one.waitingBytes,
    stored_bytes: one.storedBytes,
    base_count: one.baseCount,
    gap_count: one.gapCount,
    problem: one.problem,
    gone_since: timeOf(one.goneSince),
  };
}
