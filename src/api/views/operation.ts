/** Operations: row to wire. */
import type { Static } from 'typebox';
import type { listOperations, Operation } from '../../core/operation.ts';
import {
  type Operation as OperationSchema,
  type OperationsQuery,
  type OperationsReply,
  operationActions,
} from '../schemas/operation.ts';
import { optionalTime, present, time } from './common.ts';
import { requireTimeCursor } from './cursor.ts';

type OperationView = Static<typeof OperationSchema>;

export function operationView(row: Operation): OperationView {
  return {
    id: row.id,
    project_id: row.projectId,
    ...present({ branch_id: row.branchId, endpoint_id: row.endpointId }),
    action: actionOf(row),
    status: row.status,
    ...present({ error: row.error }),
    failures_count: row.failuresCount,
    ...present({ retry_at: optionalTime(row.retryAt) }),
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
    total_duration_ms: row.finishedAt === null ? 0 : row.finishedAt.getTime() - row.createdAt.getTime(),
  };
}

export const operationViews = (rows: readonly Operation[]): OperationView[] => rows.map(operationView);

/** Strict clients refuse an action they do not know, so an unlisted one must never be sent. */
function actionOf(row: Operation): OperationView['action'] {
  const action = operationActions.find((known) => known === row.action);
  if (action === undefined) throw new Error(`BUG: operation ${row.id} has the unpublished action ${row.action}`);
  return action;
}

export function operationsPage(query: Static<typeof OperationsQuery>) {
  return {
    cursor: query.cursor === undefined ? null : requireTimeCursor(query.cursor),
    limit: query.limit ?? 1000,
  };
}

export function operationsView(page: Awaited<ReturnType<typeof listOperations>>): Static<typeof OperationsReply> {
  return {
    operations: operationViews(page.operations),
    ...(page.cursor === null ? {} : { pagination: { cursor: page.cursor } }),
  };
}
