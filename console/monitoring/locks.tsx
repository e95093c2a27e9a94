/** The locks that sessions hold or wait for in a database, those that wait first. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { runSql } from '../api/sql.ts';
import { Badge } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { CheckField } from '../ui/field.tsx';
import { count, duration } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { askedOnce, type DatabaseTarget } from './on-database.tsx';

interface Lock {
  readonly pid: string;
  readonly role: string;
  readonly isGranted: boolean;
  readonly mode: string;
  readonly object: string;
  readonly waitsSeconds: number | null;
  readonly blockedBy: string;
}

const shownMax = 500;

const query = `
  select l.pid::text, coalesce(a.usename, ''), l.granted, l.mode,
    case when l.locktype = 'tuple' then 'a row of ' || l.relation::regclass
      when l.relation is not null then l.relation::regclass::text
      when l.locktype = 'transactionid' then 'transaction ' || l.transactionid
      when l.locktype = 'advisory' then 'advisory ' || l.classid || ' ' || l.objid
      else l.locktype end,
    extract(epoch from clock_timestamp() - l.waitstart),
    case when l.granted then '' else array_to_string(pg_blocking_pids(l.pid), ', ') end
  from pg_catalog.pg_locks l left join pg_catalog.pg_stat_activity a using (pid)
  where l.pid <> pg_backend_pid() and l.locktype <> 'virtualxid' and coalesce(a.usename !~ '^catnap_', true)
    and coalesce(l.database, 0) in (0, (select oid from pg_catalog.pg_database where datname = current_database()))
  order by l.granted, l.waitstart, l.pid, 5, 4 limit ${shownMax}`;

async function readLocks(uri: string): Promise<readonly Lock[]> {
  const { rows } = await runSql(uri, query, { readOnly: true });
  return rows.map(([pid, role, granted, mode, object, waits, blockedBy]) => ({
    pid: pid ?? '',
    role: role ?? '',
    isGranted: granted === 't',
    mode: mode ?? '',
    object: object ?? '',
    waitsSeconds: waits === null || waits === undefined ? null : Number(waits),
    blockedBy: blockedBy ?? '',
  }));
}

const locksQuery = (uri: string) =>
  queryOptions({ queryKey: ['locks', uri], queryFn: () => readLocks(uri), ...askedOnce });

export function Locks({ uri, choice }: DatabaseTarget) {
  const locks = useQuery(locksQuery(uri));
  const [withHeld, setWithHeld] = useState(true);
  return (
    <>
      <div className="view-bar">
        {choice}
        <Button busy={locks.isFetching} onClick={() => locks.refetch()}>
          Refresh
        </Button>
        <CheckField label="Show held locks" checked={withHeld} onChange={setWithHeld} />
      </div>
      <Loaded query={locks}>
        {(found) => {
          const shown = found.filter(({ isGranted }) => withHeld || !isGranted);
          return shown.length === 0 ? (
            <Empty title={withHeld ? 'Nobody holds a lock or waits for one.' : 'Nobody waits for a lock.'} />
          ) : (
            <LockTable locks={shown} />
          );
        }}
      </Loaded>
    </>
  );
}

function LockTable({ locks }: { readonly locks: readonly Lock[] }) {
  return (
    <div className="card dense">
      <Table label="Locks" columns={['Pid', 'Role', 'Lock', 'On', 'State']}>
        {locks.map((lock, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a session may hold several that look alike.
          <tr key={index}>
            <td className="pid">
              <code>{lock.pid}</code>
            </td>
            <td>{lock.role}</td>
            <td>
              <code>{lock.mode}</code>
            </td>
            <td>{lock.object}</td>
            <td>
              {lock.isGranted ? (
                <Badge>held</Badge>
              ) : (
                <span className="waits">
                  <Badge tone="warn">waits</Badge>
                  {lock.waitsSeconds !== null && ` ${duration(lock.waitsSeconds)}`} for {lock.blockedBy}
                </span>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {locks.length === shownMax && <p className="hint">The first {count(shownMax, 'lock')}.</p>}
    </div>
  );
}
