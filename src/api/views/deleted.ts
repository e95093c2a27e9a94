/** What was deleted: row to wire. */
import type { Static } from 'typebox';
import type { DeletedThing } from '../../core/recovery.ts';
import type { DeletedThing as DeletedThingSchema } from '../schemas/deleted.ts';
import { present, time } from './common.ts';

export function deletedView(row: DeletedThing): Static<typeof DeletedThingSchema> {
  return {
    kind: row.kind,
    project_id: row.projectId,
    project_name: row.projectName,
    ...present({ branch_id: row.branchId }),
    name: row.name,
    ...present({ logical_size: row.logicalSize }),
    deleted_at: time(row.deletedAt),
    recoverable_until: time(row.recoverableUntil),
    deletion_method: row.deletionMethod,
  };
}
