/** The rows that an operation on a compute works with, and the driver's names for them. */
import type { BranchRef, ComputeRef, ComputeSpec, TenantRef } from '../compute/driver.ts';
import { chosenSettings } from '../core/endpoint-settings.ts';
import { adminSecretPlace } from '../core/project-create.ts';
import { serverSettings } from '../core/sizing.ts';
import { type BranchRow, selectBranchInAnyState } from '../db/branches.ts';
import { type EndpointRow, selectEndpointInAnyState } from '../db/endpoints.ts';
import { type ProjectRow, selectProjectInAnyState } from '../db/projects.ts';
import type { StepContext } from './step.ts';

export interface ComputeTarget {
  readonly project: ProjectRow;
  readonly branch: BranchRow;
  readonly endpoint: EndpointRow;
  readonly ref: ComputeRef;
}

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
  const project = await findProject(context);
  const branch =
    operation.branchId === null ? undefined : await selectBranchInAnyState(core.database.sql, operation.branchId);
  if (project === undefined || branch === undefined) return undefined;
  return { project, branch, ref: { ...tenantRef(project), branchId: branch.id } };
}

/** The branch is the endpoint's own, which need not be the one the operation was written for. */
export async function findCompute(
  context: StepContext,
  endpointId = context.operation.endpointId,
): Promise<ComputeTarget | undefined> {
  const { sql } = context.core.database;
  const project = await findProject(context);
  const endpoint = endpointId === null ? undefined : await selectEndpointInAnyState(sql, endpointId);
  const branch = endpoint && (await selectBranchInAnyState(sql, endpoint.branchId));
  if (project === undefined || endpoint === undefined || branch === undefined) return undefined;
  return { project, branch, endpoint, ref: { ...tenantRef(project), branchId: branch.id, endpointId: endpoint.id } };
}

export function computeSpec({ core }: StepContext, target: ComputeTarget, generation: number): ComputeSpec {
  const { project, endpoint } = target;
  return {
    ...target.ref,
    generation,
    pgVersion: project.pgVersion,
    settings: { ...serverSettings(endpoint), ...chosenSettings(project.settings, endpoint.settings) },
    adminSecret: core.box.open(project.adminSecret, adminSecretPlace(project.id)),
  };
}
