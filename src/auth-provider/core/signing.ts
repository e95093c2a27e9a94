/**
 * Access tokens and the keys that sign them. Every project has its own keys (ES256), made when they are first needed
 * and sealed at rest. Rotation overlaps: the new key is published long enough for every cache to have it before it
 * signs, and the old one stays published until the last of its tokens has expired.
 */
import { randomBytes } from 'node:crypto';
import { type CryptoKey, decodeJwt, errors, exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT } from 'jose';
import { known } from '../http/errors.ts';
import { lockProject } from '../statements/projects.ts';
import {
  type Audience,
  insertSigningKey,
  type PublicJwk,
  retireSigningKeys,
  type SigningKeyRow,
  selectPublishedKey,
  selectPublishedKeys,
  selectSigningKey,
  signingKeySealContext,
} from '../statements/signing-keys.ts';
import type { UserRow } from '../statements/users.ts';
import { projectIdOnWire } from './internal-project.ts';
import type { AuthProviderParts } from './parts.ts';
import { restrictedReason } from './user-view.ts';

const algorithm = 'ES256';
/** How long caches may keep a key set; also the time between publishing a key and signing with it. */
export const keySetSeconds = 3_600;
const standardTokenSeconds = 600;

const issuerPaths: Readonly<Record<Audience, string>> = {
  plain: 'projects',
  restricted: 'projects-restricted-users',
  anonymous: 'projects-anonymous-users',
};
const audienceSuffixes: Readonly<Record<Audience, string>> = {
  plain: '',
  restricted: ':restricted',
  anonymous: ':anon',
};

const audiences: readonly Audience[] = ['plain', 'restricted', 'anonymous'];

export const tokenSeconds = (parts: AuthProviderParts) => parts.accessTokenSeconds ?? standardTokenSeconds;

export async function issueAccessToken(parts: AuthProviderParts, user: UserRow, sessionId: string): Promise<string> {
  const audience = audienceOf(user);
  const key = await signingKey(parts, user.projectId, audience);
  const jwk: unknown = JSON.parse(parts.box.open(key.privateJwk, signingKeySealContext(key.kid)));
  const issuedAt = Math.floor(parts.clock.now().getTime() / 1000);
  return new SignJWT({
    ...claimsOf(user, sessionId),
    iss: issuer(parts, user.projectId, audience),
    aud: audienceName(user.projectId, audience),
    iat: issuedAt,
    exp: issuedAt + tokenSeconds(parts),
  })
    .setProtectedHeader({ alg: algorithm, kid: key.kid })
    .sign(await importJWK(jwk as object, algorithm));
}

/** The SDKs require every one of these, null included. */
function claimsOf(user: UserRow, sessionId: string) {
  const reason = restrictedReason(user);
  return {
    sub: user.id,
    project_id: projectIdOnWire(user.projectId),
    branch_id: 'main',
    refresh_token_id: sessionId,
    role: 'authenticated',
    name: user.displayName,
    email: user.primaryEmail,
    email_verified: user.primaryEmailVerified,
    selected_team_id: user.selectedTeamId,
    signed_up_at: Math.floor(user.signedUpAt.getTime() / 1000),
    is_anonymous: user.isAnonymous,
    is_restricted: reason !== null,
    restricted_reason: reason,
    requires_totp_mfa: false,
  };
}

export interface VerifiedToken {
  readonly projectId: string;
  readonly userId: string;
  readonly sessionId: string;
}

/** Throws the error that makes SDKs refresh the token, or the one that makes them discard it. */
export async function verifyAccessToken(
  parts: AuthProviderParts,
  token: string,
  projectId: string,
): Promise<VerifiedToken> {
  const unparsable = known('UNPARSABLE_ACCESS_TOKEN', 'The access token is not one that this provider has signed.');
  const kid = keyIdOf(token);
  if (kid === undefined) throw unparsable;
  const key = await selectPublishedKey(parts.database.sql, kid, parts.clock.now());
  if (key === undefined) throw expired(null);
  try {
    const { payload } = await jwtVerify(token, await publicKey(key.publicJwk), {
      algorithms: [algorithm],
      issuer: issuer(parts, key.projectId, key.audience),
      audience: audienceName(key.projectId, key.audience),
      requiredClaims: ['sub', 'exp', 'refresh_token_id'],
      currentDate: parts.clock.now(),
    });
    if (key.projectId !== projectId) {
      throw known('INVALID_PROJECT_FOR_ACCESS_TOKEN', 'The access token belongs to another project.', {
        expected_project_id: projectIdOnWire(projectId),
        actual_project_id: projectIdOnWire(key.projectId),
      });
    }
    return { projectId, userId: String(payload.sub), sessionId: String(payload.refresh_token_id) };
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw expired(Number(error.payload.exp) * 1000);
    if (error instanceof errors.JOSEError) throw unparsable;
    throw error;
  }
}

