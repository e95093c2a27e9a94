/** Every job by name. The sweeps walk this table, so a new job is covered by being here. */
import type { JobName } from '../core/operation.ts';
import { applyConfig } from './apply-config.ts';
import { applyStorageConfig } from './apply-storage-config.ts';
import { checkAvailability } from './check-availability.ts';
import { createAuthIntegration } from './create-auth-integration.ts';
import { createBranch } from './create-branch.ts';
import { createSnapshot, deleteSnapshot } from './create-snapshot.ts';
import { createTimeline } from './create-timeline.ts';
import { finalizeRestore } from './finalize-restore.ts';
import { closeLook, openLook } from './look.ts';
import { readSchema } from './read-schema.ts';
import { receiveData } from './receive-data.ts';
import { deleteProject, deleteTimeline, hideBranch, removeCompute } from './removals.ts';
import { discardCopy, restoreBranch } from './restore-branch.ts';
import { restoreSnapshot } from './restore-snapshot.ts';
import { startCompute } from './start-compute.ts';
import type { Job } from './step.ts';
import { ensureAsleep, suspendCompute } from './suspend-compute.ts';

export const jobRegistry: Readonly<Record<JobName, Job>> = {
  create_timeline: createTimeline,
  apply_storage_config: applyStorageConfig,
  create_branch: createBranch,
  restore_branch: restoreBranch,
  read_schema: readSchema,
  open_look: openLook,
  close_look: closeLook,
  discard_copy: discardCopy,
  create_snapshot: createSnapshot,
  restore_snapshot: restoreSnapshot,
  finalize_restore: finalizeRestore,
  delete_snapshot: deleteSnapshot,
  receive_data: receiveData,
  delete_timeline: deleteTimeline,
  hide_branch: hideBranch,
  start_compute: startCompute,
  suspend_compute: suspendCompute,
  ensure_asleep: ensureAsleep,
  apply_config: applyConfig,
  check_availability: checkAvailability,
  create_auth_integration: createAuthIntegration,
  suspend_and_remove_compute: removeCompute,
  remove_compute: removeCompute,
  delete_project: deleteProject,
};
