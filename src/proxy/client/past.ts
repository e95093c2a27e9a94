/**
 * Leads a client that asks for a moment of the past to a compute that serves it. Comes after authentication and access:
 * whether there is a branch, and what its history holds, is for those who know its password.
 */
import { databaseFailure } from '../../lib/database-failure.ts';
import { CatnapError } from '../../lib/errors.ts';
import type { ControlPlane, PastRequest } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import { waitFor } from '../kit/wait-for.ts';
import type { Identity } from './authenticate.ts';
import { isBranchName, momentOfOptions } from './route.ts';

interface PastParts {
  readonly controlPlane: ControlPlane;
  readonly limits: ProxyLimits;
}

/** The identity at the compute to connect to, which is the given one for a client of the present. */
export async function enterPast(
  identity: Identity,
  options: string | undefined,
  { controlPlane, limits }: PastParts,
  signal: AbortSignal,
): Promise<Identity> {
  const { route, role, facts } = identity;
  const moment = momentOfOptions(options ?? '');
  if (moment === null) {
    if (!isBranchName(route.endpointId)) return identity;
    throw new CatnapError(
      'invalid_request',
      'The host name of a branch is for its past: add options=neon_timestamp:<time> or options=neon_lsn:<LSN>, ' +
        'or connect to the host name of a compute.',
    );
  }
  const request = { name: route.endpointId, moment, role, verifier: facts.verifier ?? '' };
  const endpointId = await waitFor(ask(controlPlane, request), limits.wakeMs, signal);
  return { ...identity, route: { ...route, endpointId } };
}

/** Ignoring the options would serve the present instead, which would be a wrong answer. */
async function ask(controlPlane: ControlPlane, request: PastRequest): Promise<string> {
  if (controlPlane.openPast === undefined) {
    throw new CatnapError('not_supported', 'connections to a point in the past are not supported');
  }
  try {
    return await controlPlane.openPast(request);
  } catch (thrown) {
    if (thrown instanceof CatnapError) throw thrown;
    const kind = databaseFailure(thrown) === null ? 'internal' : 'unavailable';
    throw new CatnapError(kind, 'Control plane request failed', { cause: thrown });
  }
}
