/** Rows of `databases`: what a branch's server should hold, and what it is known to hold. */
import type { BranchId } from '../lib/ids.ts';
import { assignments, first, one, type Sql } from './client.ts';

export interface DatabaseRow {
  readonly id: number;
  readonly branchId: BranchId;
  readonly name: string;
  readonly ownerName: string;
  readonly appliedName: string | null;
  readonly pending: boolean;
  readonly revision: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly droppedAt: Date | null;
}

export async function insertDatabase(
  sql: Sql,
  database: Pick<DatabaseRow, 'branchId' | 'name' | 'ownerName'> & {
    readonly appliedName?: string | null;
    readonly pending?: boolean;
    readonly droppedAt?: Date | null;
  },
): Promise<DatabaseRow> {
  return one(await sql<DatabaseRow[]>`insert into databases ${sql(database)} returning *`);
}

export async function selectDatabases(sql: Sql, branchId: BranchId): Promise<DatabaseRow[]> {
  return sql<DatabaseRow[]>`
    select * from databases where branch_id = ${branchId} and dropped_at is null order by id`;
}

export async function selectDatabase(sql: Sql, branchId: BranchId, name: string): Promise<DatabaseRow | undefined> {
  return first(
    await sql<DatabaseRow[]>`
      select * from databases where branch_id = ${branchId} and name = ${name} and dropped_at is null`,
  );
}

/** Includes those marked dropped: what `apply_config` works from. */
export async function selectDatabasesToApply(sql: Sql, branchId: BranchId): Promise<DatabaseRow[]> {
  return sql<DatabaseRow[]>`select * from databases where branch_id = ${branchId} and pending order by id`;
}

export async function updateDatabase(
  sql: Sql,
  id: number,
  change: Partial<Pick<DatabaseRow, 'name' | 'ownerName' | 'appliedName' | 'pending' | 'droppedAt'>>,
): Promise<DatabaseRow> {
  return one(
    await sql<
      DatabaseRow[]
    >`update databases ${assignments(sql, change)}, revision = revision + 1 where id = ${id} returning *`,
  );
}

/** Marks as applied only what has not changed since it was read. */
export async function markDatabaseApplied(sql: Sql, row: DatabaseRow): Promise<void> {
  if (row.droppedAt !== null) {
    await sql`delete from databases where id = ${row.id}`;
    return;
  }
  await sql`
    update databases set applied_name = ${row.name}, pending = (revision <> ${row.revision}) where id = ${row.id}`;
}

/** Copies the parent's live databases to a child, whose copied directory will hold the same. */
export async function copyDatabases(sql: Sql, from: BranchId, to: BranchId): Promise<DatabaseRow[]> {
  return sql<DatabaseRow[]>`
    insert into databases (branch_id, name, owner_name, applied_name, pending, dropped_at)
    select ${to}, name, owner_name, applied_name, pending, dropped_at from databases
    where branch_id = ${from} order by id returning *`;
}

/** As for roles. */
export async function confirmCopiedDatabases(sql: Sql, from: BranchId, to: BranchId): Promise<void> {
  await sql`
    update databases d set applied_name = d.name, pending = false from databases o
    where d.branch_id = ${to} and d.pending and d.dropped_at is null
      and o.branch_id = ${from} and o.applied_name = d.name and o.owner_name = d.owner_name`;
  await sql`
    delete from databases d where branch_id = ${to} and pending and dropped_at is not null and not exists (
      select 1 from databases o where o.branch_id = ${from} and o.name = d.name and o.dropped_at is not null)`;
  // One that was to get another name, and has a third one on its parent by now: the copy holds it under that.
  await sql`
    with gone as (
      delete from databases d
      where branch_id = ${to} and pending and dropped_at is null and applied_name is not null and not exists (
        select 1 from databases o where o.branch_id = ${from} and o.applied_name in (d.applied_name, d.name))
      returning 1
    )
    insert into databases (branch_id, name, owner_name, applied_name, pending)
    select ${to}, applied_name, owner_name, applied_name, false from databases o
    where branch_id = ${from} and applied_name is not null and dropped_at is null and exists (select 1 from gone)
      and not exists (
        select 1 from databases d where d.branch_id = ${to} and o.applied_name in (d.applied_name, d.name))`;
}

/** For a copy of the past, to which changes that wait for the server of today do not belong. */
export async function deletePendingDatabases(sql: Sql, branchId: BranchId): Promise<void> {
  await sql`delete from databases where branch_id = ${branchId} and pending`;
}

/** Includes those marked dropped, for a copy of a whole branch. */
export async function selectAllDatabases(sql: Sql, branchId: BranchId): Promise<DatabaseRow[]> {
  return sql<DatabaseRow[]>`select * from databases where branch_id = ${branchId} order by id`;
}

/** Moves them to another branch, or deletes them if `to` is null. */
export async function moveDatabases(sql: Sql, from: BranchId, to: BranchId | null): Promise<void> {
  if (to === null) await sql`delete from databases where branch_id = ${from}`;
  else await sql`update databases set branch_id = ${to} where branch_id = ${from}`;
}

export async function deleteDatabaseRow(sql: Sql, id: number): Promise<void> {
  await sql`delete from databases where id = ${id}`;
}
