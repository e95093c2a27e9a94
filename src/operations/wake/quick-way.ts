/**
 * The quick way of a wake and of a new project's first data. Their outcomes (the data is made, the fence is raised, the
 * route is open) are written in one statement each, because a client waits for every round trip. Each has a plain way,
 * a transaction that leaves the same rows, which is taken when the statement finds anything unusual: a lost lease, say,
 * or a suspend that was asked for meanwhile.
 */
import { routeOf } from '../../core/connection.ts';
import type { Sql, Tx } from '../../db/client.ts';
import { raiseGeneration } from '../../db/endpoints.ts';
import type { OperationRow, OperationState } from '../../db/operations.ts';
import { openStartedRoute, raiseFence, readyFirstBranch, type StartedServer } from '../../db/wakes.ts';
import type { BranchId, EndpointId, OperationId } from '../../lib/ids.ts';

/** Goes on to `step` with the generation of an endpoint raised and put into the state: the fence before a start. */
export interface Raise {
  readonly kind: 'raise';
  readonly step: string;
  readonly endpointId: EndpointId;
}

export const raise = (step: string, endpointId: EndpointId): Raise => ({ kind: 'raise', step, endpointId });

/** The plain way of a raise. */
export function raisePlainly({ endpointId }: Raise): (tx: Tx) => Promise<OperationState> {
  return async (tx) => ({ generation: await raiseGeneration(tx, endpointId) });
}

/** Does what the write of a step does and ends its operation. False, with nothing done, when anything is unusual. */
export type AtOnce = (sql: Sql, lease: string) => Promise<boolean>;

/** Records a server that came up and opens its route, where there is one. */
export function openAtOnce(
  operation: Pick<OperationRow, 'id' | 'projectId'>,
  server: Omit<StartedServer, 'route'>,
): AtOnce {
  const route = routeOf(server);
  return async (sql, lease) => route !== null && openStartedRoute(sql, operation, lease, { ...server, route });
}

/** Records the first data of a project. */
export function readyAtOnce(
  operation: Pick<OperationRow, 'id' | 'projectId'>,
  branchId: BranchId,
  receipt: object,
): AtOnce {
  return (sql, lease) => readyFirstBranch(sql, operation, lease, { branchId, receipt });
}

export interface Written {
  /** The operation, if its next step can run at once. */
  readonly next: OperationRow | undefined;
}

/** Null when the outcome has no quick way, or this is not the moment for it. */
export async function writeAtOnce(
  sql: Sql,
  id: OperationId,
  lease: string,
  outcome: Raise | { readonly kind: 'done'; readonly atOnce: AtOnce | null },
): Promise<Written | null> {
  if (outcome.kind === 'raise') {
    const next = await raiseFence(sql, id, lease, outcome).catch(() => undefined);
    return next === undefined ? null : { next };
  }
  if (outcome.atOnce === null) return null;
  const isDone = await outcome.atOnce(sql, lease).catch(() => false);
  return isDone ? { next: undefined } : null;
}
