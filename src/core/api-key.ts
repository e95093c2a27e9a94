/** API keys: issued once, kept as hashes, checked on every request, revoked at once. */
import { timingSafeEqual } from 'node:crypto';
import {
  type ApiKeyRow,
  type ApiKeyUse,
  deleteOrganizationApiKey,
  deletePersonalApiKey,
  hasFullPersonalApiKey,
  insertApiKey,
  notifyKeysChanged,
  selectApiKeyByHash,
  selectOrganizationApiKeys,
  selectPersonalApiKeys,
  updateApiKeyUses,
} from '../db/api-keys.ts';
import { CatnapError, invalid, notFound, withDetails } from '../lib/errors.ts';
import { newApiKeyToken, type OrganizationId, type ProjectId } from '../lib/ids.ts';
import { hashToken } from '../lib/secrets.ts';
import { type Caller, requireOrganization, requirePersonal, requireProject } from './access.ts';
import type { CommandScope, Core, Scope } from './context.ts';

export { apiKeyScopes } from '../db/api-keys.ts';

export type ApiKey = Omit<ApiKeyRow, 'tokenHash'>;

/** The caller behind a bearer token, or undefined. */
export async function authenticate(scope: Scope, token: string): Promise<Caller | undefined> {
  const tokenHash = hashToken(token);
  const key = await selectApiKeyByHash(scope.sql, tokenHash, scope.clock.now());
  if (key === undefined || !timingSafeEqual(tokenHash, key.tokenHash)) return undefined;
  return callerOfKey(key);
}

export function callerOfKey(key: ApiKey): Caller {
  return {
    keyId: key.id,
    kind: key.kind,
    scope: key.scope,
    expiresAt: key.expiresAt,
    userId: key.userId ?? key.createdBy,
    organizationId: key.organizationId,
    projectId: key.projectId,
  };
}

export interface NewKey {
  readonly key: ApiKey;
  /** The secret; shown in this one reply and never again. */
  readonly token: string;
}

/** What limits a key beside what it reaches. */
export type KeyLimits = Pick<ApiKey, 'scope' | 'expiresAt'>;

export async function createPersonalApiKey(
  scope: CommandScope,
  caller: Caller,
  input: KeyLimits & { readonly name: string },
): Promise<NewKey> {
  requirePersonal(caller);
  requireGoodEnd(scope, caller, input);
  const token = newApiKeyToken();
  const key = await insertApiKey(scope.tx, {
    tokenHash: hashToken(token),
    kind: 'personal',
    userId: caller.userId,
    organizationId: null,
    projectId: null,
    ...input,
    createdBy: caller.userId,
  });
  return { key, token };
}

export async function createOrganizationApiKey(
  scope: CommandScope,
  caller: Caller,
  input: KeyLimits & {
    readonly organizationId: OrganizationId;
    readonly name: string;
    readonly projectId: ProjectId | null;
  },
): Promise<NewKey> {
  await requireKeyAdmin(scope, caller, input.organizationId);
  requireGoodEnd(scope, caller, input);
  if (input.projectId !== null) {
    const project = await requireProject(scope, caller, input.projectId, 'manage');
    if (project.organizationId !== input.organizationId) throw notFound('project');
  }
  const token = newApiKeyToken();
  const key = await insertApiKey(scope.tx, {
    tokenHash: hashToken(token),
    kind: input.projectId === null ? 'organization' : 'project',
    userId: null,
    ...input,
    createdBy: caller.userId,
  });
  return { key, token };
}

export async function listPersonalApiKeys(scope: Scope, caller: Caller): Promise<ApiKey[]> {
  requirePersonal(caller);
  return selectPersonalApiKeys(scope.sql, caller.userId);
}

export async function listOrganizationApiKeys(scope: Scope, caller: Caller, id: OrganizationId): Promise<ApiKey[]> {
  await requireKeyAdmin(scope, caller, id);
  return selectOrganizationApiKeys(scope.sql, id);
}

export interface RevokedKey {
  readonly key: ApiKey;
  /** Nobody can make personal keys any more, except on the machine itself. */
  readonly wasLastPersonal: boolean;
}

export async function revokePersonalApiKey(scope: CommandScope, caller: Caller, id: number): Promise<RevokedKey> {
  requirePersonal(caller);
  const key = await deletePersonalApiKey(scope.tx, caller.userId, id);
  if (key === undefined) throw notFound('api key');
  await notifyKeysChanged(scope.tx, id);
  return { key, wasLastPersonal: !(await hasFullPersonalApiKey(scope.tx, caller.userId, scope.clock.now())) };
}

export async function revokeOrganizationApiKey(
  scope: CommandScope,
  caller: Caller,
  organizationId: OrganizationId,
  id: number,
): Promise<RevokedKey> {
  await requireKeyAdmin(scope, caller, organizationId);
  const key = await deleteOrganizationApiKey(scope.tx, organizationId, id);
  if (key === undefined) throw notFound('api key');
  await notifyKeysChanged(scope.tx, id);
  return { key, wasLastPersonal: false };
}

/** In the future, and not after the end of the key that makes it: that would not be its end. */
function requireGoodEnd({ clock }: Scope, caller: Caller, { expiresAt }: KeyLimits): void {
  if (expiresAt !== null && expiresAt <= clock.now()) {
    throw invalid('invalid request: body.expires_at must be a time in the future');
  }
  if (caller.expiresAt === null || (expiresAt !== null && expiresAt <= caller.expiresAt)) return;
  const end = caller.expiresAt.toISOString();
  throw new CatnapError(
    'forbidden',
    withDetails('a key that expires makes no key that lives longer', { expires_at: end }),
  );
}

async function requireKeyAdmin(scope: Scope, caller: Caller, id: OrganizationId): Promise<void> {
  await requireOrganization(scope, caller, id);
  if (caller.kind === 'project') throw new CatnapError('forbidden', 'not allowed for project-scoped API keys');
}

/** Remembers uses and writes them in batches, so that no request waits for a write. */
export class KeyUseRecorder {
  readonly #core: Core;
  readonly #uses = new Map<number, ApiKeyUse>();

  constructor(core: Core) {
    this.#core = core;
  }

  record(keyId: number, from: string): void {
    this.#uses.set(keyId, { id: keyId, at: this.#core.clock.now(), from });
  }

  async flush(): Promise<void> {
    const uses = [...this.#uses.values()];
    this.#uses.clear();
    if (uses.length > 0) await updateApiKeyUses(this.#core.database.sql, uses);
  }
}
