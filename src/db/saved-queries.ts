/** Rows of `saved_queries`. */
import type { ProjectId, SavedQueryId } from '../lib/ids.ts';
import { assignments, first, one, type Sql } from './client.ts';

export interface SavedQueryRow {
  readonly id: SavedQueryId;
  readonly projectId: ProjectId;
  readonly name: string;
  readonly query: string;
  readonly isOpen: boolean;
  readonly revision: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type NewSavedQuery = Omit<SavedQueryRow, 'revision' | 'updatedAt'>;

export async function insertSavedQuery(sql: Sql, row: NewSavedQuery): Promise<SavedQueryRow> {
  return one(await sql<SavedQueryRow[]>`insert into saved_queries ${sql(row)} returning *`);
}

/** In the order in which they were made. */
export async function selectSavedQueries(sql: Sql, projectId: ProjectId): Promise<SavedQueryRow[]> {
  return sql<SavedQueryRow[]>`select * from saved_queries where project_id = ${projectId} order by created_at, id`;
}

export async function selectSavedQuery(
  sql: Sql,
  projectId: ProjectId,
  id: SavedQueryId,
): Promise<SavedQueryRow | undefined> {
  return first(await sql<SavedQueryRow[]>`select * from saved_queries where project_id = ${projectId} and id = ${id}`);
}

export async function countSavedQueries(sql: Sql, projectId: ProjectId): Promise<number> {
  return one(
    await sql<{ count: number }[]>`select count(*)::int as count from saved_queries where project_id = ${projectId}`,
  ).count;
}

export type SavedQueryChange = Partial<Pick<SavedQueryRow, 'name' | 'query' | 'isOpen'>>;

export async function updateSavedQuery(
  sql: Sql,
  { id, revision }: SavedQueryRow,
  change: SavedQueryChange,
): Promise<SavedQueryRow> {
  return one(
    await sql<SavedQueryRow[]>`
      update saved_queries ${assignments(sql, { ...change, revision: revision + 1 })} where id = ${id} returning *`,
  );
}

export async function deleteSavedQueryRow(sql: Sql, id: SavedQueryId): Promise<void> {
  await sql`delete from saved_queries where id = ${id}`;
}
