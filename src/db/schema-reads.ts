/** Rows of `schema_reads`: schemas of the past that were read and wait to be taken. */
import type { OperationId, ProjectId } from '../lib/ids.ts';
import { first, json, type Sql } from './client.ts';
import type { OperationState } from './operations.ts';

export type SchemaResult =
  | { readonly sql: string }
  /** Why that moment cannot be given. */
  | { readonly refused: string }
  /** The moment has no such database. */
  | { readonly missing: true };

export async function insertSchemaRead(
  sql: Sql,
  read: { readonly operationId: OperationId; readonly projectId: ProjectId; readonly wanted: OperationState },
  result: SchemaResult,
): Promise<void> {
  const row = { ...read, wanted: json(sql, read.wanted), result: json(sql, result) };
  await sql`insert into schema_reads ${sql(row)} on conflict (operation_id) do nothing`;
}

/** The operation that reads, or has read, the same. */
export async function selectSameRead(
  sql: Sql,
  projectId: ProjectId,
  wanted: OperationState,
): Promise<{ readonly id: OperationId } | undefined> {
  return first(
    await sql<{ id: OperationId }[]>`
      select operation_id as id from schema_reads where project_id = ${projectId} and wanted = ${json(sql, wanted)}
      union all
      select id from operations
      where project_id = ${projectId} and job = 'read_schema' and state @> ${json(sql, wanted)}
        and status in ('scheduling', 'running', 'failed')
      limit 1`,
  );
}

/** Takes it away: it may be large. */
export async function takeSchemaRead(sql: Sql, id: OperationId): Promise<SchemaResult | undefined> {
  const rows = await sql<
    { result: SchemaResult }[]
  >`delete from schema_reads where operation_id = ${id} returning result`;
  return first(rows)?.result;
}

/** Those that nobody has taken. */
export async function deleteOldSchemaReads(sql: Sql, olderThanMinutes: number): Promise<number> {
  const rows = await sql`
    delete from schema_reads where created_at < now() - ${olderThanMinutes} * interval '1 minute' returning 1`;
  return rows.length;
}