export function expired(atMillis: number | null) {
  const details = { expired_at_millis: atMillis, project_id: null, user_id: null, refresh_token_id: null };
  return known('ACCESS_TOKEN_EXPIRED', 'The access token has expired or was revoked. Refresh it.', details);
}

/** The key set that verifiers fetch. Keys for restricted and anonymous users are included only on request. */
export async function keySet(parts: AuthProviderParts, projectId: string, wanted: readonly Audience[]) {
  for (const audience of wanted) await signingKey(parts, projectId, audience);
  const keys = await selectPublishedKeys(parts.database.sql, projectId, parts.clock.now());
  const published = keys.filter((key) => wanted.includes(key.audience));
  return { keys: published.map(({ kid, publicJwk }) => ({ ...publicJwk, alg: algorithm, kid })) };
}

/**
 * With `isImmediate` (a key has leaked) the new keys sign at once and the old ones are unpublished: every access token
 * is void, and clients refresh theirs.
 */
export async function rotateSigningKeys(
  parts: AuthProviderParts,
  projectId: string,
  { isImmediate }: { isImmediate: boolean },
): Promise<SigningKeyRow[]> {
  const made = await Promise.all(audiences.map((audience) => newKey(parts, projectId, audience)));
  const now = parts.clock.now();
  const signsFrom = isImmediate ? now : new Date(now.getTime() + keySetSeconds * 1000);
  const retireAt = isImmediate ? now : new Date(signsFrom.getTime() + tokenSeconds(parts) * 1000 + 60_000);
  return parts.database.transaction(async (tx) => {
    await lockProject(tx, projectId);
    for (const audience of audiences) await retireSigningKeys(tx, projectId, audience, retireAt);
    const rows: SigningKeyRow[] = [];
    for (const key of made) rows.push(await insertSigningKey(tx, { ...key, signsFrom, expiresAt: null }));
    return rows;
  });
}

async function signingKey(parts: AuthProviderParts, projectId: string, audience: Audience): Promise<SigningKeyRow> {
  const find = (sql: AuthProviderParts['database']['sql']) =>
    selectSigningKey(sql, projectId, audience, parts.clock.now());
  const there = await find(parts.database.sql);
  if (there !== undefined) return there;
  const made = await newKey(parts, projectId, audience);
  return parts.database.transaction(async (tx) => {
    await lockProject(tx, projectId);
    const meanwhile = await find(tx);
    return meanwhile ?? insertSigningKey(tx, { ...made, signsFrom: parts.clock.now(), expiresAt: null });
  });
}

async function newKey(parts: AuthProviderParts, projectId: string, audience: Audience) {
  const pair = await generateKeyPair(algorithm, { extractable: true });
  const { kty, crv, x, y } = await exportJWK(pair.publicKey);
  const publicJwk: PublicJwk = { kty: String(kty), crv: String(crv), x: String(x), y: String(y) };
  const kid = randomBytes(9).toString('base64url');
  const privateJwk = parts.box.seal(JSON.stringify(await exportJWK(pair.privateKey)), signingKeySealContext(kid));
  return { kid, projectId, audience, publicJwk, privateJwk };
}

async function publicKey(jwk: PublicJwk): Promise<CryptoKey | Uint8Array> {
  return importJWK({ ...jwk }, algorithm);
}

function keyIdOf(token: string): string | undefined {
  try {
    decodeJwt(token);
    const header: unknown = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());
    const kid = typeof header === 'object' && header !== null && 'kid' in header ? header.kid : undefined;
    return typeof kid === 'string' && /^[\w-]{12}$/.test(kid) ? kid : undefined;
  } catch {
    return undefined;
  }
}

function audienceOf(user: UserRow): Audience {
  if (user.isAnonymous) return 'anonymous';
  return restrictedReason(user) === null ? 'plain' : 'restricted';
}

const issuer = (parts: AuthProviderParts, projectId: string, audience: Audience) =>
  `${parts.baseUrl}/api/v1/${issuerPaths[audience]}/${projectIdOnWire(projectId)}`;
const audienceName = (projectId: string, audience: Audience) =>
  `${projectIdOnWire(projectId)}${audienceSuffixes[audience]}`;
