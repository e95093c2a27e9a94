/**
 * Authentication. A route declares in its config what it takes: an integration client with its Basic secret, or a
 * project's key of some access type, and maybe a user's access token. This is decided before the body is read.
 */
import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { hashToken } from '../../lib/secrets.ts';
import { projectIdFromWire } from '../core/internal-project.ts';
import type { Limits } from '../core/limits.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { verifySession } from '../core/sessions.ts';
import type { VerifiedToken } from '../core/signing.ts';
import { userNotFound } from '../core/user-commands.ts';
import type { AuthProviderApp } from '../http/app-type.ts';
import { known, schemaError } from '../http/errors.ts';
import { readHeader } from '../http/headers.ts';
import { isGoodKey, type KeyKind } from '../statements/key-sets.ts';
import { type ProjectRow, selectProject } from '../statements/projects.ts';
import { selectUser, type UserRow } from '../statements/users.ts';

export type AccessType = 'client' | 'server' | 'admin';

/** `open` is for all callers; `integration+admin` needs both. */
export type RouteAccess = 'open' | 'client' | 'server' | 'admin' | 'integration' | 'integration+admin';

export interface AuthProviderCaller {
  readonly access: AccessType;
  readonly project: ProjectRow;
  readonly token: VerifiedToken | null;
}

declare module 'fastify' {
  interface FastifyRequest {
    authProviderCaller: AuthProviderCaller | null;
    /** Id of the integration client. */
    integrationClient: string | null;
  }
  interface FastifyContextConfig {
    authProviderAccess?: RouteAccess;
  }
}

/** The options of a route: hidden from the management API's own document, and without a bearer key. */
export function guarded(access: RouteAccess) {
  return { config: { isPublic: true, authProviderAccess: access }, schema: { hide: true } };
}

export function useAccess(app: AuthProviderApp, parts: AuthProviderParts, limits: Limits): void {
  app.decorateRequest('authProviderCaller', null);
  app.decorateRequest('integrationClient', null);
  app.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.authProviderAccess ?? 'open';
    const provesSecret = access.startsWith('integration') || /^(server|admin)$/.test(accessHeader(request) ?? '');
    if (access === 'open' || !provesSecret) limits.address('request', request.ip);
    try {
      await identify(parts, request, access);
    } catch (error) {
      // A client that has the secret is never limited because of others at its address; one with a wrong secret is.
      if (provesSecret) limits.address('request', request.ip);
      throw error;
    }
  });
}

async function identify(parts: AuthProviderParts, request: FastifyRequest, access: RouteAccess): Promise<void> {
  if (access.startsWith('integration')) request.integrationClient = integrationClient(parts, request);
  const needed = access === 'integration+admin' ? 'admin' : access;
  if (needed === 'client' || needed === 'server' || needed === 'admin') {
    request.authProviderCaller = await projectCaller(parts, request, needed);
  }
}

const accessHeader = (request: FastifyRequest) => readHeader(request, 'access-type');

export function callerOf(request: FastifyRequest): AuthProviderCaller {
  if (request.authProviderCaller === null) throw new Error('BUG: the route has no access type');
  return request.authProviderCaller;
}

export function clientOf(request: FastifyRequest): string {
  if (request.integrationClient === null) throw new Error('BUG: the route is not for integrations');
  return request.integrationClient;
}

/** The user of the access token; without one, requests about `me` cannot be answered. */
export async function requireOwnUser(parts: AuthProviderParts, caller: AuthProviderCaller): Promise<UserRow> {
  const user = caller.token && (await selectUser(parts.database.sql, caller.project.id, caller.token.userId));
  if (!user)
    throw known('CANNOT_GET_OWN_USER_WITHOUT_USER', 'This is about the signed-in user, and nobody is signed in.');
  return user;
}

/** The user with this id, or `me`. Clients reach only their own user; what they may not see is reported as missing. */
export async function reachableUser(parts: AuthProviderParts, caller: AuthProviderCaller, id: string) {
  if (id === 'me') return requireOwnUser(parts, caller);
  const isForeign = caller.access === 'client' && caller.token?.userId !== id.toLowerCase();
  const user = isForeign ? undefined : await selectUser(parts.database.sql, caller.project.id, id);
  if (user === undefined) throw userNotFound();
  return user;
}

export async function requireSignedIn(parts: AuthProviderParts, caller: AuthProviderCaller): Promise<UserRow> {
  const user = caller.token && (await selectUser(parts.database.sql, caller.project.id, caller.token.userId));
  if (!user) throw known('USER_AUTHENTICATION_REQUIRED', 'Sign in first: the request has no access token of a user.');
  return user;
}

const ranks: Readonly<Record<AccessType, number>> = { client: 0, server: 1, admin: 2 };

async function projectCaller(
  parts: AuthProviderParts,
  request: FastifyRequest,
  needed: AccessType,
): Promise<AuthProviderCaller> {
  const access = accessTypeOf(request);
  const project = await projectOf(parts, request, access);
  await requireKey(parts, request, access, project);
  if (ranks[access] < ranks[needed]) {
    const allowed = (Object.keys(ranks) as AccessType[]).filter((type) => ranks[type] >= ranks[needed]);
    throw known('INSUFFICIENT_ACCESS_TYPE', `The access type must be ${allowed.join(' or ')}.`, {
      actual_access_type: access,
      allowed_access_types: allowed,
    });
  }
  return { access, project, token: await tokenOf(parts, request, project) };
}

