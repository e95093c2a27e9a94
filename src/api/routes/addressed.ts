/** The project, branch or organization that a path names, for routes that need to know only that it is there. */
import type { FastifyRequest } from 'fastify';
import { requireBranch, requireOrganization, requireProject } from '../../core/access.ts';
import { notFound } from '../../lib/errors.ts';
import { asBranchId, asOrganizationId, asProjectId, idPattern } from '../../lib/ids.ts';
import type { ApiParts } from '../kit/parts.ts';
import { ask } from './command.ts';

const id = new RegExp(idPattern);

/** Throws the 404 for what is not there, or not for this caller. No schema may have checked the path yet. */
export function requireAddressed(parts: ApiParts, request: FastifyRequest): Promise<void> {
  const params = request.params as Readonly<Record<string, string | undefined>>;
  const given = (name: string, noun: string) => {
    const value = params[name];
    if (value !== undefined && !id.test(value)) throw notFound(noun);
    return value;
  };
  return ask(parts, request, async (scope, caller) => {
    const organizationId = given('org_id', 'organization') ?? given('source_org_id', 'organization');
    if (organizationId !== undefined) await requireOrganization(scope, caller, asOrganizationId(organizationId));
    const projectId = given('project_id', 'project');
    if (projectId === undefined) return;
    await requireProject(scope, caller, asProjectId(projectId));
    const branchId = given('branch_id', 'branch');
    if (branchId !== undefined) await requireBranch(scope, asProjectId(projectId), asBranchId(branchId));
  });
}
