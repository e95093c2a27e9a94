/** What the proxy needs to know for a login, in one statement, which every connection runs. */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { first, type Sql, type Tx } from './client.ts';
import type { EndpointType } from './endpoints.ts';

export interface LoginRow {
  readonly verifier: string | null;
  /** When the role's password was last reset over the API. */
  readonly resetAt: Date | null;
  readonly disabled: boolean;
  readonly allowedIps: readonly string[];
  readonly publicBlocked: boolean;
  readonly poolerEnabled: boolean;
  /** A change of the role over the API waits to be carried out: the verifier here is newer than the server's. */
  readonly pending: boolean;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  /** Null for a branch without a primary. */
  readonly endpointId: EndpointId | null;
  readonly type: EndpointType | null;
  /** Null while the compute sleeps. */
  readonly address: ComputeAddress | null;
  readonly adminSecret: Uint8Array;
}

/** Notified when a change may forbid some addresses what they were allowed before. */
export const accessChannel = 'catnap_access';

export async function notifyAccessChanged(tx: Tx, projectId: ProjectId): Promise<void> {
  await tx`select pg_notify(${accessChannel}, ${projectId})`;
}

/** Of a project `p` and a branch `b`. */
const accessColumns = (sql: Sql) => sql`
  case when (p.settings -> 'allowed_ips' ->> 'protected_branches_only')::boolean and not b.protected
    then '[]'::jsonb else coalesce(p.settings -> 'allowed_ips' -> 'ips', '[]'::jsonb) end as allowed_ips,
  coalesce((p.settings ->> 'block_public_connections')::boolean, false) as public_blocked`;

export type AccessRow = Pick<LoginRow, 'allowedIps' | 'publicBlocked'> & { readonly name: string };

/** `names` are ids of endpoints and of branches. */
export async function selectAccess(sql: Sql, names: readonly string[]): Promise<AccessRow[]> {
  return sql<AccessRow[]>`
    select named.name, ${accessColumns(sql)}
    from (
      select e.id as name, e.branch_id from endpoints e where e.id = any(${[...names]})
      union all
      select b.id, b.id from branches b where b.id = any(${[...names]})
    ) named
    join branches b on b.id = named.branch_id
    join projects p on p.id = b.project_id`;
}

/** `name` is the id of an endpoint, or of a branch, for which its primary answers if it has one. */
export async function selectLogin(sql: Sql, name: string, roleName: string): Promise<LoginRow | undefined> {
  const isBranch = name.startsWith('br-');
  const named = isBranch
    ? sql`branches b left join endpoints e on e.branch_id = b.id and e.type = 'read_write' and e.deleting_at is null`
    : sql`endpoints e join branches b on b.id = e.branch_id`;
  return first(
    await sql<LoginRow[]>`
      select r.verifier, r.reset_at,
        coalesce(e.disabled, false) as disabled, coalesce(e.pooler_enabled, true) as pooler_enabled,
        b.project_id, b.id as branch_id, e.id as endpoint_id, e.type, e.address, p.admin_secret,
        exists (select 1 from roles c where c.branch_id = b.id and c.name = ${roleName} and c.pending) as pending,
        ${accessColumns(sql)}
      from ${named}
      join projects p on p.id = b.project_id and p.deleting_at is null
      left join roles r on r.branch_id = b.id and r.name = ${roleName} and r.dropped_at is null and not r.no_login
      where ${isBranch ? sql`b.id = ${name} and b.deleting_at is null` : sql`e.id = ${name} and e.deleting_at is null`}`,
  );
}

/**
 * The primaries of up to two branches that have a role of this name whose stored password has this mark: one is found,
 * two are one too many. The mark is where `roles_password_mark` looks for it.
 */
export async function selectPrimariesByPassword(sql: Sql, roleName: string, mark: Uint8Array): Promise<EndpointId[]> {
  const rows = await sql<{ id: EndpointId }[]>`
    select e.id from roles r
    join endpoints e on e.branch_id = r.branch_id and e.type = 'read_write' and e.deleting_at is null
    join branches b on b.id = r.branch_id and b.deleting_at is null
    join projects p on p.id = b.project_id and p.deleting_at is null
    where substring(r.password from 2 for 16) = ${mark} and get_byte(r.password, 0) = 2
      and r.name = ${roleName} and r.dropped_at is null and not r.no_login
    limit 2`;
  return rows.map(({ id }) => id);
}

/**
 * Takes over what the server says of a role that was changed by SQL; the password we kept is then not the right one.
 * Not if the row has changed since it was read: that change is newer than what the server reported.
 */
export async function updateSeenVerifier(sql: Sql, login: LoginRow, roleName: string, verifier: string): Promise<void> {
  await sql`
    update roles set verifier = ${verifier}, password = null, revision = revision + 1, updated_at = clock_timestamp()
    where branch_id = ${login.branchId} and name = ${roleName} and verifier = ${login.verifier}
      and not pending and dropped_at is null`;
}
