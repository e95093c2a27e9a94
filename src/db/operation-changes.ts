/** Operations by when they last changed, with what decides which callers may see them. */
import type { OrganizationId } from '../lib/ids.ts';
import { one, type Sql } from './client.ts';
import type { OperationRow } from './operations.ts';

export interface OperationChange extends OperationRow {
  readonly organizationId: OrganizationId;
}

/** Oldest change first. Work that is not listed in public is not here either. */
export async function selectChangedOperations(sql: Sql, since: Date, limit: number): Promise<OperationChange[]> {
  return sql<OperationChange[]>`
    select o.*, p.organization_id from operations o join projects p on p.id = o.project_id
    where o.updated_at >= ${since} and o.action is not null order by o.updated_at limit ${limit}`;
}

/** The time by the clock that operations are stamped with. */
export async function selectDatabaseTime(sql: Sql): Promise<Date> {
  return one(await sql<{ now: Date }[]>`select clock_timestamp() as now`).now;
}
