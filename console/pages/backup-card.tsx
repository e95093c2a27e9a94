/** What is off the machine: the store, how far it is behind, and what is wrong. */
import { useQuery } from '@tanstack/react-query';
import { backupQuery } from '../api/queries.ts';
import { Ago, Badge, Card } from '../ui/bits.tsx';
import { bytes, count } from '../ui/format.ts';

const tones = { off: 'plain', ok: 'good', behind: 'warn', failing: 'bad' } as const;

export function BackupCard() {
  const { data: backup } = useQuery(backupQuery);
  if (backup === undefined) return null;
  const whole = backup.histories.filter((one) => one.base_count > 0 && one.project_id !== 'system');
  const snapshots = whole.filter((one) => one.snapshot_id !== null);
  const branches = whole.filter((one) => one.snapshot_id === null);
  const behind = Math.max(0, ...backup.histories.map((one) => one.behind_seconds ?? 0));
  return (
    <Card title="Backup">
      <dl className="facts">
        <dt>State</dt>
        <dd>
          <Badge tone={tones[backup.state]}>{backup.state}</Badge>{' '}
          {backup.state === 'off' && 'Nothing is copied off this machine: set CATNAP_BACKUP_URL.'}
        </dd>
        {backup.state !== 'off' && (
          <>
            <dt>Store</dt>
            <dd>{backup.url}</dd>
            <dt>Last success</dt>
            <dd>{backup.succeeded_at === null ? 'never' : <Ago at={backup.succeeded_at} />}</dd>
            <dt>Behind</dt>
            <dd>
              {behind} s at most, {bytes(backup.waiting_bytes)} not uploaded yet
            </dd>
            <dt>In the store</dt>
            <dd>
              {bytes(backup.stored_bytes)}: {count(branches.length, 'branch', 'branches')},{' '}
              {count(snapshots.length, 'snapshot')}
            </dd>
            <dt>Last verified</dt>
            <dd>
              {backup.verified_at === null ? 'never' : <Ago at={backup.verified_at} />}{' '}
              {backup.verified_ok === false && <Badge tone="bad">not in order</Badge>}
            </dd>
          </>
        )}
      </dl>
      {backup.alerts.length > 0 && (
        <ul className="alerts">
          {backup.alerts.map((alert) => (
            <li key={alert}>{alert}</li>
          ))}
        </ul>
      )}
    </Card>
  );
}
