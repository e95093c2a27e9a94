/** How far the store off the machine is behind, asked of the system database at each scrape. */
import type { Registry } from 'prom-client';
import { type BackupStatus, readBackupStatus } from '../../core/backup.ts';
import type { Scope } from '../../core/context.ts';
import { type AskedGauge, addAskedGauges } from '../kit/asked-gauges.ts';

const sum = (status: BackupStatus, read: (one: BackupStatus['histories'][number]) => number) =>
  status.histories.reduce((total, one) => total + read(one), 0);
const seconds = (at: Date | null | undefined) => (at ? at.getTime() / 1_000 : 0);

const gauges: readonly AskedGauge<BackupStatus>[] = [
  [
    'catnap_backup_failing',
    'Whether uploads off the machine fail: 1 or 0.',
    ({ state }) => (state === 'failing' ? 1 : 0),
  ],
  ['catnap_backup_alerts', 'What an operator must know about backups, counted.', ({ alerts }) => alerts.length],
  [
    'catnap_backup_lag_seconds',
    'Age of the newest moment that the store can give, of the branch that is furthest behind; 0 if none is.',
    ({ histories }) => Math.max(0, ...histories.map(({ behindSeconds }) => behindSeconds ?? 0)),
  ],
  [
    'catnap_backup_unprotected',
    'Branches with history of which the store can give nothing yet.',
    ({ histories }) =>
      histories.filter((one) => one.goneSince === null && !one.isDeleted && one.baseCount === 0).length,
  ],
  [
    'catnap_backup_waiting_bytes',
    'Log and base images that are not uploaded yet.',
    (status) => sum(status, (one) => one.waitingBytes),
  ],
  ['catnap_backup_stored_bytes', 'What the store keeps.', (status) => sum(status, (one) => one.storedBytes)],
  [
    'catnap_backup_succeeded_timestamp_seconds',
    'When uploads last succeeded; 0 for never.',
    ({ uploader }) => seconds(uploader?.succeededAt),
  ],
  [
    'catnap_backup_verified_timestamp_seconds',
    'When a restore was last tried out; 0 for never.',
    ({ uploader }) => seconds(uploader?.verifiedAt),
  ],
  [
    'catnap_backup_verified_ok',
    'Whether the last restore that was tried out was in order: 1 or 0; 1 before the first.',
    ({ uploader }) => (uploader?.verifiedOk === false ? 0 : 1),
  ],
];

/** Without a store there is nothing to measure. */
export function useBackupMetrics(registry: Registry, scope: Scope): void {
  if (scope.config.backup === undefined) return;
  addAskedGauges(registry, gauges, () => readBackupStatus(scope));
}
