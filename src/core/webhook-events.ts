/**
 * What webhooks are told of. Each event has a name that says what has happened, so that looking twice reports it once:
 * the end of an operation, a quota of a month, a day on which the backups of a project were late.
 */
import { randomUUID } from 'node:crypto';
import { selectProject, selectProjectIdsWithQuota } from '../db/projects.ts';
import {
  type EndedOperation,
  insertDeliveries,
  type Listener,
  type NewDelivery,
  selectEndedOperations,
  selectListeners,
  type WebhookEvent,
} from '../db/webhooks.ts';
import type { ProjectId } from '../lib/ids.ts';
import { findLateBackups, type HistoryBackup } from './backup.ts';
import type { Scope } from './context.ts';
import { nearQuotas, type QuotaUse } from './quota.ts';

/** An error of Postgres can quote whatever somebody has sent. */
const errorLengthMax = 2_000;
/** The rest of them are counted. */
const branchesMax = 50;

interface Happening {
  readonly eventId: string;
  readonly event: WebhookEvent;
  readonly at: Date;
  readonly projectId: ProjectId;
  readonly data: object;
}

/** Records the operations that have ended in the last `seconds`, once for each webhook that is told of them. */
export async function recordEnds(scope: Scope, seconds: number): Promise<void> {
  for (const [event, happeningOf] of [
    ['operation.ended', operationEnded],
    ['compute.woke', computeWoke],
  ] as const) {
    const ended = await selectEndedOperations(scope.sql, event, seconds);
    await record(
      scope,
      ended.map((operation) => ({ webhookId: operation.webhookId, happening: happeningOf(operation) })),
    );
  }
}

/** Records quotas that are nearly used up, and backups that are late. */
export async function recordConditions(scope: Scope): Promise<void> {
  await record(scope, await quotasNear(scope, await selectListeners(scope.sql, 'quota.near')));
  await record(scope, await backupsLate(scope, await selectListeners(scope.sql, 'backup.late')));
}

interface Told {
  readonly webhookId: Listener['id'];
  readonly happening: Happening;
}

async function record({ sql, clock }: Scope, told: readonly Told[]): Promise<void> {
  const now = clock.now();
  const rows = told.map(({ webhookId, happening }): NewDelivery => {
    const { eventId, event, at, projectId, data } = happening;
    const body = JSON.stringify({ id: eventId, type: event, timestamp: at.toISOString(), project_id: projectId, data });
    return { id: randomUUID(), webhookId, eventId, event, body, replayOf: null, dueAt: now, createdAt: now };
  });
  await insertDeliveries(sql, rows);
}

function operationEnded(operation: EndedOperation): Happening {
  const { id, projectId, action, status, error, failuresCount, createdAt, finishedAt } = operation;
  return {
    eventId: `operation.ended:${id}`,
    event: 'operation.ended',
    at: finishedAt,
    projectId,
    data: {
      operation_id: id,
      action,
      status,
      ...subjectOf(operation),
      ...(error !== null && { error: error.slice(0, errorLengthMax) }),
      failures_count: failuresCount,
      created_at: createdAt.toISOString(),
      ended_at: finishedAt.toISOString(),
    },
  };
}

function computeWoke(operation: EndedOperation): Happening {
  const { id, projectId, createdAt, finishedAt } = operation;
  const data = {
    ...subjectOf(operation),
    operation_id: id,
    asked_at: createdAt.toISOString(),
    woke_at: finishedAt.toISOString(),
  };
  return { eventId: `compute.woke:${id}`, event: 'compute.woke', at: finishedAt, projectId, data };
}

const subjectOf = ({ branchId, endpointId }: EndedOperation) => ({
  ...(branchId !== null && { branch_id: branchId }),
  ...(endpointId !== null && { endpoint_id: endpointId }),
});

async function quotasNear(scope: Scope, listeners: readonly Listener[]): Promise<Told[]> {
  const now = scope.clock.now();
  const told: Told[] = [];
  const limited = listeners.length === 0 ? [] : await selectProjectIdsWithQuota(scope.sql);
  for (const [projectId, ofProject] of byProject(listeners)) {
    const project = limited.includes(projectId) ? await selectProject(scope.sql, projectId) : undefined;
    for (const use of project === undefined ? [] : nearQuotas(project, now)) {
      const happening = quotaNear(projectId, use, now);
      told.push(...ofProject.map(({ id }) => ({ webhookId: id, happening })));
    }
  }
  return told;
}

/** The limit is part of the name: of a quota that was raised people are told again. */
function quotaNear(projectId: ProjectId, { name, unit, limit, used, period }: QuotaUse, at: Date): Happening {
  const start = period.start.toISOString().slice(0, 10);
  return {
    eventId: `quota.near:${projectId}:${name}:${limit}:${start}`,
    event: 'quota.near',
    at,
    projectId,
    data: { quota: name, unit, limit, used, resets_at: period.end.toISOString() },
  };
}

async function backupsLate(scope: Scope, listeners: readonly Listener[]): Promise<Told[]> {
  if (listeners.length === 0) return [];
  const late = await findLateBackups(scope);
  const now = scope.clock.now();
  return [...byProject(listeners)].flatMap(([projectId, ofProject]) => {
    const histories = late.get(projectId);
    if (histories === undefined) return [];
    const happening = backupLate(projectId, histories, now);
    return ofProject.map(({ id }) => ({ webhookId: id, happening }));
  });
}

/** Once a day for as long as it lasts. */
function backupLate(projectId: ProjectId, histories: readonly HistoryBackup[], at: Date): Happening {
  const branches = histories.slice(0, branchesMax).map((one) => ({
    branch_id: one.branchId,
    ...(one.snapshotId !== null && { snapshot_id: one.snapshotId }),
    // Null while the store has no base image, and so nothing of it.
    behind_seconds: one.baseCount === 0 ? null : one.behindSeconds,
  }));
  return {
    eventId: `backup.late:${projectId}:${at.toISOString().slice(0, 10)}`,
    event: 'backup.late',
    at,
    projectId,
    data: { count: histories.length, branches },
  };
}

function byProject(listeners: readonly Listener[]): Map<ProjectId, Listener[]> {
  const found = new Map<ProjectId, Listener[]>();
  for (const listener of listeners) {
    const others = found.get(listener.projectId) ?? [];
    found.set(listener.projectId, [...others, listener]);
  }
  return found;
}
