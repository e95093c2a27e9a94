/** The statements that cost the most, as pg_stat_statements counts them in this database. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { runSql, SqlError } from '../api/sql.ts';
import { quoteName } from '../grid/formats.ts';
import { Ago } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { SelectField } from '../ui/field.tsx';
import { count, milliseconds } from '../ui/format.ts';
import { Empty, Loaded } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { askedOnce, type DatabaseTarget } from './on-database.tsx';
import { Statement } from './statement.tsx';
import type { MonitoringSearch } from './views.ts';

interface TopQuery {
  readonly calls: number;
  readonly total: number;
  readonly mean: number;
  readonly rows: number;
  readonly hits: number;
  readonly reads: number;
  readonly role: string;
  readonly text: string;
}

interface Statistics {
  readonly queries: readonly TopQuery[];
  /** Of all statements of the database, in milliseconds. */
  readonly total: number;
  readonly since: string | null;
}

/** The extension is not in this database, or the server has not loaded its library. */
type Missing = 'extension' | 'library';

const orders = [
  { value: 'total', text: 'Total time' },
  { value: 'mean', text: 'Mean time' },
  { value: 'calls', text: 'Calls' },
  { value: 'rows', text: 'Rows' },
] as const;
type Order = (typeof orders)[number]['value'];

const columns = { total: 'total_exec_time', mean: 'mean_exec_time', calls: 'calls', rows: 'rows' } as const;
const shownMax = 50;

const schemaQuery = `select n.nspname from pg_catalog.pg_extension e
  join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`;

const statisticsQuery = (schema: string, order: Order) => `
  select s.calls, s.total_exec_time, s.mean_exec_time, s.rows, s.shared_blks_hit, s.shared_blks_read,
    pg_catalog.pg_get_userbyid(s.userid), pg_catalog.left(s.query, 10000),
    pg_catalog.sum(s.total_exec_time) over (),
    pg_catalog.to_json((select i.stats_reset from ${quoteName(schema)}.pg_stat_statements_info i)) #>> '{}'
  from ${quoteName(schema)}.pg_stat_statements s
  where s.dbid = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
    and pg_catalog.pg_get_userbyid(s.userid) !~ '^catnap_'
  order by s.${columns[order]} desc limit ${shownMax}`;

/** Postgres says so when a library must be loaded at the start. */
const notInState = '55000';

async function readStatistics(uri: string, order: Order): Promise<Statistics | Missing> {
  const schema = (await runSql(uri, schemaQuery, { readOnly: true })).rows[0]?.[0];
  if (schema === undefined || schema === null) return 'extension';
  try {
    const { rows } = await runSql(uri, statisticsQuery(schema, order), { readOnly: true });
    const queries = rows.map((row) => {
      const [calls = 0, total = 0, mean = 0, returned = 0, hits = 0, reads = 0] = row.slice(0, 6).map(Number);
      return { calls, total, mean, rows: returned, hits, reads, role: row[6] ?? '', text: row[7] ?? '' };
    });
    return { queries, total: Number(rows[0]?.[8] ?? 0), since: rows[0]?.[9] ?? null };
  } catch (error) {
    if (error instanceof SqlError && error.code === notInState) return 'library';
    throw error;
  }
}

const topQueriesQuery = (uri: string, order: Order) =>
  queryOptions({ queryKey: ['top-queries', uri, order], queryFn: () => readStatistics(uri, order), ...askedOnce });

interface TopQueriesProps extends DatabaseTarget {
  readonly onSearch: (next: MonitoringSearch) => void;
}

export function TopQueries({ uri, choice, onSearch }: TopQueriesProps) {
  const [order, setOrder] = useState<Order>('total');
  const found = useQuery(topQueriesQuery(uri, order));
  return (
    <>
      <div className="view-bar">
        {choice}
        <SelectField label="Order by" value={order} choices={orders} onChange={(value) => setOrder(value as Order)} />
        <Button busy={found.isFetching} onClick={() => found.refetch()}>
          Refresh
        </Button>
        {typeof found.data === 'object' && <Since statistics={found.data} />}
      </div>
      <Loaded query={found}>
        {(data) =>
          data === 'extension' ? (
            <Empty title="This database does not have the extension pg_stat_statements.">
              <p>It counts how often each statement runs and how long that takes. The server has loaded its library.</p>
              <Button tone="primary" onClick={() => onSearch({ view: 'extensions' })}>
                Install it under Extensions
              </Button>
            </Empty>
          ) : data === 'library' ? (
            <Empty title="The server of this compute has not loaded pg_stat_statements.">
              <p>
                Take <code>use_defaults: false</code> out of <code>settings.preload_libraries</code> of the compute or
                the project, over the API, and restart the compute.
              </p>
            </Empty>
          ) : (
            <QueryTable statistics={data} />
          )
        }
      </Loaded>
    </>
  );
}

function Since({ statistics: { queries, since } }: { readonly statistics: Statistics }) {
  return (
    <p className="hint">
      {count(queries.length, 'statement')}
      {since !== null && (
        <>
          , counted since <Ago at={since} />
        </>
      )}
      . Texts of other roles are hidden.
    </p>
  );
}

const whole = (value: number) => value.toLocaleString('en');

function QueryTable({ statistics: { queries, total } }: { readonly statistics: Statistics }) {
  if (queries.length === 0) return <Empty title="Nothing has run in this database yet." />;
  return (
    <div className="card dense">
      <Table
        label="Top queries"
        columns={['Statement', 'Share', 'Total', 'Calls', 'Mean', 'Rows', 'Cache hits', 'Role']}
        numbers={['Total', 'Calls', 'Mean', 'Rows', 'Cache hits']}
      >
        {queries.map((query, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: those of other roles have no id.
          <tr key={index}>
            <td className="statement-cell">
              <Statement text={query.text} />
            </td>
            <td>
              <Share part={total === 0 ? 0 : query.total / total} />
            </td>
            <td className="number">{milliseconds(query.total)}</td>
            <td className="number">{whole(query.calls)}</td>
            <td className="number">{query.mean < 10 ? `${query.mean.toFixed(2)} ms` : milliseconds(query.mean)}</td>
            <td className="number">{whole(query.rows)}</td>
            <td className="number">{hitsText(query)}</td>
            <td>{query.role}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function hitsText({ hits, reads }: TopQuery): string {
  return hits + reads === 0 ? '–' : `${((100 * hits) / (hits + reads)).toFixed(hits === 0 || reads === 0 ? 0 : 1)} %`;
}

function Share({ part }: { readonly part: number }) {
  const percent = 100 * part;
  return (
    <span className="share">
      <span className="share-bar" style={{ width: `${Math.max(1, percent)}%` }} />
      <span className="share-text">{percent < 0.1 ? '< 0.1' : percent.toFixed(1)} %</span>
    </span>
  );
}
