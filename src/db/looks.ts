/** Rows of `looks`: computes that serve a moment of the past to clients for a while. */
import type { BranchId, EndpointId, OperationId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { first, json, one, type Sql, type Tx } from './client.ts';
import { changesChannel, type OperationState } from './operations.ts';

/** `refused` rows only keep the reason for clients that wait for it. */
export type LookState = 'opening' | 'open' | 'closing' | 'refused';

export interface LookRow {
  readonly id: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly dataId: BranchId;
  readonly past: OperationState;
  readonly logins: Readonly<Record<string, string>>;
  readonly roleNames: readonly string[] | null;
  readonly operationId: OperationId;
  readonly state: LookState;
  readonly refusal: string | null;
  readonly route: (ComputeAddress & { readonly sessions?: number }) | null;
  readonly lastActive: Date;
}

export type NewLook = Pick<
  LookRow,
  'id' | 'projectId' | 'branchId' | 'dataId' | 'past' | 'logins' | 'operationId' | 'lastActive'
>;

export async function insertLook(tx: Tx, look: NewLook): Promise<LookRow> {
  const row = { ...look, past: json(tx, look.past), logins: json(tx, look.logins), state: 'opening' };
  return one(await tx<LookRow[]>`insert into looks ${tx(row)} returning *`);
}

export async function selectLook(sql: Sql, id: EndpointId): Promise<LookRow | undefined> {
  return first(await sql<LookRow[]>`select * from looks where id = ${id}`);
}

/** One of the branch at that moment, in which the role logs in with this verifier. */
export async function selectSameLook(
  sql: Sql,
  same: Pick<LookRow, 'branchId' | 'past'> & { readonly role: string; readonly verifier: string },
): Promise<LookRow | undefined> {
  return first(
    await sql<LookRow[]>`
      select * from looks
      where branch_id = ${same.branchId} and past = ${json(sql, same.past)} and state in ('opening', 'open')
        and logins ->> ${same.role} = ${same.verifier}
      limit 1`,
  );
}

/** The verifiers of a branch's roles that can log in, as one object. */
export async function selectVerifiers(sql: Sql, branchId: BranchId): Promise<Readonly<Record<string, string>>> {
  return one(
    await sql<{ logins: Readonly<Record<string, string>> }[]>`
      select coalesce(jsonb_object_agg(name, verifier), '{}') as logins from roles
      where branch_id = ${branchId} and verifier is not null and dropped_at is null and not no_login`,
  ).logins;
}

/** Those that have a compute or may have one: of the project, and in all. */
export async function countLooks(
  sql: Sql,
  projectId: ProjectId,
): Promise<{ readonly own: number; readonly all: number }> {
  return one(
    await sql<{ own: number; all: number }[]>`
      select count(*)::int as all, count(*) filter (where project_id = ${projectId})::int as own
      from looks where state <> 'refused'`,
  );
}

export async function updateLook(
  sql: Sql,
  id: EndpointId,
  change: Partial<Pick<LookRow, 'state' | 'refusal' | 'route' | 'roleNames'>>,
): Promise<void> {
  const { route } = change;
  await sql`update looks set ${sql({ ...change, ...(route && { route: json(sql, route) }) })} where id = ${id}`;
  // Proxies close what they have to a server whose route is closed.
  if (route === null) await sql`select pg_notify(${changesChannel}, ${id})`;
}

export async function touchLook(sql: Sql, id: EndpointId, at: Date): Promise<void> {
  await sql`update looks set last_active = greatest(last_active, ${at}) where id = ${id}`;
}

export async function updateLooksActive(sql: Sql, activity: ReadonlyMap<string, Date>): Promise<void> {
  const ids = [...activity.keys()];
  const times = [...activity.values()].map((time) => time.toISOString());
  await sql`
    update looks l set last_active = greatest(l.last_active, a.at)
    from unnest(${ids}::text[], ${times}::timestamptz[]) as a(id, at) where l.id = a.id`;
}

export interface OpenLook extends LookRow {
  readonly tenantUid: number | null;
  /** The project or the branch is being deleted, or gone. */
  readonly isOrphan: boolean;
}

export async function selectOpenLooks(sql: Sql): Promise<OpenLook[]> {
  return sql<OpenLook[]>`
    select l.*, p.tenant_uid, (p.deleting_at is not null or b.id is null or b.deleting_at is not null) as is_orphan
    from looks l join projects p on p.id = l.project_id left join branches b on b.id = l.branch_id
    where l.state = 'open' order by l.id`;
}

export async function deleteLook(sql: Sql, id: EndpointId): Promise<void> {
  await sql`delete from looks where id = ${id}`;
}

export async function deleteRefusedLooks(sql: Sql, before: Date): Promise<void> {
  await sql`delete from looks where state = 'refused' and last_active < ${before}`;
}

export interface LookSource {
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
}

/** `name` is the id of an endpoint or of a branch. */
export async function selectLookSource(sql: Sql, name: string): Promise<LookSource | undefined> {
  return first(
    await sql<LookSource[]>`
      select e.project_id, e.branch_id from endpoints e where e.id = ${name} and e.deleting_at is null
      union all
      select b.project_id, b.id from branches b where b.id = ${name} and b.deleting_at is null`,
  );
}
