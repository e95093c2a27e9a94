/**
 * Whose account it is that somebody signs in with: known already, joined to the user who has the same address if both
 * sides have verified it, or that of a new user. An address that nobody vouches for joins nothing.
 */
import { randomUUID } from 'node:crypto';
import type { Sql, Tx } from '../../db/client.ts';
import { known, plain } from '../http/errors.ts';
import { deleteOauthAccount, insertOauthAccount, selectOauthAccount } from '../statements/oauth-accounts.ts';
import type { Identity } from '../statements/oauth-visits.ts';
import type { ProjectRow } from '../statements/projects.ts';
import { selectUser, selectUserByLogin, type UserRow } from '../statements/users.ts';
import type { AuthProviderParts } from './parts.ts';
import { changeUser, changeUserIn, createUserIn, inProject, userNotFound } from './user-commands.ts';

export interface Arrival {
  readonly providerId: string;
  readonly identity: Identity;
  /** The signed-in user who wants the account connected; null for a sign-in. */
  readonly userId: string | null;
}

type Decision =
  | { readonly kind: 'known' | 'join'; readonly userId: string }
  /** The account belongs to nobody yet. */
  | { readonly kind: 'new' };

/** Throws what `enter` would refuse, so that the application hears of it before it collects anything. */
export async function requireEntry(sql: Sql, project: ProjectRow, arrival: Arrival): Promise<void> {
  await decide(sql, project, arrival);
}

export async function enter(
  parts: AuthProviderParts,
  projectId: string,
  arrival: Arrival,
): Promise<{ readonly user: UserRow; readonly isNew: boolean }> {
  return inProject(parts, projectId, async (tx, project) => {
    const decision = await decide(tx, project, arrival);
    if (decision.kind === 'new') {
      const connect = (userId: string) => insertAccount(tx, project, userId, arrival);
      return { user: await createUserIn(parts, tx, project, newUser(arrival.identity), connect), isNew: true };
    }
    const { userId } = decision;
    if (decision.kind === 'join') {
      const joined = await changeUserIn(parts, tx, project, userId, async () => {
        await insertAccount(tx, project, userId, arrival);
        return {};
      });
      return { user: joined, isNew: false };
    }
    const user = await selectUser(tx, projectId, userId);
    if (user === undefined) throw userNotFound();
    return { user, isNew: false };
  });
}

async function decide(sql: Sql, project: ProjectRow, { providerId, identity, userId }: Arrival): Promise<Decision> {
  const { issuer, accountId } = identity;
  const account = await selectOauthAccount(sql, { projectId: project.id, providerId, issuer, accountId });
  if (userId !== null) {
    if (account === undefined) {
      await requireUnconnected(sql, project.id, userId, providerId);
      return { kind: 'join', userId };
    }
    if (account.userId === userId) return { kind: 'known', userId };
    throw known('OAUTH_CONNECTION_ALREADY_CONNECTED_TO_ANOTHER_USER', 'This account belongs to another user.');
  }
  if (account !== undefined) return { kind: 'known', userId: account.userId };
  const holder = identity.email === null ? undefined : await selectUserByLogin(sql, project.id, identity.email);
  if (holder !== undefined) {
    requireBothVerified(identity, holder);
    return { kind: 'join', userId: holder.id };
  }
  if (!project.signUpEnabled) throw known('SIGN_UP_NOT_ENABLED', 'This project does not take new accounts.');
  return { kind: 'new' };
}

/**
 * A user has one account of each OAuth provider here. Also ends the circle of an SDK that visits the provider again for
 * an access token, which this provider does not keep.
 */
export async function requireUnconnected(sql: Sql, projectId: string, userId: string, providerId: string) {
  const user = await selectUser(sql, projectId, userId);
  if (user === undefined) throw userNotFound();
  if (!user.oauthAccounts.some((account) => account.providerId === providerId)) return;
  throw known(
    'USER_ALREADY_CONNECTED_TO_ANOTHER_OAUTH_CONNECTION',
    'The user has an account of this OAuth provider already; disconnect that one first.',
  );
}

/** Otherwise whoever enters somebody's address first, here or there, would share that person's account. */
function requireBothVerified(identity: Identity, holder: UserRow): void {
  if (identity.isEmailVerified && holder.primaryEmailVerified) return;
  throw known(
    'CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE',
    'Another account signs in with this e-mail address, and the address is not verified on both sides.',
    {
      type: 'email',
      contact_channel_value: identity.email,
      would_work_if_email_was_verified: identity.isEmailVerified,
    },
  );
}

/** An unverified address is shown, but nobody can sign in or reset a password with it. */
function newUser({ email, isEmailVerified, displayName, pictureUrl }: Identity) {
  return {
    displayName,
    profileImageUrl: pictureUrl,
    primaryEmail: email,
    primaryEmailVerified: isEmailVerified,
    primaryEmailAuthEnabled: isEmailVerified,
  };
}

function insertAccount(tx: Tx, project: ProjectRow, userId: string, { providerId, identity }: Arrival): Promise<void> {
  const { issuer, accountId, email } = identity;
  return insertOauthAccount(tx, {
    id: randomUUID(),
    projectId: project.id,
    userId,
    providerId,
    issuer,
    accountId,
    email,
  });
}

export async function disconnectAccount(parts: AuthProviderParts, projectId: string, userId: string, id: string) {
  await changeUser(parts, projectId, userId, async (user, tx) => {
    if (!(await deleteOauthAccount(tx, userId, id))) throw plain(404, 'The user has no such OAuth account.');
    const hasPassword = user.passwordHash !== null && user.primaryEmailAuthEnabled;
    if (!hasPassword && user.oauthAccounts.length === 1) {
      throw plain(400, 'This is the only way in which the user can sign in; set a password first.');
    }
    return {};
  });
}
