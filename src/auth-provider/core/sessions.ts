/**
 * Sessions and their refresh tokens. The SDKs keep the first refresh token forever and ignore a new one, so rotation is
 * offered, not forced: each refresh also returns the next token, the same one however often it is requested. Once the
 * next token is used, the client has shown that it rotates, and the token before it is retired; a client that still
 * uses the retired token after a short grace period is a thief or the victim of one: the whole session ends.
 */
import { randomUUID } from 'node:crypto';
import { hashToken } from '../../lib/secrets.ts';
import { known } from '../http/errors.ts';
import {
  advanceSession,
  deleteSession,
  insertRefreshToken,
  insertSession,
  lockRefreshToken,
  type SessionRow,
  selectSession,
  touchSession,
} from '../statements/sessions.ts';
import { selectUser, touchUser, type UserRow } from '../statements/users.ts';
import type { AuthProviderParts } from './parts.ts';
import { expired, issueAccessToken, type VerifiedToken, verifyAccessToken } from './signing.ts';
import { derivedToken } from './tokens.ts';

const dayMs = 86_400_000;
export const sessionMsStandard = 365 * dayMs;
export const sessionMsMax = 367 * dayMs;
/** For two tabs that refresh at once, or a reply that was lost. */
const graceMs = 60_000;

export interface Tokens {
  readonly sessionId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

export interface SessionOrder {
  readonly from: string;
  readonly isImpersonation?: boolean;
  readonly lastsMs?: number;
}

export async function startSession(parts: AuthProviderParts, user: UserRow, order: SessionOrder): Promise<Tokens> {
  const id = randomUUID();
  const now = parts.clock.now();
  const refreshToken = tokenOf(parts, id, 0);
  await parts.database.transaction(async (tx) => {
    await insertSession(tx, {
      id,
      projectId: user.projectId,
      userId: user.id,
      createdAt: now,
      lastUsedAt: now,
      lastUsedFrom: order.from,
      isImpersonation: order.isImpersonation ?? false,
      expiresAt: new Date(now.getTime() + (order.lastsMs ?? sessionMsStandard)),
    });
    await insertRefreshToken(tx, { tokenHash: hashToken(refreshToken), sessionId: id, generation: 0 });
  });
  return { sessionId: id, accessToken: await issueAccessToken(parts, user, id), refreshToken };
}

/** The refresh token of the result is the next one; a client that ignores it continues with the one it has. */
export async function refreshSession(
  parts: AuthProviderParts,
  projectId: string,
  token: string,
  from: string,
): Promise<Tokens> {
  const found = await parts.database.transaction(async (tx) => {
    const now = parts.clock.now();
    const row = await lockRefreshToken(tx, hashToken(token));
    if (row === undefined || row.session.projectId !== projectId || row.session.expiresAt <= now) return undefined;
    const { session } = row;
    if (row.token.retiredAt !== null && now.getTime() - row.token.retiredAt.getTime() > graceMs) {
      await deleteSession(tx, projectId, session.id);
      return undefined;
    }
    const current = Math.max(session.generation, row.token.generation);
    if (current > session.generation) await advanceSession(tx, session.id, current, now);
    const next = tokenOf(parts, session.id, current + 1);
    await insertRefreshToken(tx, { tokenHash: hashToken(next), sessionId: session.id, generation: current + 1 });
    await touchSession(tx, session.id, now, from);
    await touchUser(tx, session.userId, now);
    const user = await selectUser(tx, projectId, session.userId);
    return user === undefined ? undefined : { user, session, next };
  });
  if (found === undefined) throw noSession();
  const accessToken = await issueAccessToken(parts, found.user, found.session.id);
  return { sessionId: found.session.id, accessToken, refreshToken: found.next };
}

/** A token whose session has ended counts as expired: the SDKs then try to refresh, are refused, and are signed out. */
export async function verifySession(
  parts: AuthProviderParts,
  token: string,
  projectId: string,
): Promise<VerifiedToken> {
  const verified = await verifyAccessToken(parts, token, projectId);
  const session = await selectSession(parts.database.sql, verified.sessionId, parts.clock.now());
  if (session === undefined) throw expired(null);
  return verified;
}

export const noSession = () =>
  known('REFRESH_TOKEN_NOT_FOUND_OR_EXPIRED', 'The session has ended, or never was one of this project.');

/** Derived from the session and the generation, so that it can be returned again without being stored. */
function tokenOf(parts: AuthProviderParts, sessionId: string, generation: number): string {
  return derivedToken(parts.derivationKey, 'refresh token', sessionId, generation);
}

export function sessionView(session: SessionRow, currentId: string | undefined) {
  return {
    id: session.id,
    user_id: session.userId,
    created_at: session.createdAt.getTime(),
    last_used_at: session.lastUsedAt.getTime(),
    is_impersonation: session.isImpersonation,
    is_current_session: session.id === currentId,
    ...(session.lastUsedFrom === null
      ? {}
      : { last_used_at_end_user_ip_info: { ip: session.lastUsedFrom, isMaybeSpoofed: false } }),
  };
}
