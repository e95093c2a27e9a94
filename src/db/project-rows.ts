/** All rows that make up a project, for bringing it from one system database into another. */
import type { ProjectId } from '../lib/ids.ts';
import { type Fragment, first, type Sql, type Tx } from './client.ts';
import { insertRows, selectRows, type TableRow } from './rows.ts';

/** In the order in which they can be inserted. */
const tables = [
  'projects',
  'branches',
  'endpoints',
  'roles',
  'databases',
  'snapshots',
  'snapshot_schedules',
  'project_key_sets',
  'api_keys',
  'auth_integrations',
  'auth_user_changes',
  'consumption_hours',
  'stored_spans',
  'saved_queries',
] as const;

/** Columns whose numbers mean nothing in another database. */
const numbered: Partial<Record<ProjectTable, string>> = {
  roles: 'id',
  databases: 'id',
  api_keys: 'id',
  auth_user_changes: 'seq',
};

export type ProjectTable = (typeof tables)[number];
export type ProjectRows = Readonly<Record<ProjectTable, readonly TableRow[]>>;

/** Without what was deleted before, and without branches that never had data. */
export async function selectProjectRows(sql: Sql, id: ProjectId): Promise<ProjectRows> {
  const ofProject = sql`t.project_id = ${id}`;
  const branches = sql`
    select id from branches where project_id = ${id} and deleting_at is null and current_state <> 'init'`;
  const conditions: Record<ProjectTable, Fragment> = {
    projects: sql`t.id = ${id}`,
    branches: sql`t.id in (${branches})`,
    endpoints: sql`t.branch_id in (${branches}) and t.deleting_at is null`,
    roles: sql`t.branch_id in (${branches}) order by id`,
    databases: sql`t.branch_id in (${branches}) order by id`,
    snapshots: sql`${ofProject} and t.deleting_at is null and t.current_state = 'ready'`,
    snapshot_schedules: sql`t.branch_id in (${branches})`,
    project_key_sets: sql`${ofProject} and (t.branch_id is null or t.branch_id in (${branches}))`,
    api_keys: sql`${ofProject} order by id`,
    auth_integrations: sql`${ofProject} and t.status <> 'creating'`,
    auth_user_changes: sql`
      t.project_id in (select provider_project_id from auth_integrations where project_id = ${id}) order by seq`,
    consumption_hours: ofProject,
    stored_spans: ofProject,
    saved_queries: ofProject,
  };
  const found: Partial<Record<ProjectTable, TableRow[]>> = {};
  for (const table of tables) found[table] = await selectRows(sql, table, conditions[table]);
  return found as ProjectRows;
}

export async function insertProjectRows(tx: Tx, rows: ProjectRows): Promise<void> {
  for (const table of tables) {
    const column = numbered[table];
    await insertRows(tx, table, rows[table], {
      ...(column !== undefined && { numbered: column }),
      // A key that is known here stays what it is.
      skipTaken: table === 'api_keys',
    });
  }
}

/** Ids of these that something in the database has already. */
export async function selectTakenIds(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from projects where id = any(${[...ids]}) union all
    select id from branches where id = any(${[...ids]}) union all
    select id from endpoints where id = any(${[...ids]}) union all
    select id from snapshots where id = any(${[...ids]}) order by id`;
  return rows.map(({ id }) => id);
}

/** The database of an integration by its name, because its number has changed. */
export async function updateIntegrationDatabase(tx: Tx, integrationId: string, name: string): Promise<void> {
  await tx`
    update auth_integrations i set database_id = d.id from databases d
    where i.id = ${integrationId} and d.branch_id = i.branch_id and d.name = ${name} and d.dropped_at is null`;
}

/** What was to be removed at an auth provider is needed again. */
export async function keepProviderProject(tx: Tx, providerProjectId: string): Promise<void> {
  await tx`delete from auth_leftovers where provider_project_id = ${providerProjectId}`;
}

export async function isUserKnown(sql: Sql, id: string): Promise<boolean> {
  return first(await sql`select 1 from users where id = ${id}`) !== undefined;
}

/** All of them, in the order in which they were made. */
export async function selectOrganizationIds(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`select id from organizations order by created_at, id`;
  return rows.map(({ id }) => id);
}
