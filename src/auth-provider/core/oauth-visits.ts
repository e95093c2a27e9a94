/**
 * A sign-in with an OAuth provider, in three steps: the application sends somebody there (`beginVisit`), the OAuth
 * provider sends them back here (`endVisit`), and the application collects a session with the code that it then gets
 * (`redeemVisit`). Nothing about users changes before the last step. It needs the application's PKCE verifier, which
 * only the browser that began has: so nobody can be made to use, or to connect, an account that is not theirs.
 */
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { hashToken } from '../../lib/secrets.ts';
import { AuthProviderError, known, plain } from '../http/errors.ts';
import { selectDomains } from '../statements/domains.ts';
import { type OauthProviderRow, oauthSecretSealContext, selectOauthProvider } from '../statements/oauth-providers.ts';
import {
  insertOauthVisit,
  type OauthVisitRow,
  recordIdentity,
  takeRedeemedVisit,
  takeReturningVisit,
} from '../statements/oauth-visits.ts';
import { type ProjectRow, selectProject } from '../statements/projects.ts';
import type { IdentityProvider } from '../third-party/identity-provider.ts';
import type { IdentityProviders } from '../third-party/identity-providers.ts';
import { isTrustedUrl } from './domains.ts';
import { enter, requireEntry } from './oauth-accounts.ts';
import { inAppTerms, withError, withParameters } from './oauth-answers.ts';
import type { AuthProviderParts } from './parts.ts';
import { startSession, type Tokens } from './sessions.ts';
import { derivedToken, newToken } from './tokens.ts';

/** How long somebody may take at the OAuth provider. */
const visitMs = 600_000;
/** The application collects its session at once. */
const codeMs = 60_000;

export interface VisitOrder {
  readonly providerId: string;
  readonly userId: string | null;
  readonly redirectUri: string;
  readonly afterCallbackRedirectUrl: string | null;
  readonly appState: string;
  readonly codeChallenge: string;
}

/** Returns where to send the browser. */
export async function beginVisit(
  parts: AuthProviderParts,
  providers: IdentityProviders,
  project: ProjectRow,
  order: VisitOrder,
): Promise<string> {
  const { row, provider } = await requireProvider(parts, providers, project.id, order.providerId);
  const id = randomUUID();
  const state = newToken();
  const url = await inAppTerms(() =>
    provider.authorizationUrl({
      clientId: row.clientId,
      redirectUri: callbackUrl(parts, order.providerId),
      state,
      nonce: nonceOf(parts, id),
      codeChallenge: challengeOf(verifierOf(parts, id)),
    }),
  );
  const createdAt = parts.clock.now();
  const expiresAt = new Date(createdAt.getTime() + visitMs);
  const stateHash = hashToken(state);
  await insertOauthVisit(parts.database.sql, { id, projectId: project.id, ...order, stateHash, createdAt, expiresAt });
  return url;
}

export interface VisitAnswer {
  readonly providerId: string;
  readonly state: string;
  readonly code: string | undefined;
  readonly error: string | undefined;
  readonly issuer: string | undefined;
}

/** Returns where to send the browser: back to the application, with a code or with what went wrong. */
export async function endVisit(
  parts: AuthProviderParts,
  providers: IdentityProviders,
  answer: VisitAnswer,
  onFailure: (error: AuthProviderError) => void,
): Promise<string> {
  const { sql } = parts.database;
  const visit = await takeReturningVisit(sql, hashToken(answer.state), parts.clock.now());
  const project = visit && (await selectProject(sql, visit.projectId));
  if (visit === undefined || project === undefined || visit.providerId !== answer.providerId) throw notOurs();
  if (!isTrustedUrl(project, await selectDomains(sql, project.id), visit.redirectUri)) throw notOurs();
  const given = { state: visit.appState };
  try {
    const code = await arrive(parts, providers, project, visit, answer);
    return withParameters(visit.redirectUri, { ...given, code });
  } catch (error) {
    if (!(error instanceof AuthProviderError) || error.code === null) throw error;
    onFailure(error);
    return withError(visit.redirectUri, error, given);
  }
}

const notOurs = () =>
  plain(400, 'This sign-in has ended, or did not begin here. Go back to the application and sign in again.');