function accessTypeOf(request: FastifyRequest): AccessType {
  const type = accessHeader(request);
  if (type === undefined) {
    const keys = ['publishable-client-key', 'secret-server-key', 'super-secret-admin-key'];
    if (keys.some((name) => readHeader(request, name) !== undefined)) {
      throw known('PROJECT_KEY_WITHOUT_ACCESS_TYPE', 'There is a key but no x-stack-access-type header.');
    }
    throw known('ACCESS_TYPE_REQUIRED', 'The x-stack-access-type header is missing: client, server or admin.');
  }
  if (type !== 'client' && type !== 'server' && type !== 'admin') {
    throw known('INVALID_ACCESS_TYPE', 'The x-stack-access-type header must be client, server or admin.', {
      accessType: type.slice(0, 100),
    });
  }
  return type;
}

async function projectOf(parts: AuthProviderParts, request: FastifyRequest, access: AccessType): Promise<ProjectRow> {
  const given = readHeader(request, 'project-id');
  if (given === undefined) {
    throw known('ACCESS_TYPE_WITHOUT_PROJECT_ID', 'The x-stack-project-id header is missing.', {
      request_type: access,
    });
  }
  const id = projectIdFromWire(given);
  const project = id === undefined ? undefined : await selectProject(parts.database.sql, id);
  if (project === undefined) {
    throw known('CURRENT_PROJECT_NOT_FOUND', 'There is no such project.', { project_id: given.slice(0, 100) });
  }
  return project;
}

const keyHeaders = { client: 'publishable-client-key', server: 'secret-server-key', admin: 'super-secret-admin-key' };
const keyKinds: Readonly<Record<AccessType, KeyKind>> = { client: 'publishable', server: 'secret', admin: 'admin' };
const wrongKeys = {
  client: 'INVALID_PUBLISHABLE_CLIENT_KEY',
  server: 'INVALID_SECRET_SERVER_KEY',
  admin: 'INVALID_SUPER_SECRET_ADMIN_KEY',
} as const;

async function requireKey(parts: AuthProviderParts, request: FastifyRequest, access: AccessType, project: ProjectRow) {
  const given = readHeader(request, keyHeaders[access]);
  if (given === undefined) {
    if (access === 'server') throw known('SERVER_AUTHENTICATION_REQUIRED', 'The secret server key is missing.');
    if (access === 'admin') throw known('ADMIN_AUTHENTICATION_REQUIRED', 'The super secret admin key is missing.');
    requireNoPublishableKey(project);
    return;
  }
  if (access === 'client' && given === publicClientSentinel) return requireNoPublishableKey(project);
  if (!(await isProjectKey(parts, project.id, keyKinds[access], given))) {
    throw known(wrongKeys[access], 'The key is wrong, revoked or expired.', { project_id: project.id });
  }
}

/** What SDKs send when they were given no publishable key. */
const publicClientSentinel = '__stack_public_client__';

/** The project that is the client of the OAuth endpoints, which take its id and key as parameters. */
export async function requireOauthClient(
  parts: AuthProviderParts,
  id: string | undefined,
  secret: string | undefined,
): Promise<ProjectRow> {
  const projectId = projectIdFromWire(id ?? '');
  const project = projectId === undefined ? undefined : await selectProject(parts.database.sql, projectId);
  const hasNoKey = secret === undefined || secret === publicClientSentinel;
  const isGood =
    project !== undefined &&
    (hasNoKey ? !project.requirePublishableClientKey : await isProjectKey(parts, project.id, 'publishable', secret));
  if (!isGood) {
    throw known('INVALID_OAUTH_CLIENT_ID_OR_SECRET', 'The client id or the client secret is not right.', {
      client_id: id ?? null,
    });
  }
  return project;
}

function requireNoPublishableKey(project: ProjectRow): void {
  if (!project.requirePublishableClientKey) return;
  throw known('PUBLISHABLE_CLIENT_KEY_REQUIRED_FOR_PROJECT', 'This project requires its publishable client key.', {
    project_id: project.id,
  });
}

function isProjectKey(parts: AuthProviderParts, projectId: string, kind: KeyKind, key: string): Promise<boolean> {
  return isGoodKey(parts.database.sql, { projectId, kind, hash: hashToken(key), now: parts.clock.now() });
}

async function tokenOf(
  parts: AuthProviderParts,
  request: FastifyRequest,
  project: ProjectRow,
): Promise<VerifiedToken | null> {
  const given = readHeader(request, 'access-token');
  return given === undefined ? null : verifySession(parts, given, project.id);
}

function integrationClient(parts: AuthProviderParts, request: FastifyRequest): string {
  const header = /^Basic ([A-Za-z0-9+/=]{1,1000})$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  const text = Buffer.from(header, 'base64').toString();
  const at = text.indexOf(':');
  const [id, secret] = at < 0 ? ['', ''] : [text.slice(0, at), text.slice(at + 1)];
  const expected = Object.hasOwn(parts.integrationSecrets, id) ? parts.integrationSecrets[id] : undefined;
  // Hashes have equal lengths, so that the comparison takes the same time for every guess.
  const isSame = timingSafeEqual(hashToken(secret), hashToken(expected ?? ''));
  if (expected === undefined || !isSame) {
    throw schemaError('headers.authorization must be Basic and hold the client_id:client_secret of an integration');
  }
  return id;
}
