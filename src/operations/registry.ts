/** Every job by name. The sweeps walk this table, so a new job is covered by being here. */
import type { JobName } from '../core/operation.ts';
import { applyConfig } from './apply-config.ts';
import { applyStorageConfig } from './apply-storage-config.ts';
import { checkAvailability } from './check-availability.ts';
import { createAuthIntegration } from './create-auth-integration.ts';
import { createBranch } from './create-branch.ts';
import { createTimeline } from './create-timeline.ts';
import { closeLook, openLook } from './look.ts';
import { readSchema } from './read-schema.ts';
import { deleteProject, deleteTimeline, removeCompute } from './removals.ts';
import { discardCopy, restoreBranch } from './restore-branch.ts';
import { startCompute } from './start-compute.ts';
import type { Job } from './step.ts';
import { suspendCompute } from './suspend-compute.ts';

export const jobRegistry: Readonly<Record<JobName, Job>> = {
  create_timeline: createTimeline,
  apply_storage_config: applyStorageConfig,
  create_branch: createBranch,
  restore_branch: restoreBranch,
  read_schema: readSchema,
  open_look: openLook,
  close_look: closeLook,
  discard_copy: discardCopy,
  delete_timeline: deleteTimeline,
  start_compute: startCompute,
  suspend_compute: suspendCompute,
  apply_config: applyConfig,
  check_availability: checkAvailability,
  create_auth_integration: createAuthIntegration,
  suspend_and_remove_compute: removeCompute,
  remove_compute: removeCompute,
  delete_project: deleteProject,
};
