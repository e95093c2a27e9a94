/** Operations in words: what each does, and what a failure means for a person who waits for it. */
import type { Operation } from '../api/generated.ts';
import type { Tone } from '../ui/bits.tsx';

const actions: Readonly<Record<string, string>> = {
  create_timeline: 'Creating the project’s data',
  create_branch: 'Creating the branch',
  delete_timeline: 'Deleting a branch or snapshot',
  start_compute: 'Starting the compute',
  suspend_compute: 'Suspending the compute',
  apply_config: 'Applying the change',
  apply_storage_config: 'Applying the new window of history',
  check_availability: 'Checking availability',
  create_compute: 'Creating the compute',
  timeline_archive: 'Taking the snapshot',
  timeline_unarchive: 'Bringing back the branch',
  sync_dbs_and_roles_from_compute: 'Reading roles and databases',
};

export function explainAction(action: string): string {
  return actions[action] ?? action.replaceAll('_', ' ');
}

const open: readonly string[] = ['scheduling', 'running', 'failed', 'cancelling'];

export const isOpen = (operation: Operation) => open.includes(operation.status);

export const statusTones: Readonly<Record<Operation['status'], Tone>> = {
  scheduling: 'plain',
  running: 'accent',
  finished: 'good',
  failed: 'warn',
  error: 'bad',
  cancelling: 'warn',
  cancelled: 'plain',
  skipped: 'plain',
};

const explanations: Readonly<Record<Operation['status'], string>> = {
  scheduling: 'It waits for an earlier operation.',
  running: 'It is running.',
  finished: 'It has finished.',
  failed: 'The last try failed; Catnap tries again by itself.',
  error: 'It failed for good when its deadline passed. Check whether the change was made, and try it again if not.',
  cancelling: 'What it works on was deleted; it stops after its current step.',
  cancelled: 'What it works on was deleted before it started.',
  skipped: 'There was nothing to do.',
};

export const explainStatus = (status: Operation['status']) => explanations[status];
