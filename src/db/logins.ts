/** What the proxy needs to know for a login, in one statement, which every connection runs. */
import type { BranchId, EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress } from '../lib/model.ts';
import { first, type Sql } from './client.ts';
import type { EndpointType } from './endpoints.ts';

export interface LoginRow {
  readonly verifier: string | null;
  readonly disabled: boolean;
  readonly allowedIps: readonly string[];
  readonly publicBlocked: boolean;
  readonly poolerEnabled: boolean;
  /** A change of the role over the API waits to be carried out: the verifier here is newer than the server's. */
  readonly pending: boolean;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  readonly type: EndpointType;
  /** Null while the compute sleeps. */
  readonly address: ComputeAddress | null;
  readonly adminSecret: Uint8Array;
}

export async function selectLogin(sql: Sql, endpointId: EndpointId, roleName: string): Promise<LoginRow | undefined> {
  return first(
    await sql<LoginRow[]>`
      select r.verifier, e.disabled, e.pooler_enabled, e.project_id, e.branch_id, e.type, e.address, p.admin_secret,
        exists (select 1 from roles c where c.branch_id = e.branch_id and c.name = ${roleName} and c.pending) as pending,
        case when (p.settings -> 'allowed_ips' ->> 'protected_branches_only')::boolean and not b.protected
          then '[]'::jsonb else coalesce(p.settings -> 'allowed_ips' -> 'ips', '[]'::jsonb) end as allowed_ips,
        coalesce((p.settings ->> 'block_public_connections')::boolean, false) as public_blocked
      from endpoints e
      join projects p on p.id = e.project_id and p.deleting_at is null
      join branches b on b.id = e.branch_id
      left join roles r on r.branch_id = e.branch_id and r.name = ${roleName} and r.dropped_at is null and not r.no_login
      where e.id = ${endpointId} and e.deleting_at is null`,
  );
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
