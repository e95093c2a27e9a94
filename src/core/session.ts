/** The sessions of a compute that is awake: listed, their statements cancelled, ended. None of it wakes a compute. */
import { CatnapError, notFound } from '../lib/errors.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import type { ComputeAddress, ServerSession } from '../lib/model.ts';
import { type Caller, requireEndpoint, requireProject } from './access.ts';
import type { Scope } from './context.ts';
import { adminSecretSealContext } from './project.ts';

/** Where a server answers, and the password of Catnap's own login there. */
interface Server {
  readonly address: ComputeAddress;
  readonly adminSecret: string;
}

/** How servers are asked; the API process is given it. */
export interface SessionControl {
  readonly read: (server: Server) => Promise<readonly ServerSession[]>;
  /** False if there is no such session. */
  readonly signal: (server: Server, id: string, how: SessionSignal) => Promise<boolean>;
}

export type SessionSignal = 'cancel' | 'terminate';

export interface EndpointAddress {
  readonly projectId: ProjectId;
  readonly endpointId: EndpointId;
}

/** Null while the compute sleeps. */
export async function listSessions(
  scope: Scope,
  caller: Caller,
  address: EndpointAddress,
  control: SessionControl,
): Promise<readonly ServerSession[] | null> {
  const server = await findServer(scope, caller, address);
  return server === null ? null : control.read(server).catch(unreachable);
}

export async function signalSession(
  scope: Scope,
  caller: Caller,
  address: EndpointAddress,
  { id, how }: { readonly id: string; readonly how: SessionSignal },
  control: SessionControl,
): Promise<void> {
  const server = await findServer(scope, caller, address);
  const isSent = server !== null && (await control.signal(server, id, how).catch(unreachable));
  if (!isSent) throw notFound('session');
}

async function findServer(scope: Scope, caller: Caller, address: EndpointAddress): Promise<Server | null> {
  const project = await requireProject(scope, caller, address.projectId);
  const endpoint = await requireEndpoint(scope, address.projectId, address.endpointId);
  if (endpoint.address === null) return null;
  const adminSecret = scope.box.open(project.adminSecret, adminSecretSealContext(project.id));
  return { address: endpoint.address, adminSecret };
}

/** It may have fallen asleep in between, or have no room for one more session. */
function unreachable(cause: unknown): never {
  throw new CatnapError('unavailable', 'the server of the compute does not answer', { cause, retryAfterSeconds: 1 });
}
