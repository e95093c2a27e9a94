/**
 * Queueing of operations: which job, under which public action, holding which keys. A key stands for something that
 * two operations must not work on at once; see `db/operations.ts` for how they exclude each other.
 */

import type { Tx } from '../db/client.ts';
import type { EndpointRow } from '../db/endpoints.ts';
import {
  cancelOperations,
  countUnfinished,
  insertOperation,
  type NewOperation,
  type OperationRow,
  type OperationState,
  selectOperation,
  selectOperations,
} from '../db/operations.ts';
import { type Clock, dayMs, hourMs, minuteMs } from '../lib/clock.ts';
import { CatnapError, notFound } from '../lib/errors.ts';
import { type BranchId, type EndpointId, newOperationId, type OperationId, type ProjectId } from '../lib/ids.ts';
import { type Caller, requireProject } from './access.ts';
import type { CommandScope, Scope } from './context.ts';

export type Operation = OperationRow;

/** Unfinished operations that one project may have before further writes are answered with 423. */
const unfinishedMax = 500;

export const endpointKey = (id: EndpointId) => `endpoint:${id}`;
export const branchKey = (id: BranchId) => `branch:${id}`;
/** Held by what reads a branch's past, against what takes it away; starts and stops of computes do not need it. */
export const historyKey = (id: BranchId) => `history:${id}`;
export const projectKey = (id: ProjectId) => `project:${id}`;

/** A replica may start with a copy of its primary, which takes a while. */
const replicaDeadlineMs = hourMs;

/**
 * What an operation on a compute holds: the endpoint and the branch's directory, both exclusively. A replica has data
 * of its own and only needs its primary to stay as it is, so it shares the directory, and replicas of one branch do not
 * wait for each other.
 */
export function computeKeys(endpoint: Pick<EndpointRow, 'id' | 'projectId' | 'branchId' | 'type'>) {
  const { projectId, branchId, type } = endpoint;
  const of = { projectId, branchId, endpointId: endpoint.id };
  const [own, branch] = [endpointKey(endpoint.id), branchKey(branchId)];
  return type === 'read_only'
    ? { ...of, exclusive: [own], shared: [branch], deadlineMs: replicaDeadlineMs }
    : { ...of, exclusive: [own, branch] };
}

interface JobFacts {
  /** What the public record calls it; null for work that is not listed. */
  readonly action: string | null;
  readonly firstStep: string;
  readonly deadlineMs: number;
  /** How long it is asked for again, from the beginning, while what runs computes does not answer. */
  readonly outageMs?: number;
}

/** Deletions go on for a day: giving up would leave something behind. */
export const jobs = {
  create_timeline: { action: 'create_timeline', firstStep: 'copy', deadlineMs: 10 * minuteMs },
  apply_storage_config: { action: 'apply_storage_config', firstStep: 'keep', deadlineMs: 10 * minuteMs },
  create_branch: { action: 'create_branch', firstStep: 'copy', deadlineMs: hourMs },
  restore_branch: { action: 'create_branch', firstStep: 'read_source', deadlineMs: hourMs },
  // A request waits for its result, and may ask again while it runs.
  read_schema: { action: null, firstStep: 'copy', deadlineMs: 5 * minuteMs },
  // A compute of the branch starts and stops, so that is what the record says; it has no endpoint to name.
  open_look: { action: 'start_compute', firstStep: 'copy', deadlineMs: 10 * minuteMs },
  close_look: { action: 'suspend_compute', firstStep: 'remove', deadlineMs: dayMs },
  discard_copy: { action: null, firstStep: 'discard', deadlineMs: dayMs },
  create_snapshot: { action: 'timeline_archive', firstStep: 'read_source', deadlineMs: hourMs },
  restore_snapshot: { action: 'create_branch', firstStep: 'copy', deadlineMs: hourMs },
  finalize_restore: { action: 'apply_config', firstStep: 'close', deadlineMs: hourMs },
  delete_snapshot: { action: 'delete_timeline', firstStep: 'remove', deadlineMs: dayMs },
  // As long as somebody brings it; a large project takes days.
  receive_data: { action: 'tenant_attach', firstStep: 'receive', deadlineMs: 14 * dayMs },
  delete_timeline: { action: 'delete_timeline', firstStep: 'remove', deadlineMs: dayMs },
  // A branch that can be recovered keeps its data; its deletion is on record like any other.
  hide_branch: { action: 'delete_timeline', firstStep: 'record', deadlineMs: dayMs },
  // By then nobody waits for it any more, and the next client asks for another.
  start_compute: { action: 'start_compute', firstStep: 'fence', deadlineMs: 2 * minuteMs, outageMs: hourMs },
  suspend_compute: { action: 'suspend_compute', firstStep: 'save_catalog', deadlineMs: 10 * minuteMs },
  ensure_asleep: { action: null, firstStep: 'stop', deadlineMs: dayMs },
  apply_config: { action: 'apply_config', firstStep: 'observe', deadlineMs: 5 * minuteMs },
  check_availability: { action: 'check_availability', firstStep: 'record', deadlineMs: minuteMs },
  suspend_and_remove_compute: { action: 'suspend_compute', firstStep: 'remove', deadlineMs: dayMs },
  // A request waits for its result; a provider that is down for this long is a failure to report.
  create_auth_integration: { action: null, firstStep: 'resume', deadlineMs: 25_000 },
  remove_compute: { action: null, firstStep: 'remove', deadlineMs: dayMs },
  delete_project: { action: null, firstStep: 'remove', deadlineMs: dayMs },
} as const satisfies Record<string, JobFacts>;

