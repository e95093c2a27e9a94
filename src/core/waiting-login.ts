/**
 * Logging in without a password. A client of the database port is shown a link and waits; a person who is signed in to
 * the console opens it, sees who waits, and chooses what the client gets. The link is valid once, for two minutes, and
 * only while its client waits. What both sides know is in the system database, so that any proxy can have the client.
 */
import { selectDatabase } from '../db/databases.ts';
import { followKeys, type Interest } from '../db/follow.ts';
import { selectRole } from '../db/roles.ts';
import {
  decideWaitingLogin,
  deleteWaitingLogin,
  insertWaitingLogin,
  keyOf,
  selectWaitingLogin,
  takeDecision,
  type WaitingLoginRow,
  waitingLoginsChannel,
} from '../db/waiting-logins.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import { type EndpointId, newSecret, type ProjectId } from '../lib/ids.ts';
import { clientKey } from '../lib/ip.ts';
import { hashToken } from '../lib/secrets.ts';
import { type Caller, requireEndpoint, requireProject } from './access.ts';
import type { CommandScope, Core, Scope } from './context.ts';
import { openPassword } from './role.ts';

export type WaitingLogin = WaitingLoginRow;

export const linkSeconds = 120;
/** How many clients may wait: in all, and of one address. */
const waitingMax = { total: 1_000, perClient: 20 };
const readEveryMs = 2_000;
/** Names are shown to a person; nothing longer can be a role or a database. */
const nameLengthMax = 63;

export interface LoginRequest {
  readonly address: string;
  readonly role: string;
  readonly database: string;
  readonly applicationName: string;
}

export interface GrantedLogin {
  readonly endpointId: EndpointId;
  readonly role: string;
  readonly database: string;
  readonly password: string;
}

export interface ShownLink {
  readonly link: string;
  readonly seconds: number;
  /** What a person has granted. Rejects with a CatnapError for the client, or with the signal's reason. */
  wait(signal: AbortSignal): Promise<GrantedLogin>;
}

export interface LoginDesk {
  /** Rejects with a CatnapError when too many wait already. */
  showLink(request: LoginRequest): Promise<ShownLink>;
  close(): Promise<void>;
}

/** The proxy's side. */
export async function openLoginDesk(core: Core): Promise<LoginDesk> {
  const { database, clock, config } = core;
  const news = await followKeys(database, { [waitingLoginsChannel]: (key) => ({ key, told: null }) });
  return {
    showLink: async ({ address, role, database: askedDatabase, applicationName }) => {
      const token = newSecret();
      const tokenHash = hashToken(token);
      const createdAt = clock.now();
      const expiresAt = new Date(createdAt.getTime() + linkSeconds * 1_000);
      const isMade = await insertWaitingLogin(
        database.sql,
        {
          tokenHash,
          clientAddress: address,
          clientKey: clientKey(address),
          askedRole: role.slice(0, nameLengthMax),
          askedDatabase: askedDatabase.slice(0, nameLengthMax),
          applicationName: applicationName.slice(0, nameLengthMax),
          createdAt,
          expiresAt,
        },
        waitingMax,
      );
      if (!isMade) throw new CatnapError('rate_limited', 'Too many logins wait for a person. Please try again later.');
      return {
        // Behind the #, so that no log of a web server holds it.
        link: `${config.publicUrl}/psql#${token}`,
        seconds: linkSeconds,
        wait: (signal) => waitForDecision(core, tokenHash, news.interestIn(keyOf(tokenHash)), { expiresAt, signal }),
      };
    },
    close: news.close,
  };
}

