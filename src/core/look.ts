/**
 * A look into the past: a client connects to a branch at a moment, and reads from a compute that serves the data of
 * then and disappears by itself. Clients of the same branch and moment share it. It is no branch: nothing lists it, no
 * limit of the plan counts it, and no other moment can be taken from it.
 *
 * A role logs in with its password of now, because that is what its owner knows; it must have existed then.
 */
import { selectBranch } from '../db/branches.ts';
import {
  countLooks,
  insertLook,
  type LookRow,
  selectLook,
  selectLookSource,
  selectSameLook,
  selectVerifiers,
  touchLook,
  updateLook,
} from '../db/looks.ts';
import { lockProject } from '../db/projects.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import { type EndpointId, newBranchId, newLookId, type ProjectId } from '../lib/ids.ts';
import type { OpenRoute } from './connection.ts';
import { type CommandScope, type Core, commandScope } from './context.ts';
import { type MomentInput, resolveMoment } from './moments.ts';
import { enqueue, historyKey, requireRoomInQueue } from './operation.ts';
import { type AwaitOperation, createOperationFollower } from './operation-wait.ts';
import { requireQuotaLeft } from './quota.ts';

/** Each takes a server, and the space of what its log changed. */
export const looksPerProjectMax = 4;
/** The proxy gives up on its clients earlier; this only ends the wait. */
const waitMsMax = 5 * 60_000;

export interface LookRequest {
  /** Id of an endpoint of the branch, or of the branch itself. */
  readonly name: string;
  readonly moment: MomentInput;
  readonly role: string;
  /** The one that the client has proved to know. */
  readonly verifier: string;
}

/** What messages call the two, as in the connection's options. */
const fields = { lsn: 'neon_lsn', timestamp: 'neon_timestamp' };

export interface Looks {
  /** The compute to connect to, once it serves. Rejects with a CatnapError whose message is for the client. */
  open(request: LookRequest): Promise<EndpointId>;
  close(): Promise<void>;
}

export async function createLooks(core: Core): Promise<Looks> {
  const { awaitOperation, close } = await createOperationFollower(core, waitMsMax);
  return {
    open: async (request) => {
      const look = await core.database.transaction((tx) => requestLook(commandScope(core, tx), request));
      return requireOpen(core, awaitOperation, look, request.role);
    },
    close,
  };
}

/** Finds the look, or queues the operation that opens one. */
export async function requestLook(scope: CommandScope, request: LookRequest): Promise<LookRow> {
  const { tx, clock } = scope;
  const { role, verifier } = request;
  const source = await selectLookSource(tx, request.name);
  const project = source && (await lockProject(tx, source.projectId));
  if (source === undefined || project === undefined) throw notFound('branch');
  const branch = await selectBranch(tx, project.id, source.branchId);
  if (branch === undefined) throw notFound('branch');
  const resolved = await resolveMoment(scope, branch, request.moment, fields);
  const past = { branchId: resolved.branchId, moment: { ...resolved.moment } };
  const same = await selectSameLook(tx, { branchId: branch.id, past, role, verifier });
  if (same !== undefined) {
    await touchLook(tx, same.id, clock.now());
    return same;
  }
  requireQuotaLeft(scope, project);
  await requireRoomInQueue(scope, project.id);
  await requireRoomForLook(scope, project.id);
  const id = newLookId();
  const operation = await enqueue(scope, 'open_look', {
    projectId: project.id,
    branchId: branch.id,
    shared: [historyKey(past.branchId)],
    state: { look: id, past },
  });
  return insertLook(tx, {
    id,
    projectId: project.id,
    branchId: branch.id,
    dataId: newBranchId(),
    past,
    // The server may know a newer password than the rows do.
    logins: { ...(await selectVerifiers(tx, branch.id)), [role]: verifier },
    operationId: operation.id,
    lastActive: clock.now(),
  });
}

async function requireRoomForLook({ tx, config }: CommandScope, projectId: ProjectId): Promise<void> {
  const { own, all } = await countLooks(tx, projectId);
  const leave = `they close ${config.lookIdleSeconds} seconds after their last use`;
  if (own >= looksPerProjectMax) {
    const message = `the project has ${own} looks into the past open, which is the limit: ${leave}`;
    throw new CatnapError('too_many_connections', message);
  }
  if (all >= config.looksMax) {
    const message = `this installation has ${all} looks into the past open, which is the limit: ${leave}`;
    throw new CatnapError('too_many_connections', message);
  }
}

async function requireOpen(
  core: Core,
  awaitOperation: AwaitOperation,
  { id, operationId, state }: LookRow,
  role: string,
): Promise<EndpointId> {
  const end = state === 'open' ? null : await awaitOperation(operationId);
  const look = await selectLook(core.database.sql, id);
  if (look?.state === 'refused') throw new CatnapError('unprocessable', look.refusal ?? 'the moment cannot be given');
  if (look?.state !== 'open') {
    const message = withDetails('the look into the past could not be opened', { operation_id: operationId });
    throw new CatnapError('unavailable', message, { cause: new Error(end?.error ?? end?.status ?? 'it was closed') });
  }
  if (look.roleNames?.includes(role) !== true) {
    throw new CatnapError('not_found', `role "${role}" did not exist at that moment`);
  }
  return id;
}

/** The route of a look that is open; null for one that is not. */
export async function findLookRoute(core: Core, id: EndpointId): Promise<OpenRoute | null> {
  return (await selectLook(core.database.sql, id))?.route ?? null;
}

export async function requireLookRoute(core: Core, id: EndpointId): Promise<OpenRoute> {
  const route = await findLookRoute(core, id);
  if (route === null) throw new CatnapError('unavailable', 'the look into the past was closed; connect again');
  return route;
}

/** Closes the route and queues the removal; the caller holds the project. */
export async function queueLookClosing(
  scope: CommandScope,
  { id, projectId, branchId }: Pick<LookRow, 'id' | 'projectId' | 'branchId'>,
): Promise<void> {
  await updateLook(scope.tx, id, { state: 'closing', route: null });
  await enqueue(scope, 'close_look', { projectId, branchId, state: { look: id } });
}
