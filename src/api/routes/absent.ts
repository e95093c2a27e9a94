/**
 * What Catnap has none of and cannot make; a request to make one gets 501 (`not-offered.ts`). Questions about it have
 * true answers: a list is empty, a single thing is not found. Clients that look at everything a branch has go on with
 * these answers, where a 501 would stop them.
 */
import { type TSchema, Type } from 'typebox';
import { CatnapError } from '../../lib/errors.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { BranchParams, ProjectParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { OrganizationParams } from '../schemas/organization.ts';
import { requireAddressed } from './addressed.ts';

interface Owner {
  readonly path: string;
  readonly params: TSchema;
  readonly tags: string[];
}

const branch: Owner = {
  path: '/projects/:project_id/branches/:branch_id',
  params: BranchParams,
  tags: ['Branches'],
};
const project: Owner = { path: '/projects/:project_id', params: ProjectParams, tags: ['Projects'] };
const organization: Owner = { path: '/organizations/:org_id', params: OrganizationParams, tags: ['Organizations'] };

/** By operationId: what has the list, the end of its path, the attribute of the reply. */
const lists: Readonly<Record<string, readonly [owner: Owner, path: string, key: string]>> = {
  listProjectBranchBuckets: [branch, 'buckets', 'buckets'],
  listProjectBranchFunctions: [branch, 'functions', 'functions'],
  listProjectBranchTriggers: [branch, 'triggers', 'triggers'],
  listProjectBranchCustomDomains: [branch, 'custom-domains', 'custom_domains'],
  listProjectPermissions: [project, 'permissions', 'project_permissions'],
  getOrganizationInvitations: [organization, 'invitations', 'invitations'],
};

/** By operationId: the end of the path below a branch, and what is not there. */
const things: Readonly<Record<string, readonly [path: string, what: string]>> = {
  getProjectBranchDataAPI: ['data-api/:database_name', 'Data API'],
  getProjectBranchStorage: ['storage', 'object storage'],
  getProjectBranchAiGateway: ['ai_gateway', 'AI gateway'],
};

export function absentRoutes(app: App, parts: ApiParts): void {
  for (const [operationId, [{ path: owner, params, tags }, path, key]] of Object.entries(lists)) {
    const schema = {
      tags,
      operationId,
      summary: `List ${path.replace('-', ' ')}`,
      description: 'Always empty: there are none, and none can be made.',
      params,
      response: { 200: Type.Object({ [key]: Type.Array(Type.Object({})) }), ...errorReply },
    };
    app.get(`${owner}/${path}`, { schema, config: { absent: 'list' } }, async (request) => {
      await requireAddressed(parts, request);
      return { [key]: [] };
    });
  }
  for (const [operationId, [path, what]] of Object.entries(things)) {
    // Not in the document of this API, which describes what it offers.
    const schema = { hide: true, operationId };
    app.get(`${branch.path}/${path}`, { schema, config: { absent: 'thing' } }, async (request) => {
      await requireAddressed(parts, request);
      throw new CatnapError('not_found', `${what} not found; it is not offered by Catnap`);
    });
  }
}