async function waitForDecision(
  core: Core,
  tokenHash: Uint8Array,
  interest: Pick<Interest<unknown>, 'wait' | 'end'>,
  { expiresAt, signal }: { readonly expiresAt: Date; readonly signal: AbortSignal },
): Promise<GrantedLogin> {
  const { sql } = core.database;
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  signal.addEventListener('abort', stop, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const taken = await takeDecision(sql, tokenHash, core.clock.now());
      if (taken !== undefined) return grantOf(core, taken);
      const leftMs = expiresAt.getTime() - core.clock.now().getTime();
      if (leftMs <= 0) {
        throw new CatnapError('unauthenticated', `nobody confirmed the login within ${linkSeconds} seconds`);
      }
      await Promise.race([interest.wait(Math.min(readEveryMs, leftMs)), stopped]);
    }
  } finally {
    signal.removeEventListener('abort', stop);
    interest.end();
    // The link of a client that is gone must lead nowhere; if this fails, it expires.
    await deleteWaitingLogin(sql, tokenHash).catch(() => {});
  }
}

/** Everything is checked again: the decision may be older than a change of what it grants. */
function grantOf(core: Core, taken: NonNullable<Awaited<ReturnType<typeof takeDecision>>>): GrantedLogin {
  const { endpointId, roleName, databaseName, projectId, passwordlessAccess } = taken;
  if (taken.apiKeyId === null || endpointId === null || roleName === null || databaseName === null) {
    throw new CatnapError('forbidden', 'the login was refused in the console');
  }
  if (projectId === null) throw notFound('endpoint');
  if (passwordlessAccess !== true) throw accessOff();
  const password = openPassword(core, projectId, { name: roleName, password: taken.password });
  if (password === null) throw passwordUnknown(roleName);
  return { endpointId, role: roleName, database: databaseName, password };
}

/** The console's side: who waits behind a link. */
export async function getWaitingLogin(scope: Scope, token: string): Promise<WaitingLogin> {
  const login = await selectWaitingLogin(scope.sql, hashToken(token));
  if (login === undefined || login.expiresAt <= scope.clock.now()) throw linkSpent();
  return login;
}

export interface LoginChoice {
  readonly projectId: ProjectId;
  readonly endpointId: EndpointId;
  readonly role: string;
  readonly database: string;
}

export async function confirmWaitingLogin(
  scope: CommandScope,
  caller: Caller,
  token: string,
  choice: LoginChoice,
): Promise<WaitingLogin> {
  await requireProject(scope, caller, choice.projectId);
  const endpoint = await requireEndpoint(scope, choice.projectId, choice.endpointId);
  if (!endpoint.passwordlessAccess) throw accessOff();
  if (endpoint.disabled) throw new CatnapError('precondition_failed', 'endpoint is disabled');
  const database = await selectDatabase(scope.sql, endpoint.branchId, choice.database);
  if (database === undefined) throw notFound('database');
  const role = await selectRole(scope.sql, endpoint.branchId, choice.role);
  if (role === undefined) throw notFound('role');
  if (role.password === null) throw passwordUnknown(role.name);
  return decide(scope, caller, token, {
    endpointId: endpoint.id,
    roleName: role.name,
    databaseName: database.name,
  });
}

export async function refuseWaitingLogin(scope: CommandScope, caller: Caller, token: string): Promise<WaitingLogin> {
  return decide(scope, caller, token, { endpointId: null, roleName: null, databaseName: null });
}

async function decide(
  scope: CommandScope,
  caller: Caller,
  token: string,
  decision: Pick<WaitingLogin, 'endpointId' | 'roleName' | 'databaseName'>,
): Promise<WaitingLogin> {
  const whole = { ...decision, apiKeyId: caller.keyId };
  const decided = await decideWaitingLogin(scope.tx, hashToken(token), whole, scope.clock.now());
  if (decided === undefined) throw linkSpent();
  return decided;
}

const linkSpent = () =>
  new CatnapError('not_found', 'this link was used before or is too old, or its client has left; connect again');
const accessOff = () =>
  new CatnapError('unprocessable', 'passwordless_access of this compute is off; log in with a password');
const passwordUnknown = (roleName: string) =>
  new CatnapError(
    'unprocessable',
    withDetails('Catnap does not know the password of this role: reset it first', { role_name: roleName }),
  );
