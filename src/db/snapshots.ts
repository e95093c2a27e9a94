/** Rows of `snapshots`. */
import type { BranchId, ProjectId, SnapshotId } from '../lib/ids.ts';
import { assignments, first, json, one, type Sql } from './client.ts';

export interface SnapshotRow {
  readonly id: SnapshotId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly slug: string;
  readonly sourceBranchId: BranchId;
  readonly currentState: 'init' | 'ready';
  readonly manual: boolean;
  readonly lsn: string | null;
  readonly takenAt: Date | null;
  readonly receipt: Readonly<Record<string, string | number | null>> | null;
  readonly logicalSize: number | null;
  /** As `core/catalog-snapshot.ts` takes it. */
  readonly catalog: object | null;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly deletingAt: Date | null;
}

export type NewSnapshot = Pick<
  SnapshotRow,
  'id' | 'projectId' | 'name' | 'slug' | 'sourceBranchId' | 'manual' | 'expiresAt' | 'createdAt'
>;

export async function insertSnapshot(sql: Sql, row: NewSnapshot): Promise<SnapshotRow> {
  return one(await sql<SnapshotRow[]>`insert into snapshots ${sql(row)} returning *`);
}

/** Newest first. */
export async function selectSnapshots(sql: Sql, projectId: ProjectId): Promise<SnapshotRow[]> {
  return sql<SnapshotRow[]>`
    select * from snapshots where project_id = ${projectId} and deleting_at is null order by created_at desc, id`;
}

export async function selectSnapshot(sql: Sql, projectId: ProjectId, id: SnapshotId): Promise<SnapshotRow | undefined> {
  return first(
    await sql<SnapshotRow[]>`
      select * from snapshots where project_id = ${projectId} and id = ${id} and deleting_at is null`,
  );
}

/** For operations, which still read one that is being deleted. */
export async function selectSnapshotInAnyState(sql: Sql, id: SnapshotId): Promise<SnapshotRow | undefined> {
  return first(await sql<SnapshotRow[]>`select * from snapshots where id = ${id}`);
}

export async function countSnapshots(sql: Sql, projectId: ProjectId): Promise<number> {
  return one(
    await sql<{ count: number }[]>`
      select count(*)::int as count from snapshots where project_id = ${projectId} and deleting_at is null`,
  ).count;
}

export async function isSlugTaken(sql: Sql, projectId: ProjectId, slug: string): Promise<boolean> {
  const rows = await sql`
    select 1 from snapshots where project_id = ${projectId} and slug = ${slug} and deleting_at is null`;
  return rows.length > 0;
}

/** Those of a project that is deleted go with it, or come back with it. */
export async function selectExpiredSnapshots(sql: Sql, now: Date): Promise<Pick<SnapshotRow, 'id' | 'projectId'>[]> {
  return sql`
    select s.id, s.project_id from snapshots s join projects p on p.id = s.project_id and p.deleting_at is null
    where s.expires_at <= ${now} and s.deleting_at is null order by s.expires_at`;
}

/** Those that have their data; a project that is deleted keeps what is kept of its own. */
export async function selectReadySnapshots(
  sql: Sql,
): Promise<(Pick<SnapshotRow, 'id' | 'projectId'> & { readonly tenantUid: number | null })[]> {
  return sql`
    select s.id, s.project_id, p.tenant_uid
    from snapshots s join projects p on p.id = s.project_id and p.deleting_at is null
    where s.current_state = 'ready' and s.deleting_at is null order by s.created_at, s.id`;
}

export type SnapshotChange = Partial<
  Pick<SnapshotRow, 'name' | 'currentState' | 'lsn' | 'takenAt' | 'logicalSize' | 'expiresAt' | 'deletingAt'>
> & { readonly receipt?: object; readonly catalog?: object };

export async function updateSnapshot(sql: Sql, id: SnapshotId, change: SnapshotChange): Promise<SnapshotRow> {
  const receipt = change.receipt && json(sql, change.receipt);
  const catalog = change.catalog && json(sql, change.catalog);
  return one(
    await sql<SnapshotRow[]>`
      update snapshots ${assignments(sql, { ...change, receipt, catalog })} where id = ${id} returning *`,
  );
}

export async function deleteSnapshotRow(sql: Sql, id: SnapshotId): Promise<void> {
  await sql`delete from snapshots where id = ${id}`;
}
