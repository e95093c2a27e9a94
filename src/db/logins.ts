/** What a login at the proxy needs to know, in one statement: it is asked for every connection. */
import type { EndpointId } from '../ids.ts';
import { first, type Sql } from './client.ts';

export interface LoginRow {
  readonly verifier: string | null;
  readonly disabled: boolean;
  readonly allowedIps: readonly string[];
}

export async function selectLogin(sql: Sql, endpointId: EndpointId, roleName: string): Promise<LoginRow | undefined> {
  return first(
    await sql<LoginRow[]>`
      select r.verifier, e.disabled,
        case when (p.settings -> 'allowed_ips' ->> 'protected_branches_only')::boolean and not b.protected
          then '[]'::jsonb else coalesce(p.settings -> 'allowed_ips' -> 'ips', '[]'::jsonb) end as allowed_ips
      from endpoints e
      join projects p on p.id = e.project_id and p.deleting_at is null
      join branches b on b.id = e.branch_id
      left join roles r on r.branch_id = e.branch_id and r.name = ${roleName} and r.dropped_at is null and not r.no_login
      where e.id = ${endpointId} and e.deleting_at is null`,
  );
}
