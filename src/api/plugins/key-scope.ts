/**
 * Holds keys with a limited scope to what they may do, for every route below the version prefix. What a route needs is
 * known from `kit/key-needs.ts`. A key of scope `branches` is checked against the branches that a request names, and
 * so after its body has been read and validated; and again in the transaction of a change, because a branch may have
 * become protected, or the default one, since.
 */
import type { FastifyRequest } from 'fastify';
import { type CommandScope, readScope } from '../../core/context.ts';
import {
  type BranchTargets,
  isBoundToBranches,
  type Need,
  requireChangeableBranches,
  requireChangeableBranchesLocked,
  requireOwnPassword,
  requireScope,
} from '../../core/key-scope.ts';
import { asBranchId, asEndpointId, asProjectId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import { needOf } from '../kit/key-needs.ts';
import type { ApiParts } from '../kit/parts.ts';
import { callerOf } from './auth.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the scope of a key must allow; set here for every route. */
    need?: Need;
  }
  interface FastifyRequest {
    /** Repeats the check of the branches, in a transaction; null where nothing depends on them. */
    requireOwnBranch: ((scope: CommandScope) => Promise<void>) | null;
  }
}

export function useKeyScopes(app: App, parts: ApiParts): void {
  app.decorateRequest('requireOwnBranch', null);
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, need: needOf(route.schema?.operationId) };
  });
  app.addHook('onRequest', async (request) => requireScope(callerOf(request), needFrom(request)));
  app.addHook('preHandler', (request) => requireOwnBranch(parts, request));
}

const needFrom = (request: FastifyRequest): Need => request.routeOptions.config.need ?? 'everything';

/** Fields that say which branch a request is about, wherever they are. */
interface Naming {
  readonly project_id?: string;
  readonly branch_id?: string;
  readonly endpoint_id?: string;
  readonly role_name?: string;
  readonly hard_delete?: boolean;
}

async function requireOwnBranch(parts: ApiParts, request: FastifyRequest): Promise<void> {
  const caller = callerOf(request);
  const need = needFrom(request);
  if (!isBoundToBranches(caller, need)) return;
  const query = request.query as Naming;
  const params = request.params as Naming;
  const body = (request.body as { readonly endpoint?: Naming } | undefined)?.endpoint;
  // What such a key deletes can be recovered.
  if (query.hard_delete === true) requireScope(caller, 'everything');
  const scope = readScope(parts.core);
  const projectId = asProjectId(params.project_id ?? '');
  const places = [params, query, body];
  const targets: BranchTargets = {
    branchIds: places.flatMap((place) => (place?.branch_id === undefined ? [] : [asBranchId(place.branch_id)])),
    endpointIds: places.flatMap((place) => (place?.endpoint_id === undefined ? [] : [asEndpointId(place.endpoint_id)])),
  };
  const branches = await requireChangeableBranches(scope, caller, projectId, targets);
  request.requireOwnBranch = (command) => requireChangeableBranchesLocked(command, caller, projectId, targets);
  const roleName = params.role_name ?? query.role_name;
  if (need !== 'connect' || roleName === undefined) return;
  for (const branchId of branches) await requireOwnPassword(scope, projectId, branchId, roleName);
}