async function arrive(
  parts: AuthProviderParts,
  providers: IdentityProviders,
  project: ProjectRow,
  visit: OauthVisitRow,
  answer: VisitAnswer,
): Promise<string> {
  const { sql } = parts.database;
  if (visit.expiresAt <= parts.clock.now()) throw known('OUTER_OAUTH_TIMEOUT', 'Signing in took too long. Try again.');
  if (answer.error !== undefined) throw refusedThere(answer.error);
  if (answer.code === undefined) throw refusedThere('server_error');
  const { code } = answer;
  const { row, provider } = await requireProvider(parts, providers, project.id, visit.providerId);
  const identity = await inAppTerms(() =>
    provider.identify({
      clientId: row.clientId,
      clientSecret: parts.box.open(row.clientSecret, oauthSecretSealContext(row)),
      redirectUri: callbackUrl(parts, visit.providerId),
      code,
      nonce: nonceOf(parts, visit.id),
      codeVerifier: verifierOf(parts, visit.id),
      issuer: answer.issuer,
    }),
  );
  await requireEntry(sql, project, { ...visit, identity });
  const ownCode = newToken();
  const codeExpiresAt = new Date(parts.clock.now().getTime() + codeMs);
  await recordIdentity(sql, visit.id, { identity, codeHash: hashToken(ownCode), codeExpiresAt });
  return ownCode;
}

function refusedThere(error: string): AuthProviderError {
  if (error === 'server_error' || error === 'temporarily_unavailable') {
    return known('OAUTH_PROVIDER_TEMPORARILY_UNAVAILABLE', 'The OAuth provider cannot do it at the moment.');
  }
  return known('OAUTH_PROVIDER_ACCESS_DENIED', 'The OAuth provider did not let the person in.');
}

export interface Redemption {
  readonly code: string;
  readonly redirectUri: string;
  readonly codeVerifier: string;
  readonly from: string;
}

export interface Redeemed {
  readonly tokens: Tokens;
  readonly isNewUser: boolean;
  readonly afterCallbackRedirectUrl: string | null;
}

/** The first try uses the code up, whether it is good or not. */
export async function redeemVisit(parts: AuthProviderParts, projectId: string, given: Redemption): Promise<Redeemed> {
  const now = parts.clock.now();
  const visit = await takeRedeemedVisit(parts.database.sql, projectId, hashToken(given.code), now);
  const isGood =
    visit !== undefined &&
    (visit.codeExpiresAt ?? now) > now &&
    visit.redirectUri === given.redirectUri &&
    timingSafeEqual(hashToken(challengeOf(given.codeVerifier)), hashToken(visit.codeChallenge));
  if (!isGood || visit.identity === null) {
    throw known('INVALID_AUTHORIZATION_CODE', 'The code is wrong, used, too old, or for another application.');
  }
  const { user, isNew } = await enter(parts, projectId, { ...visit, identity: visit.identity });
  return {
    tokens: await startSession(parts, user, { from: given.from }),
    isNewUser: isNew,
    afterCallbackRedirectUrl: visit.afterCallbackRedirectUrl,
  };
}

async function requireProvider(
  parts: AuthProviderParts,
  providers: IdentityProviders,
  projectId: string,
  id: string,
): Promise<{ readonly row: OauthProviderRow; readonly provider: IdentityProvider }> {
  const row = await selectOauthProvider(parts.database.sql, projectId, id);
  const provider = row && providers.find(id, row);
  if (row === undefined || provider === undefined) {
    throw known('OAUTH_PROVIDER_NOT_FOUND_OR_NOT_ENABLED', 'This project has no such OAuth provider.');
  }
  return { row, provider };
}

/** The address to register at the OAuth provider. */
const callbackUrl = (parts: AuthProviderParts, id: string) => `${parts.baseUrl}/api/v1/auth/oauth/callback/${id}`;

/** Derived, so that they need not be stored. */
const nonceOf = (parts: AuthProviderParts, id: string) => derivedToken(parts.derivationKey, 'oauth nonce', id);
const verifierOf = (parts: AuthProviderParts, id: string) => derivedToken(parts.derivationKey, 'oauth verifier', id);

const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
