/** Rows of `auth_integrations`, and of what an integration leaves behind: provider projects and schemas to remove. */
import type { BranchId, OperationId, ProjectId } from '../lib/ids.ts';
import { assignments, first, one, type Sql, type Tx } from './client.ts';

export interface AuthIntegrationRow {
  readonly id: string;
  readonly projectId: ProjectId;
  readonly status: 'creating' | 'active' | 'detached';
  readonly authProvider: 'stack';
  readonly branchId: BranchId | null;
  /** It comes back with its branch, which was deleted. */
  readonly detachedWithBranch: boolean;
  readonly databaseId: number | null;
  readonly databaseName: string;
  readonly roleName: string;
  readonly providerUrl: string | null;
  readonly providerProjectId: string | null;
  readonly adminKey: Uint8Array | null;
  readonly webhookSecret: Uint8Array | null;
  readonly firstKeys: Uint8Array | null;
  readonly ownedBy: 'neon' | 'user';
  readonly transferStatus: 'initiated' | 'finished' | null;
  readonly transferStartedAt: Date | null;
  readonly operationId: OperationId | null;
  readonly syncedSeq: number;
  readonly syncedAt: Date | null;
  readonly syncFailures: number;
  readonly syncError: string | null;
  readonly syncRetryAt: Date | null;
  readonly pollAt: Date;
  readonly followLease: string | null;
  readonly followUntil: Date | null;
  readonly followFailures: number;
  readonly followError: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewAuthIntegration = Pick<
  AuthIntegrationRow,
  'id' | 'projectId' | 'authProvider' | 'branchId' | 'databaseId' | 'databaseName' | 'roleName' | 'providerUrl'
>;

export async function insertAuthIntegration(sql: Sql, row: NewAuthIntegration): Promise<AuthIntegrationRow> {
  const made = { ...row, status: 'creating' };
  return one(await sql<AuthIntegrationRow[]>`insert into auth_integrations ${sql(made)} returning *`);
}

/** A database that was renamed keeps its integration: the name shown is the current one. */
const columns = (sql: Sql) => sql`i.*, coalesce(d.name, i.database_name) as database_name`;
const source = (sql: Sql) => sql`
  from auth_integrations i left join databases d on d.id = i.database_id and d.dropped_at is null`;

export async function selectLiveAuthIntegration(
  sql: Sql,
  projectId: ProjectId,
): Promise<AuthIntegrationRow | undefined> {
  return first(
    await sql<AuthIntegrationRow[]>`
      select ${columns(sql)} ${source(sql)} where i.project_id = ${projectId} and i.status in ('creating', 'active')`,
  );
}

/** An integration at the same provider that was deleted with its data kept. */
export async function selectDetachedAuthIntegration(
  sql: Sql,
  projectId: ProjectId,
  providerUrl: string | null,
): Promise<AuthIntegrationRow | undefined> {
  return first(
    await sql<AuthIntegrationRow[]>`
      select * from auth_integrations
      where project_id = ${projectId} and status = 'detached' and provider_url is not distinct from ${providerUrl}
      order by updated_at desc limit 1`,
  );
}

export async function selectAuthIntegration(sql: Sql, id: string): Promise<AuthIntegrationRow | undefined> {
  return first(await sql<AuthIntegrationRow[]>`select ${columns(sql)} ${source(sql)} where i.id = ${id}`);
}

export type AuthIntegrationChange = Partial<
  Omit<AuthIntegrationRow, 'id' | 'projectId' | 'authProvider' | 'createdAt' | 'updatedAt'>
>;

export async function updateAuthIntegration(
  sql: Sql,
  id: string,
  change: AuthIntegrationChange,
): Promise<AuthIntegrationRow | undefined> {
  return first(
    await sql<AuthIntegrationRow[]>`
      update auth_integrations ${assignments(sql, change)} where id = ${id} returning *`,
  );
}

/** Only one caller ever gets them. */
export async function takeFirstKeys(tx: Tx, id: string): Promise<Uint8Array | null> {
  const [row] = await tx<{ firstKeys: Uint8Array | null }[]>`
    select first_keys from auth_integrations where id = ${id} for update`;
  if (!row?.firstKeys) return null;
  await tx`update auth_integrations set first_keys = null where id = ${id}`;
  return row.firstKeys;
}

export async function deleteAuthIntegration(sql: Sql, id: string): Promise<void> {
  await sql`delete from auth_integrations where id = ${id}`;
}

/** Marks for removal what the provider holds for these rows and only Catnap owns. */
export async function insertLeftovers(
  sql: Sql,
  of: { readonly projectId: ProjectId; readonly id?: string },
): Promise<void> {
  await sql`
    insert into auth_leftovers (provider_project_id, provider_url, admin_key)
    select provider_project_id, provider_url, admin_key from auth_integrations
    where project_id = ${of.projectId} and provider_project_id is not null and admin_key is not null
      and owned_by = 'neon' and (${of.id ?? null}::uuid is null or id = ${of.id ?? null})
    on conflict do nothing`;
}

/**
 * Written before a new project's integration knows of it, and taken back by the transaction that records it there: in
 * between, nothing else would find it.
 */
export async function insertNewbornLeftover(
  sql: Sql,
  row: Omit<LeftoverRow, 'failures'>,
  graceMs: number,
): Promise<void> {
  await sql`
    insert into auth_leftovers (provider_project_id, provider_url, admin_key, retry_at)
    values (${row.providerProjectId}, ${row.providerUrl}, ${row.adminKey}, now() + ${graceMs} * interval '1 ms')
    on conflict do nothing`;
}

export interface LeftoverRow {
  readonly providerProjectId: string;
  readonly providerUrl: string | null;
  readonly adminKey: Uint8Array;
  readonly failures: number;
}

export async function selectDueLeftovers(sql: Sql): Promise<LeftoverRow[]> {
  return sql<LeftoverRow[]>`select * from auth_leftovers where retry_at <= now() order by retry_at limit 20`;
}

export async function deleteLeftover(sql: Sql, providerProjectId: string): Promise<void> {
  await sql`delete from auth_leftovers where provider_project_id = ${providerProjectId}`;
}

export async function postponeLeftover(sql: Sql, providerProjectId: string, waitMs: number): Promise<void> {
  await sql`
    update auth_leftovers set failures = failures + 1, retry_at = now() + ${waitMs} * interval '1 ms'
    where provider_project_id = ${providerProjectId}`;
}

/** The branch goes; what the provider holds stays for another branch to take up. */
export async function detachAuthIntegrations(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`
    update auth_integrations set status = 'detached', branch_id = null, first_keys = null, updated_at = now()
    where branch_id = ${branchId}`;
}

/** The branch gives its place to another one, which takes up where this one ends. */
export async function moveAuthIntegrations(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`update auth_integrations set branch_id = ${to}, updated_at = now() where branch_id = ${from}`;
}

/** The branch may come back; until then, another one may take up what the provider holds. */
export async function detachWithBranch(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`
    update auth_integrations
    set status = 'detached', detached_with_branch = provider_project_id is not null and admin_key is not null,
      first_keys = null, updated_at = now()
    where branch_id = ${branchId} and status <> 'detached'`;
}

/** Not if the project has another integration by now. All users are read and copied again. */
export async function attachWithBranch(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`
    update auth_integrations i
    set status = 'active', detached_with_branch = false, synced_at = null, poll_at = now(), updated_at = now()
    where i.branch_id = ${branchId} and i.detached_with_branch and i.status = 'detached' and not exists (
      select 1 from auth_integrations o where o.project_id = i.project_id and o.status in ('creating', 'active'))`;
}

/** The latest name of the database, then its name when the integration was made. */
export async function selectUsersDatabaseNames(sql: Sql, branchId: BranchId): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select n.name ${source(sql)} cross join lateral (values (1, d.name), (2, i.database_name)) n (rank, name)
    where i.branch_id = ${branchId} and i.status <> 'detached' and n.name is not null order by n.rank`;
  return rows.map(({ name }) => name);
}

/** After the branch got the databases of another one: users are in the first of these that exists. */
export async function updateUsersDatabase(sql: Sql, branchId: BranchId, names: readonly string[]): Promise<void> {
  await sql`
    update auth_integrations set synced_at = null, database_id = (
      select d.id from unnest(${[...names]}::text[]) with ordinality n (name, rank)
        join databases d on d.branch_id = ${branchId} and d.name = n.name and d.dropped_at is null
      order by n.rank limit 1)
    where branch_id = ${branchId} and status <> 'detached'`;
}

/** Carried out when the branch's server is next awake, which it may not be now. */
export async function insertSchemaDrop(sql: Sql, branchId: BranchId, databaseName: string): Promise<void> {
  await sql`
    insert into auth_schema_drops (branch_id, database_name) values (${branchId}, ${databaseName})
    on conflict do nothing`;
}

/** Of a row of `auth_integrations`: nothing goes on in the integration of a deleted project. */
export const ofLiveProject = (sql: Sql) => sql`
  exists (select 1 from projects p where p.id = auth_integrations.project_id and p.deleting_at is null)`;

/** Transfers that may be confirmed at any moment; a confirmation is not announced. */
export async function selectStartedTransfers(sql: Sql): Promise<AuthIntegrationRow[]> {
  return sql<AuthIntegrationRow[]>`
    select * from auth_integrations
    where status = 'active' and owned_by = 'neon' and transfer_status = 'initiated' and ${ofLiveProject(sql)}
    order by transfer_started_at`;
}
