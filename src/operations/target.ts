/** The rows that an operation on a compute works with, and the driver's names for them. */
import type { BranchRef, ComputeSpec, TenantRef } from '../compute/interface/driver.ts';
import type { Core } from '../core/context.ts';
import { computeRef } from '../core/endpoint.ts';
import { wantedSettings } from '../core/endpoint-settings.ts';
import { planOf } from '../core/plan.ts';
import { adminSecretSealContext } from '../core/project.ts';
import { hasWritesOff, readOnlyByDefault } from '../core/quota.ts';
import { settingsOfPrimary, withPrimarySettings } from '../core/replica.ts';
import { clampSize, limitsAt, temporaryDiskLimit } from '../core/sizing.ts';
import { selectOrganizationOfProject } from '../db/accounts.ts';
import { type BranchRow, selectBranchInAnyState, selectBranchOfEndpoint } from '../db/branches.ts';
import { selectEndpointInAnyState, selectReadWriteEndpoint } from '../db/endpoints.ts';
import { isMoveQueued } from '../db/operations.ts';
import { type ProjectRow, selectProjectInAnyState } from '../db/projects.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeTarget, StepContext } from './step.ts';

export interface BranchTarget {
  readonly project: ProjectRow;
  readonly branch: BranchRow;
  readonly ref: BranchRef;
}

export async function findProject({ core, operation }: StepContext): Promise<ProjectRow | undefined> {
  return selectProjectInAnyState(core.database.sql, operation.projectId);
}

export const tenantRef = (project: ProjectRow): TenantRef => ({ projectId: project.id, tenantUid: project.tenantUid });

export async function findBranch(context: StepContext): Promise<BranchTarget | undefined> {
  const { core, operation } = context;
  const [project, branch] = await Promise.all([
    findProject(context),
    operation.branchId === null ? undefined : selectBranchInAnyState(core.database.sql, operation.branchId),
  ]);
  if (project === undefined || branch === undefined) return undefined;
  return { project, branch, ref: { ...tenantRef(project), branchId: branch.id } };
}

/** The branch is the endpoint's own, which may differ from the one that the operation was queued for. */
export async function findCompute(
  context: StepContext,
  endpointId = context.operation.endpointId,
): Promise<ComputeTarget | undefined> {
  if (endpointId === null) return undefined;
  return findComputeOf(context.core, context.operation.projectId, endpointId);
}

/** Why there is nothing to do where the next functions return nothing. */
export const goneOrMoved = 'the endpoint is gone, or has left the branch';

/**
 * For work on the branch that the compute serves. Undefined when it was moved since the operation was queued: the
 * server runs on the branch that it is about to leave, and the operation holds only that one.
 */
export async function findComputeInPlace(context: StepContext): Promise<ComputeTarget | undefined> {
  return whileInPlace(context, await findCompute(context));
}

async function whileInPlace(
  { core, operation }: StepContext,
  target: ComputeTarget | undefined,
): Promise<ComputeTarget | undefined> {
  if (target === undefined || operation.branchId === null || operation.branchId === target.branch.id) return target;
  return (await isMoveQueued(core.database.sql, operation)) ? undefined : target;
}

/** For a step that may be the operation's first: uses the rows that were read with the claim, if there are any. */
export async function findComputeAtClaim(context: StepContext): Promise<ComputeTarget | undefined> {
  const { atClaim } = context.memory;
  delete context.memory.atClaim;
  return whileInPlace(context, atClaim ?? (await findCompute(context)));
}

export async function findComputeOf(
  core: Core,
  projectId: ProjectId,
  endpointId: EndpointId,
): Promise<ComputeTarget | undefined> {
  const { sql } = core.database;
  // Queried together, which is one round trip where they share a connection.
  const [project, endpoint, found, organization] = await Promise.all([
    selectProjectInAnyState(sql, projectId),
    selectEndpointInAnyState(sql, endpointId),
    selectBranchOfEndpoint(sql, endpointId),
    selectOrganizationOfProject(sql, projectId),
  ]);
  if (project === undefined || endpoint === undefined) return undefined;
  // It may have been moved between the two reads.
  const branch = found?.id === endpoint.branchId ? found : await selectBranchInAnyState(sql, endpoint.branchId);
  if (branch === undefined) return undefined;
  const plan = planOf(organization?.plan ?? core.config.defaultPlan);
  const size = clampSize(endpoint, plan);
  const primary = endpoint.type === 'read_only' ? await selectReadWriteEndpoint(sql, branch.id) : undefined;
  const primarySettings = primary === undefined ? {} : settingsOfPrimary(project, primary, clampSize(primary, plan));
  const ref = computeRef({ ...endpoint, tenantUid: project.tenantUid });
  return { project, branch, endpoint, size, primarySettings, ref };
}

/** For the steps of a start after the one that raised the fence: its rows are those that the server is started from. */
export async function findStartingCompute(context: StepContext): Promise<ComputeTarget | undefined> {
  const target = context.memory.compute ?? (await findComputeInPlace(context));
  if (target !== undefined) context.memory.compute = target;
  return target;
}

/** With its branch or its project; it may come back. */
export const isDeleted = ({ endpoint, project }: ComputeTarget) =>
  endpoint.deletingAt !== null || project.deletingAt !== null;

/** Its last operation is queued already. */
export const isBeingRemoved = ({ endpoint }: ComputeTarget) =>
  endpoint.deletingAt !== null && endpoint.recoverableUntil === null;

/** Password of Catnap's own login in the project's servers. */
export const adminSecretOf = ({ core }: StepContext, project: ProjectRow) =>
  core.box.open(project.adminSecret, adminSecretSealContext(project.id));

/** What its server runs with. */
export function settingsOf(target: ComputeTarget): Record<string, string> {
  const { project, endpoint, size, primarySettings } = target;
  const wanted = wantedSettings(project, endpoint, size);
  if (endpoint.type === 'read_only') return withPrimarySettings(wanted, primarySettings);
  return takesNoWrites(target) ? { ...wanted, ...readOnlyByDefault } : wanted;
}

/** A replica takes no writes anyway. */
export const takesNoWrites = ({ endpoint, branch }: ComputeTarget) =>
  endpoint.type === 'read_write' && hasWritesOff(endpoint, branch);

export function computeSpec(context: StepContext, target: ComputeTarget, generation: number): ComputeSpec {
  const { project, endpoint } = target;
  const settings = settingsOf(target);
  return {
    ...target.ref,
    generation,
    pgVersion: project.pgVersion,
    settings,
    // It starts at its smallest size; the autoscaler enlarges it when needed.
    limits: limitsAt(target.size.minCu, target.size, settings, endpoint.settings.pg_settings ?? {}),
    readOnly: endpoint.type === 'read_only',
    network: project.settings.allow_outbound_connections ? 'outside' : 'none',
    tempDiskBytes: temporaryDiskLimit(context.core.config, target.size),
    adminSecret: adminSecretOf(context, project),
  };
}
