/**
 * The visitor of the provider's pages. The cookie is random text from the first visit on; only its hash is stored, and
 * only after a sign-in, which replaces the cookie. Forms carry a token (`mark`) derived from the cookie, which another
 * site cannot know.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hashToken } from '../../lib/secrets.ts';
import { internalProjectId } from '../core/internal-project.ts';
import type { AuthProviderParts } from '../core/parts.ts';
import { derivedToken } from '../core/tokens.ts';
import { plain } from '../http/errors.ts';
import { deletePageSession, insertPageSession, selectPageUserId } from '../statements/page-sessions.ts';
import { selectUser, type UserRow } from '../statements/users.ts';

const cookieName = 'catnap_stack';
const sessionMs = 7 * 86_400_000;

export interface Visitor {
  readonly token: string;
  readonly user: UserRow | null;
  /** The token for forms. */
  readonly mark: string;
}

/** Sets the cookie for a visitor without one. */
export async function visitorOf(
  parts: AuthProviderParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Visitor> {
  const kept = readCookie(request);
  const token = kept ?? newCookie();
  if (kept === undefined) setCookie(parts, reply, token);
  const { sql } = parts.database;
  const userId = kept && (await selectPageUserId(sql, hashToken(kept), parts.clock.now()));
  const user = userId ? await selectUser(sql, internalProjectId, userId) : undefined;
  return { token, user: user ?? null, mark: markOf(parts, token) };
}

/** A new cookie, so that one that an attacker planted before is worthless afterwards. */
export async function signInVisitor(parts: AuthProviderParts, reply: FastifyReply, user: UserRow): Promise<void> {
  const token = newCookie();
  const expiresAt = new Date(parts.clock.now().getTime() + sessionMs);
  await insertPageSession(parts.database.sql, { tokenHash: hashToken(token), userId: user.id, expiresAt });
  setCookie(parts, reply, token);
}

export async function signOutVisitor(parts: AuthProviderParts, reply: FastifyReply, visitor: Visitor): Promise<void> {
  await deletePageSession(parts.database.sql, hashToken(visitor.token));
  setCookie(parts, reply, newCookie());
}

/** For every form that changes something: it must be sent by this visitor from one of our own pages. */
export function requireOwnForm(request: FastifyRequest, visitor: Visitor, mark: string | undefined): void {
  const { origin, host } = request.headers;
  const isForeign =
    (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)) ||
    request.headers['sec-fetch-site'] === 'cross-site';
  const isSame = timingSafeEqual(hashToken(mark ?? ''), hashToken(visitor.mark));
  if (isForeign || !isSame) throw plain(403, 'This form is out of date. Go back, reload the page and try again.');
}

const markOf = (parts: AuthProviderParts, token: string) => derivedToken(parts.derivationKey, 'form', token);
const newCookie = () => randomBytes(32).toString('base64url');

function readCookie(request: FastifyRequest): string | undefined {
  const found = (request.headers.cookie ?? '').split(/; */).find((part) => part.startsWith(`${cookieName}=`));
  const value = found?.slice(cookieName.length + 1);
  return value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined;
}

/** Lax, not strict: the link to a transfer comes from elsewhere, and its reader may already be signed in. */
function setCookie(parts: AuthProviderParts, reply: FastifyReply, token: string): void {
  const secure = parts.baseUrl.startsWith('https:') ? '; Secure' : '';
  const seconds = sessionMs / 1000;
  reply.header(
    'set-cookie',
    `${cookieName}=${token}; Path=/stack; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure}`,
  );
}
