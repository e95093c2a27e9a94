/**
 * Many projects as rows of the system database alone: copies of one real project, asleep for longer than its history
 * reaches back, with its branch, compute, role and database. Nothing of them is on the disk, so they can be listed and
 * looked at, and not woken.
 */
import { loadSource } from '../scripts/load-source.mjs';

/** What differs in each copy, as SQL of its number `i`; the other columns are those of the original. */
const copies = [
  ['projects', 'id = $1', { id: `'bench-' || i`, name: `'bench ' || i`, tenant_uid: 'null' }],
  [
    'branches',
    'project_id = $1',
    {
      id: `'br-bench-' || i`,
      project_id: `'bench-' || i`,
      history_due_at: `'9999-12-31'`,
      metered_until: 'now()',
      metered_size: 'logical_size',
    },
  ],
  [
    'endpoints',
    'project_id = $1',
    { id: `'ep-bench-' || i`, project_id: `'bench-' || i`, branch_id: `'br-bench-' || i`, current_state: `'idle'` },
  ],
  ['roles', 'branch_id = $2', { branch_id: `'br-bench-' || i` }],
  ['databases', 'branch_id = $2', { branch_id: `'br-bench-' || i` }],
];

/** The system database of a running Catnap, for as long as `work` lasts. */
export async function withSystemSql(home, work) {
  const source = await loadSource(['db/client', 'machine/system-database']);
  const options = await source['machine/system-database'].systemDatabaseOptions({ home });
  const database = source['db/client'].openDatabase(options, { poolSize: 1, name: 'catnap-bench' });
  try {
    return await work(database.sql);
  } finally {
    await database.close();
  }
}

/** Adds copies until there are `count` of them. */
export async function addProjects(sql, { projectId, branchId }, count) {
  const [{ have }] = await sql.unsafe(`select count(*)::int as have from projects where id like 'bench-%'`);
  if (have >= count) return;
  // Half a million rows take longer than Catnap's own statements may.
  await sql.unsafe('set statement_timeout = 0');
  for (const [table, where, changed] of copies) {
    const columns = await sql.unsafe(
      `select column_name as name from information_schema.columns
        where table_schema = 'catnap' and table_name = $1 and is_identity = 'NO' and is_generated = 'NEVER'`,
      [table],
    );
    const names = columns.map(({ name }) => name);
    const values = names.map((name) => changed[name] ?? name);
    await sql.unsafe(
      `insert into ${table} (${names.join(', ')}) select ${values.join(', ')}
         from ${table}, generate_series($3::int, $4::int) as i
        where ${where} and coalesce($1::text, $2::text) is not null`,
      [projectId, branchId, have + 1, count],
    );
  }
  // Otherwise Postgres would do so by itself some time later, while something is measured.
  await sql.unsafe('vacuum analyze');
}
