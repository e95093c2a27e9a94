/** Users and organizations: the caller's own profile, plans, the operator, and what the first start creates. */
import { createHash } from 'node:crypto';
import {
  insertMember,
  insertOrganization,
  insertUser,
  type OrganizationRow,
  selectAnyUser,
  selectUser,
  type UserRow,
  updatePlan,
} from '../db/accounts.ts';
import { insertApiKey, isTokenKnown, selectApiKeyByHash } from '../db/api-keys.ts';
import type { Sql, Tx } from '../db/client.ts';
import type { PlanName } from '../lib/config.ts';
import { CatnapError, notFound } from '../lib/errors.ts';
import { newApiKeyToken, newOrganizationId, newUserId, type OrganizationId } from '../lib/ids.ts';
import { hashToken } from '../lib/secrets.ts';
import { type Caller, organizationsOf, requireOrganization, requirePersonal } from './access.ts';
import type { CommandScope, Scope } from './context.ts';
import { type Plan, planOf } from './plan.ts';

export type User = UserRow;
export type Organization = OrganizationRow;

export async function getCurrentUser(
  scope: Scope,
  caller: Caller,
): Promise<{ readonly user: User; readonly plan: Plan }> {
  requirePersonal(caller);
  const user = await selectUser(scope.sql, caller.userId);
  if (user === undefined) throw notFound('user');
  const [organization] = await organizationsOf(scope, caller);
  return { user, plan: planOf(organization?.plan ?? scope.config.defaultPlan) };
}

/**
 * Creates the first user, organization and key, once. Returns the token if a key was created, else null. A configured
 * key that a database with users does not know becomes another personal key of the first user, so that setting the
 * variable always works.
 */
export async function ensureFirstAccount(scope: CommandScope): Promise<{ readonly token: string } | null> {
  // Of two processes that start at once, only one may create the account.
  await scope.tx`lock table users in share row exclusive mode`;
  const configured = scope.config.apiKey;
  const existing = await selectAnyUser(scope.tx);
  if (existing !== undefined && configured === undefined) return null;
  if (configured !== undefined && (await isTokenKnown(scope.tx, hashToken(configured)))) return null;
  const user = existing ?? (await createFirstUser(scope));
  const token = configured ?? newApiKeyToken();
  await insertApiKey(scope.tx, {
    tokenHash: hashToken(token),
    kind: 'personal',
    userId: user.id,
    organizationId: null,
    projectId: null,
    name: existing === undefined ? 'first key' : `configured key ${shortFingerprint(token)}`,
    createdBy: user.id,
  });
  return { token };
}

/** Whether the token is a personal key of the installation's first user, and may do everything. */
export async function isOperatorKey(sql: Sql, token: string, now: Date): Promise<boolean> {
  const key = await selectApiKeyByHash(sql, hashToken(token), now);
  return key?.kind === 'personal' && key.scope === 'full' && key.userId === (await selectAnyUser(sql))?.id;
}

/** A personal key of the first user, for whoever has the machine. */
export async function makeRecoveredKey(tx: Tx): Promise<string> {
  const user = await selectAnyUser(tx);
  if (user === undefined) throw notFound('user');
  const token = newApiKeyToken();
  await insertApiKey(tx, {
    tokenHash: hashToken(token),
    kind: 'personal',
    userId: user.id,
    organizationId: null,
    projectId: null,
    name: 'recovered key',
    createdBy: user.id,
  });
  return token;
}

/** For the operator's personal key: the key of an organization or a project cannot raise its own limits. */
export async function setPlan(
  scope: CommandScope,
  caller: Caller,
  id: OrganizationId,
  plan: PlanName,
): Promise<Organization> {
  const organization = await requireOrganization(scope, caller, id);
  requirePersonal(caller);
  return organization.plan === plan ? organization : updatePlan(scope.tx, id, plan);
}

/** For what belongs to the whole installation: allows only a personal key of the first user. */
export async function requireOperator(scope: Scope, caller: Caller): Promise<void> {
  requirePersonal(caller);
  const first = await selectAnyUser(scope.sql);
  if (first?.id !== caller.userId) throw new CatnapError('forbidden', 'this is for the operator of the installation');
}

/** Whether this system database has been used before. */
export async function hasAccount(sql: Sql): Promise<boolean> {
  return (await selectAnyUser(sql)) !== undefined;
}

async function createFirstUser(scope: CommandScope): Promise<User> {
  const user = await insertUser(scope.tx, {
    id: newUserId(),
    email: `admin@${scope.config.domain.includes('.') ? scope.config.domain : 'catnap.local'}`,
    login: 'admin',
    name: 'Admin',
  });
  const id = newOrganizationId();
  await insertOrganization(scope.tx, { id, name: 'Catnap', handle: id, plan: scope.config.defaultPlan });
  await insertMember(scope.tx, id, user.id);
  return user;
}

const shortFingerprint = (token: string) => createHash('sha256').update(token).digest('hex').slice(0, 6);
