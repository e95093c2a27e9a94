/** Statements on a system database that was recovered from a backup, before any process of Catnap uses it. */
import type { ProjectId } from '../lib/ids.ts';
import { first, type Sql } from './client.ts';

/** A branch or a snapshot: something that has a data directory. */
export interface DataOwner {
  readonly projectId: ProjectId;
  readonly projectName: string;
  readonly pgVersion: number;
  readonly tenantUid: number | null;
  readonly adminSecret: Uint8Array;
  readonly id: string;
  readonly name: string;
  readonly isSnapshot: boolean;
  /** False for one that was deleted and may still be recovered. */
  readonly isListed: boolean;
}

/** Those whose data was complete, the most recently used projects first. */
export async function selectDataOwners(sql: Sql): Promise<DataOwner[]> {
  const branches = await sql<DataOwner[]>`
    select p.id as project_id, p.name as project_name, p.pg_version, p.tenant_uid, p.admin_secret, b.id, b.name,
      false as is_snapshot, p.deleting_at is null and b.deleting_at is null as is_listed
    from branches b join projects p on p.id = b.project_id
    where b.current_state <> 'init'
    order by (select max(e.last_active) from endpoints e where e.project_id = p.id) desc nulls last, p.id,
      b.is_default desc, b.id`;
  if (!(await hasTable(sql, 'snapshots'))) return branches;
  const snapshots = await sql<DataOwner[]>`
    select p.id as project_id, p.name as project_name, p.pg_version, p.tenant_uid, p.admin_secret, s.id, s.name,
      true as is_snapshot, p.deleting_at is null and s.deleting_at is null as is_listed
    from snapshots s join projects p on p.id = s.project_id
    where s.current_state = 'ready' order by p.id, s.id`;
  return [...branches, ...snapshots];
}

/** A backup may be older than this version of Catnap, whose migrations run at its start. */
async function hasTable(sql: Sql, name: string): Promise<boolean> {
  return first(await sql<{ found: boolean }[]>`select to_regclass(${name}) is not null as found`)?.found === true;
}

/** Without uids of their own where Catnap does not run as root, with one each where it does. */
export async function updateTenantUids(sql: Sql, firstTenant: number | null): Promise<void> {
  if (firstTenant === null) await sql`update projects set tenant_uid = null where tenant_uid is not null`;
  else {
    await sql`
      update projects set tenant_uid = ${firstTenant} + nextval('tenant_numbers')
      where tenant_uid is null or tenant_uid < ${firstTenant}`;
  }
}

/**
 * Takes back what is true of the old machine only: how far the past of a branch reaches, and copies that operations had
 * made and not used yet. Computes that were awake are found missing, and started again, as after a reboot.
 */
export async function forgetOldMachine(sql: Sql): Promise<void> {
  await sql`
    update operations set step = 'copy'
    where job = 'restore_branch' and step in ('stop', 'exchange') and finished_at is null`;
  const rows = await sql<{ found: boolean }[]>`
    select true as found from pg_attribute
    where attrelid = 'branches'::regclass and attname = 'history' and not attisdropped`;
  if (first(rows)?.found) await sql`update branches set history = null`;
}
