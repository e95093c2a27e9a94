/** Rows of `users`, `organizations` and `organization_members`. */
import type { PlanName } from '../lib/config.ts';
import type { OrganizationId, ProjectId, UserId } from '../lib/ids.ts';
import { first, one, type Sql } from './client.ts';

export interface UserRow {
  readonly id: UserId;
  readonly email: string;
  readonly login: string;
  readonly name: string;
  readonly lastName: string;
  readonly createdAt: Date;
}

export interface OrganizationRow {
  readonly id: OrganizationId;
  readonly name: string;
  readonly handle: string;
  readonly plan: PlanName;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export async function insertUser(sql: Sql, user: Pick<UserRow, 'id' | 'email' | 'login' | 'name'>): Promise<UserRow> {
  return one(await sql<UserRow[]>`insert into users ${sql(user, 'id', 'email', 'login', 'name')} returning *`);
}

export async function selectUser(sql: Sql, id: UserId): Promise<UserRow | undefined> {
  return first(await sql<UserRow[]>`select * from users where id = ${id}`);
}

export async function selectAnyUser(sql: Sql): Promise<UserRow | undefined> {
  return first(await sql<UserRow[]>`select * from users order by created_at limit 1`);
}

export async function insertOrganization(
  sql: Sql,
  organization: Pick<OrganizationRow, 'id' | 'name' | 'handle' | 'plan'>,
): Promise<OrganizationRow> {
  return one(
    await sql<OrganizationRow[]>`
      insert into organizations ${sql(organization, 'id', 'name', 'handle', 'plan')} returning *`,
  );
}

export async function selectOrganization(sql: Sql, id: OrganizationId): Promise<OrganizationRow | undefined> {
  return first(await sql<OrganizationRow[]>`select * from organizations where id = ${id}`);
}

export async function selectOrganizationOfProject(sql: Sql, id: ProjectId): Promise<OrganizationRow | undefined> {
  return first(
    await sql<OrganizationRow[]>`
      select o.* from projects p join organizations o on o.id = p.organization_id where p.id = ${id}`,
  );
}

export async function updatePlan(sql: Sql, id: OrganizationId, plan: PlanName): Promise<OrganizationRow> {
  return one(
    await sql<OrganizationRow[]>`
      update organizations set plan = ${plan}, updated_at = now() where id = ${id} returning *`,
  );
}

export interface MemberRow {
  readonly userId: UserId;
  readonly organizationId: OrganizationId;
  readonly role: string;
  readonly joinedAt: Date;
  readonly email: string;
  readonly name: string;
}

export async function selectMembers(sql: Sql, organizationId: OrganizationId): Promise<MemberRow[]> {
  return sql<MemberRow[]>`
    select m.*, u.email, u.name from organization_members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} order by m.joined_at, m.user_id`;
}

export async function insertMember(sql: Sql, organizationId: OrganizationId, userId: UserId): Promise<void> {
  await sql`insert into organization_members (organization_id, user_id) values (${organizationId}, ${userId})`;
}

export async function selectOrganizationsOfUser(sql: Sql, userId: UserId): Promise<OrganizationRow[]> {
  return sql<OrganizationRow[]>`
    select o.* from organizations o join organization_members m on m.organization_id = o.id
    where m.user_id = ${userId} order by o.created_at, o.id`;
}
