/** Rows of `stack_projects`. */
import { assignments, first, one, type Sql, type Tx } from '../../db/client.ts';

export interface ProjectRow {
  readonly id: string;
  readonly displayName: string;
  readonly description: string | null;
  /** The integration client that made it and may hand it over; null once a person owns it. */
  readonly provisionedBy: string | null;
  readonly ownerTeamId: string | null;
  readonly isProductionMode: boolean;
  readonly allowLocalhost: boolean;
  readonly credentialEnabled: boolean;
  readonly signUpEnabled: boolean;
  readonly clientUserDeletionEnabled: boolean;
  readonly requirePublishableClientKey: boolean;
  readonly createdAt: Date;
}

export type ProjectChange = Partial<
  Pick<
    ProjectRow,
    | 'displayName'
    | 'description'
    | 'provisionedBy'
    | 'ownerTeamId'
    | 'isProductionMode'
    | 'allowLocalhost'
    | 'credentialEnabled'
    | 'signUpEnabled'
    | 'clientUserDeletionEnabled'
    | 'requirePublishableClientKey'
  >
>;

export async function insertProject(
  sql: Sql,
  project: Pick<ProjectRow, 'id' | 'displayName' | 'description' | 'provisionedBy'> & {
    readonly provisionAttempt: string | null;
  },
): Promise<ProjectRow> {
  return one(await sql<ProjectRow[]>`insert into stack_projects ${sql(project)} returning *`);
}

/** Deletes what an earlier run of the same attempt made, and never reported. */
export async function deleteAttempt(sql: Sql, clientId: string, attempt: string): Promise<void> {
  await sql`delete from stack_projects where provisioned_by = ${clientId} and provision_attempt = ${attempt}`;
}

export async function selectProject(sql: Sql, id: string): Promise<ProjectRow | undefined> {
  return first(await sql<ProjectRow[]>`select * from stack_projects where id = ${id}`);
}

/** Every change of the project's users or ownership takes this lock, so that changes have one order. */
export async function lockProject(tx: Tx, id: string): Promise<ProjectRow | undefined> {
  return first(await tx<ProjectRow[]>`select * from stack_projects where id = ${id} for no key update`);
}

export async function updateProject(sql: Sql, id: string, change: ProjectChange): Promise<ProjectRow | undefined> {
  return first(await sql<ProjectRow[]>`update stack_projects ${assignments(sql, change)} where id = ${id} returning *`);
}

/** Everything that belongs to the project is deleted with it. */
export async function deleteProject(sql: Sql, id: string): Promise<boolean> {
  return (await sql`delete from stack_projects where id = ${id}`).count > 0;
}

export async function selectProjectsOfUser(sql: Sql, userId: string): Promise<ProjectRow[]> {
  return sql<ProjectRow[]>`
    select p.* from stack_projects p join stack_team_members m on m.team_id = p.owner_team_id
    where m.user_id = ${userId} order by p.created_at, p.id`;
}
