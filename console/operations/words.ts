/** Operations in words: what each does or did, what it is about, and what a failure means for a person. */
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { count, milliseconds } from '../ui/format.ts';
import type { Tone } from '../ui/tone.ts';

interface Words {
  readonly doing: string;
  readonly done: string;
  /** After "Could not". */
  readonly verb: string;
  /** What stands before the name; empty where there is nothing to name. */
  readonly what: string;
}

const words = (doing: string, done: string, verb: string, what: string): Words => ({ doing, done, verb, what });

const actions: Readonly<Record<string, Words>> = {
  create_timeline: words('Creating', 'Created', 'create', 'the first branch'),
  create_branch: words('Creating', 'Created', 'create', 'branch'),
  delete_timeline: words('Deleting', 'Deleted', 'delete', 'branch or snapshot'),
  start_compute: words('Starting', 'Started', 'start', 'the compute of'),
  suspend_compute: words('Suspending', 'Suspended', 'suspend', 'the compute of'),
  create_compute: words('Creating', 'Created', 'create', 'a compute of'),
  apply_config: words('Applying', 'Applied', 'apply', 'a change to'),
  apply_storage_config: words('Applying', 'Applied', 'apply', 'the new window of history'),
  check_availability: words('Checking', 'Checked', 'check', 'the availability of'),
  timeline_archive: words('Taking', 'Took', 'take', 'a snapshot of'),
  timeline_unarchive: words('Bringing back', 'Brought back', 'bring back', 'branch'),
  sync_dbs_and_roles_from_compute: words('Reading', 'Read', 'read', 'roles and databases of'),
};

const wordsOf = (action: string): Words =>
  actions[action] ?? words('Running', 'Ran', 'run', action.replaceAll('_', ' '));

/** `Starting`, for a place that has named the compute already. */
export const doingText = (action: string) => wordsOf(action).doing;

const open: readonly string[] = ['scheduling', 'running', 'failed', 'cancelling'];

export const isOpen = (operation: Operation) => open.includes(operation.status);

export interface Subject {
  readonly branchId: string;
  readonly name: string;
}

/** What is known of a project, by which ids become names. */
export interface Named {
  readonly branches: readonly Pick<Branch, 'id' | 'name'>[];
  readonly endpoints: readonly Endpoint[];
}

/** Undefined for what is removed for good, and for what is about the whole project. */
export function subjectOf({ branch_id, endpoint_id }: Operation, { branches, endpoints }: Named): Subject | undefined {
  const endpoint = endpoints.find(({ id }) => id === endpoint_id);
  // A compute may have moved since; the operation is about the branch that it served.
  const branch = branches.find(({ id }) => id === (branch_id ?? endpoint?.branch_id));
  return branch === undefined ? undefined : { branchId: branch.id, name: branch.name };
}

/** `Could not start the compute of`, before the name. */
export function titleOf(operation: Operation, subject: Subject | undefined): string {
  const { doing, done, verb, what: whatever } = wordsOf(operation.action);
  // A snapshot is no branch that has a name here.
  const what = operation.action === 'delete_timeline' && subject !== undefined ? 'branch' : whatever;
  const begin = { finished: done, error: `Could not ${verb}`, cancelled: 'Cancelled:', skipped: 'Not needed:' }[
    operation.status as string
  ];
  if (operation.status === 'cancelled' || operation.status === 'skipped')
    return `${begin} ${doing.toLowerCase()} ${what}`;
  return `${begin ?? doing} ${what}`;
}

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

export const statusNames: Readonly<Record<Operation['status'], string>> = {
  scheduling: 'waiting',
  running: 'running',
  finished: 'finished',
  failed: 'trying again',
  error: 'failed',
  cancelling: 'cancelling',
  cancelled: 'cancelled',
  skipped: 'skipped',
};

/** What a failure means, to follow its cause; empty where the cause says all. */
export function consequenceOf({ status, failures_count: failures, total_duration_ms: ms }: Operation): string {
  if (status === 'failed') return `Failed ${count(failures, 'time')} so far; Catnap tries again by itself.`;
  if (status === 'error') return failures > 1 ? `Tried ${failures} times in ${milliseconds(ms)}, then given up.` : '';
  return failures > 0 ? `It failed ${count(failures, 'time')} before that.` : '';
}
