/**
 * Many branches as rows of the system database alone, which the API lists like any other. Nothing of them is on the
 * disk: to make a thousand real ones would take minutes.
 */
import { withSystemDatabase } from '../../../src/machine/system-database.ts';
import { story } from './story.ts';

/** What differs from the default branch, as SQL of the number `i`: ten children of it, and grandchildren. */
const changed: Readonly<Record<string, string>> = {
  id: `'br-many-' || i`,
  name: `'preview/pr-' || i`,
  parent_id: `case when i <= 10 then id else 'br-many-' || 1 + (i - 1) % 10 end`,
  is_default: 'false',
  logical_size: '30000000 + i',
  // Nothing of it is on the disk, so nothing is to be done about it.
  history_due_at: `'9999-12-31'`,
};

export async function addBranchRows(count: number): Promise<void> {
  const { program, project } = story();
  await withSystemDatabase({ home: program.home.path, databaseUrl: undefined }, async ({ sql }) => {
    const columns = await sql<{ name: string }[]>`
      select column_name as name from information_schema.columns
      where table_schema = 'catnap' and table_name = 'branches' and is_identity = 'NO' and is_generated = 'NEVER'`;
    const names = columns.map(({ name }) => name);
    const values = names.map((name) => changed[name] ?? name);
    await sql.unsafe(
      `insert into branches (${names.join(', ')}) select ${values.join(', ')}
       from branches, generate_series(1, $2::int) as i where project_id = $1 and is_default order by i`,
      [project.id, count],
    );
  });
}
