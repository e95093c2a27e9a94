/** Operations: durable pieces of work, as callers see them. */
import { Type } from 'typebox';
import { idOf, ref, time } from './common.ts';
import { CursorPage, cursorQuery, limitQuery } from './pagination.ts';

/** The 22 actions that every published client knows; strict clients refuse any other word. */
export const operationActions = [
  'create_compute',
  'create_timeline',
  'start_compute',
  'suspend_compute',
  'apply_config',
  'check_availability',
  'delete_timeline',
  'create_branch',
  'tenant_ignore',
  'tenant_attach',
  'tenant_detach',
  'tenant_reattach',
  'replace_safekeeper',
  'disable_maintenance',
  'apply_storage_config',
  'prepare_secondary_pageserver',
  'switch_pageserver',
  'detach_parent_branch',
  'timeline_archive',
  'timeline_unarchive',
  'start_reserved_compute',
  'sync_dbs_and_roles_from_compute',
] as const;

export const operationStatuses = [
  'scheduling',
  'running',
  'finished',
  'failed',
  'error',
  'cancelling',
  'cancelled',
  'skipped',
] as const;

export const Operation = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the operation.' }),
    project_id: idOf('project'),
    branch_id: Type.Optional(idOf('branch')),
    endpoint_id: Type.Optional(idOf('endpoint')),
    action: Type.Enum(operationActions, { description: 'What is done.' }),
    status: Type.Enum(operationStatuses, {
      description: '`failed` is tried again; `finished`, `error`, `cancelled` and `skipped` are final.',
    }),
    error: Type.Optional(Type.String({ description: 'Why the last try failed.' })),
    failures_count: Type.Integer({ minimum: 0, description: 'Tries that failed so far.' }),
    retry_at: Type.Optional(time('When the next try is due.')),
    created_at: time('When it was queued.'),
    updated_at: time('When its status last changed.'),
    total_duration_ms: Type.Integer({ minimum: 0, description: 'Milliseconds from queueing to the end.' }),
  },
  { $id: 'Operation', description: 'One durable piece of work on a project, a branch or a compute.' },
);

/** Part of every reply to a write: the work that the request queued, in the order it will run. */
export const operationList = Type.Array(ref(Operation), {
  description: 'Work that the request queued, in order; the resource is ready when the last one is finished.',
});

export const OperationReply = Type.Object({ operation: ref(Operation) });
export const OperationsReply = Type.Object({
  operations: Type.Array(ref(Operation)),
  pagination: Type.Optional(ref(CursorPage)),
});

export const OperationsQuery = Type.Object({ cursor: cursorQuery, limit: limitQuery(1000, 1000) });
export const OperationParams = Type.Object({
  project_id: idOf('project'),
  operation_id: Type.String({ format: 'uuid', description: 'Id of the operation.' }),
});