export type JobName = keyof typeof jobs;

/** Never cancelled: what they were to remove would stay. */
const removals: readonly JobName[] = [
  'close_look',
  'discard_copy',
  'delete_snapshot',
  'delete_timeline',
  'suspend_and_remove_compute',
  'remove_compute',
  'delete_project',
];

/**
 * Makes way for computes that are to sleep because their branch or project is deleted. Whatever changes data goes on,
 * so that it is complete when it is recovered. The caller holds the project.
 */
export function cancelStarts(tx: Tx, projectId: ProjectId, branchId?: BranchId): Promise<void> {
  if (branchId === undefined) return cancelOperations(tx, projectId, { only: starts });
  // The branch loses its integration; the project would keep it.
  return cancelOperations(tx, projectId, { branchId, only: [...starts, 'create_auth_integration'] });
}

const starts: readonly JobName[] = ['start_compute', 'check_availability', 'open_look'];

/**
 * Makes way for a removal; the caller holds the project. A snapshot that was asked for before its branch is deleted is
 * still taken.
 */
export function cancelAhead(
  tx: Tx,
  projectId: ProjectId,
  of: { readonly branchId?: BranchId; readonly endpointId?: EndpointId },
): Promise<void> {
  const except = of.branchId === undefined ? removals : [...removals, 'create_snapshot'];
  return cancelOperations(tx, projectId, { ...of, except });
}

export const isRemoval = (job: JobName) => removals.includes(job);

export interface EnqueueOptions {
  readonly projectId: ProjectId;
  readonly branchId?: BranchId;
  readonly endpointId?: EndpointId;
  readonly exclusive?: readonly string[];
  readonly shared?: readonly string[];
  readonly state?: OperationState;
  readonly priority?: number;
  /** Counts only if it is longer than the job's own. */
  readonly deadlineMs?: number;
}

/** For operations that a client waits for. */
export const wakePriority = 10;

/** The caller holds the project's row (`lockProject`). */
export async function enqueue(scope: { tx: Tx; clock: Clock }, job: JobName, options: EnqueueOptions) {
  return insertOperation(scope.tx, newOperation(scope.clock, job, options));
}

export function newOperation(clock: Clock, job: JobName, options: EnqueueOptions): NewOperation {
  const facts: JobFacts = jobs[job];
  const wholeProject = projectKey(options.projectId);
  const exclusive = [...(options.exclusive ?? [])];
  const shared = [...(options.shared ?? []), ...(exclusive.includes(wholeProject) ? [] : [wholeProject])];
  return {
    id: newOperationId(),
    projectId: options.projectId,
    branchId: options.branchId ?? null,
    endpointId: options.endpointId ?? null,
    action: facts.action,
    job,
    step: facts.firstStep,
    state: options.state ?? {},
    exclusiveKeys: exclusive,
    sharedKeys: shared,
    priority: options.priority ?? 0,
    deadlineAt: new Date(clock.now().getTime() + Math.max(facts.deadlineMs, options.deadlineMs ?? 0)),
  };
}

/** When work that has just failed is given up. After an outage it gets all of its time once more. */
export function deadlineAfterFailure(
  operation: Pick<OperationRow, 'job' | 'createdAt' | 'deadlineAt'>,
  isOutage: boolean,
  now: Date,
): Date {
  const facts: JobFacts | undefined = jobs[operation.job as JobName];
  if (!isOutage || facts?.outageMs === undefined) return operation.deadlineAt;
  const untilMs = Math.min(now.getTime() + facts.deadlineMs, operation.createdAt.getTime() + facts.outageMs);
  return new Date(Math.max(operation.deadlineAt.getTime(), untilMs));
}

/** Conflicting writes queue in order; only an unreasonably long queue is refused. */
export async function requireRoomInQueue(scope: CommandScope, projectId: ProjectId): Promise<void> {
  requireShortQueue(await countUnfinished(scope.tx, projectId));
}

export function requireShortQueue(unfinished: number): void {
  if (unfinished >= unfinishedMax) {
    throw new CatnapError('locked', 'project has too many running operations, scheduling of new ones is prohibited', {
      retryAfterSeconds: 2,
    });
  }
}

export async function getOperation(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  id: OperationId,
): Promise<Operation> {
  await requireProject(scope, caller, projectId);
  const operation = await selectOperation(scope.sql, projectId, id);
  if (operation === undefined) throw notFound('operation');
  return operation;
}

export async function listOperations(
  scope: Scope,
  caller: Caller,
  projectId: ProjectId,
  page: { readonly cursor: string | null; readonly limit: number },
): Promise<{ readonly operations: Operation[]; readonly cursor: string | null }> {
  await requireProject(scope, caller, projectId);
  const operations = await selectOperations(scope.sql, projectId, { before: page.cursor, limit: page.limit });
  return { operations, cursor: operations.at(-1)?.cursor ?? null };
}
