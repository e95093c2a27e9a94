/** The people and organizations there are: the caller's own profile, and what the first start creates. */
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
import { insertApiKey, selectApiKeyByHash } from '../db/api-keys.ts';
import type { Sql } from '../db/client.ts';
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
 * Makes the first user, organization and key, once. Returns the token when a key was made, null when all was there.
 * A configured key that is new to a database that has users becomes a further personal key of the first user, so that
 * setting the variable always works.
 */
export async function ensureFirstAccount(scope: CommandScope): Promise<{ readonly token: string } | null> {
  // Two starting processes must not both be first.
  await scope.tx`lock table users in share row exclusive mode`;
  const configured = scope.config.apiKey;
  const existing = await selectAnyUser(scope.tx);
  if (existing !== undefined && configured === undefined) return null;
  if (configured !== undefined && (await selectApiKeyByHash(scope.tx, hashToken(configured))) !== undefined)
    return null;
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

/** For the operator, who is a person: neither an organization's nor a project's key can raise its own limits. */
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

/** For what belongs to the installation as a whole: the person who started it, with a key of their own. */
export async function requireOperator(scope: Scope, caller: Caller): Promise<void> {
  requirePersonal(caller);
  const first = await selectAnyUser(scope.sql);
  if (first?.id !== caller.userId) throw new CatnapError('forbidden', 'this is for the operator of the installation');
}

/** Whether somebody has used this system database before. */
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
