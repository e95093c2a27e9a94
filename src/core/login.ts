/**
 * What the proxy must know before a client logs in. While a compute is awake, its server is authoritative for its
 * roles, because owners change passwords by SQL, unless a change over the API is on its way to the server.
 */

import { type LoginRow, selectLogin, selectPrimariesByPassword, updateSeenVerifier } from '../db/logins.ts';
import type { EndpointId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { ComputeAddress } from '../lib/model.ts';
import type { Core } from './context.ts';
import { adminSecretSealContext } from './project.ts';
import type { Sleepers } from './wake.ts';

/** Delay after a wake: the client that woke the compute comes first. */
const openAheadMs = 100;
/** No role has an empty name. */
const nobody = '';

/** Reads verifiers from servers that are awake. */
export interface VerifierReader {
  /** Null when the role cannot log in; undefined when the server does not answer, or not in time. */
  read(address: ComputeAddress, adminSecret: string, role: string): Promise<string | null | undefined>;
  /** For an endpoint that does not exist: takes as long as a read of one that exists would. */
  pretend(endpointId: string): Promise<void>;
}

export interface LoginFacts {
  /** Null when the role has none or does not exist. */
  readonly verifier: string | null;
  /** When its password was last reset over the API, in milliseconds; null for never. */
  readonly resetAt: number | null;
  readonly disabled: boolean;
  readonly allowedIps: readonly string[];
  readonly publicBlocked: boolean;
  readonly poolerEnabled: boolean;
  readonly endpointId: EndpointId | null;
}

export interface LoginParts {
  readonly core: Core;
  readonly log: Logger;
  readonly verifiers: VerifierReader;
  /** Collects each endpoint that was asleep when a login was looked up. */
  readonly sleepers: Sleepers;
}

/** `name` is the id of an endpoint, or of a branch for a look into its past. Null when there is neither. */
export async function findLogin(parts: LoginParts, name: string, role: string): Promise<LoginFacts | null> {
  const askedAt = performance.now();
  const found = await readFacts(parts, name, role);
  parts.log.debug({ endpoint: name, ms: performance.now() - askedAt }, 'a login was looked up');
  return found;
}

/**
 * For a caller that has shown its password before it has named a compute. Only passwords that Catnap has made up and
 * keeps are found; the login that follows asks the server, as always.
 */
export async function findByPassword({ core }: LoginParts, role: string, password: string): Promise<EndpointId[]> {
  return selectPrimariesByPassword(core.database.sql, role, core.box.markOf(password));
}

async function readFacts(parts: LoginParts, name: string, role: string): Promise<LoginFacts | null> {
  const { core, verifiers, sleepers } = parts;
  const { sql } = core.database;
  const login = await selectLogin(sql, name, role);
  if (login === undefined) {
    await verifiers.pretend(name);
    return null;
  }
  const { disabled, allowedIps, publicBlocked, poolerEnabled, address, pending, endpointId } = login;
  noteIfAsleep(sleepers, login);
  const resetAt = login.resetAt?.getTime() ?? null;
  const stored = { verifier: login.verifier, resetAt, disabled, allowedIps, publicBlocked, poolerEnabled, endpointId };
  if (address === null || pending) return stored;
  const verifier = await verifiers.read(address, adminSecretOf(core, login), role);
  if (verifier === undefined || verifier === login.verifier) return stored;
  // Stored only in case the server crashes; a login neither waits for this nor fails with it.
  if (verifier !== null) updateSeenVerifier(sql, login, role, verifier).catch(() => {});
  return { ...stored, verifier };
}

function noteIfAsleep(sleepers: Sleepers, { endpointId: id, projectId, branchId, type, address }: LoginRow): void {
  if (id === null || type === null) return;
  if (address === null) sleepers.note({ id, projectId, branchId, type });
  else sleepers.take(id);
}

/** Opens the session that later logins are looked up with, once the client that woke the compute has its answer. */
export function openSessionSoon(parts: LoginParts, endpointId: EndpointId): void {
  const open = async () => {
    const { core, verifiers } = parts;
    const login = await selectLogin(core.database.sql, endpointId, nobody).catch(() => undefined);
    if (login?.address) await verifiers.read(login.address, adminSecretOf(core, login), nobody);
  };
  setTimeout(() => void open(), openAheadMs).unref();
}

function adminSecretOf({ box }: Core, { adminSecret, projectId }: LoginRow): string {
  return box.open(adminSecret, adminSecretSealContext(projectId));
}
