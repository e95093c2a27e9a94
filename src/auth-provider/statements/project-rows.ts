/** All rows of a provider's project that outlive a session, for bringing it from one database into another. */
import { first, type Sql, type Tx } from '../../db/client.ts';
import { insertRows, numberFrom, selectRows, type TableRow } from '../../db/rows.ts';
import type { SecretBox } from '../../lib/secrets.ts';
import { oauthSecretSealContext } from './oauth-providers.ts';
import { signingKeySealContext } from './signing-keys.ts';
import { webhookSealContext } from './webhooks.ts';

/** In the order in which they can be inserted. Sessions and codes are left behind: people sign in again. */
const tables = [
  'stack_projects',
  'stack_key_sets',
  'stack_users',
  'stack_domains',
  'stack_oauth_providers',
  'stack_oauth_accounts',
  'stack_signing_keys',
  'stack_webhook_endpoints',
  'stack_user_changes',
] as const;

type Table = (typeof tables)[number];
export type ProviderRows = Readonly<Record<Table, readonly TableRow[]>>;

export async function selectProviderRows(sql: Sql, projectId: string): Promise<ProviderRows> {
  const found: Partial<Record<Table, TableRow[]>> = {};
  for (const table of tables) {
    const column = table === 'stack_projects' ? sql`t.id` : sql`t.project_id`;
    const order = table === 'stack_user_changes' ? sql`order by seq` : sql``;
    found[table] = await selectRows(sql, table, sql`${column} = ${projectId} ${order}`);
  }
  return found as ProviderRows;
}

/** Sealed values, and what each is bound to. */
const sealed: Partial<Record<Table, { readonly column: string; readonly context: (row: TableRow) => string }>> = {
  stack_oauth_providers: {
    column: 'client_secret',
    context: (row) => oauthSecretSealContext({ projectId: String(row.project_id), id: String(row.id) }),
  },
  stack_signing_keys: { column: 'private_jwk', context: (row) => signingKeySealContext(String(row.kid)) },
  stack_webhook_endpoints: { column: 'secret', context: (row) => webhookSealContext(String(row.id)) },
};

/** False if the project is here already: then it stays as it is. */
export async function insertProviderRows(
  tx: Tx,
  rows: ProviderRows,
  boxes: { readonly old: SecretBox; readonly current: SecretBox },
): Promise<boolean> {
  const [project] = rows.stack_projects;
  if (project === undefined) return true;
  if (first(await tx`select 1 from stack_projects where id = ${String(project.id)}`)) return false;
  // Tenants' databases know positions of the old log; what is copied again must come after them.
  const lastSeq = Math.max(0, ...rows.stack_user_changes.map(({ seq }) => Number(seq)));
  if (lastSeq > 0) await numberFrom(tx, 'stack_user_changes', 'seq', lastSeq);
  for (const table of tables) {
    const kept = await Promise.all(rows[table].map((row) => rehome(tx, table, row, boxes)));
    await insertRows(tx, table, kept, table === 'stack_user_changes' ? { numbered: 'seq' } : {});
  }
  return true;
}

async function rehome(
  tx: Tx,
  table: Table,
  row: TableRow,
  { old, current }: { readonly old: SecretBox; readonly current: SecretBox },
): Promise<TableRow> {
  const { column, context } = sealed[table] ?? {};
  if (column !== undefined && context !== undefined) {
    const bytes = Buffer.from(String(row[column]).slice(2), 'hex');
    const again = current.seal(old.open(bytes, context(row)), context(row));
    return { ...row, [column]: `\\x${again.toString('hex')}` };
  }
  if (table !== 'stack_projects' || row.owner_team_id === null) return row;
  const team = first(await tx`select 1 from stack_teams where id = ${String(row.owner_team_id)}`);
  return team === undefined ? { ...row, owner_team_id: null } : row;
}
