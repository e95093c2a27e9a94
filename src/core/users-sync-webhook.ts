/**
 * Webhooks of an auth provider elsewhere, signed in the manner of Svix. A webhook only names a user to read: what it
 * says about the user may be old, so it is ignored, and repeats and wrong order do no harm.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { selectAuthIntegration } from '../db/auth-integrations.ts';
import { selectProject } from '../db/projects.ts';
import { insertUserHint } from '../db/users-sync.ts';
import { invalid } from '../lib/errors.ts';
import { isUuid } from '../lib/ids.ts';
import { webhookSecretSealContext } from './auth-integration.ts';
import type { Scope } from './context.ts';

export interface SignedMessage {
  readonly id: string;
  /** Seconds since 1970, as text. */
  readonly timestamp: string;
  /** One or more of `v1,<base64>`, with spaces between. */
  readonly signatures: string;
  readonly body: Uint8Array;
}

const toleranceSeconds = 5 * 60;
/** A sender that changes its secret sends two for a while. */
const signaturesMax = 8;
const secretPrefix = 'whsec_';
const userEvents: readonly unknown[] = ['user.created', 'user.updated', 'user.deleted'];
/** With it, a webhook for an integration that does not exist takes as long to refuse as any other. */
const nobodysSecret = `${secretPrefix}${randomBytes(24).toString('base64')}`;

/** False when there is no such integration, or the message is not its provider's, or too old. */
export async function takeWebhook(scope: Scope, integrationId: string, message: SignedMessage): Promise<boolean> {
  const row = isUuid(integrationId) ? await selectAuthIntegration(scope.sql, integrationId) : undefined;
  const sealed = row?.webhookSecret ?? null;
  const secret =
    sealed === null ? nobodysSecret : scope.box.open(sealed, webhookSecretSealContext(integrationId.toLowerCase()));
  const isGenuine = isSigned(message, secret, scope.clock.now());
  if (!isGenuine || row === undefined || sealed === null) return false;
  const userId = namedUser(message.body);
  // A detached integration, or that of a deleted project, has all its users read when it is taken up again.
  const isDeleted = (await selectProject(scope.sql, row.projectId)) === undefined;
  const isFollowed = row.providerProjectId !== null && row.status !== 'detached' && !isDeleted;
  if (userId !== null && isFollowed) await insertUserHint(scope.sql, row.providerProjectId, userId);
  return true;
}

/**
 * By hand and not by `standardwebhooks`, whose `verify` reads the system's clock, takes the body as text instead of
 * bytes, and tries every signature that was sent.
 */
function isSigned({ id, timestamp, signatures, body }: SignedMessage, secret: string, now: Date): boolean {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const given = signatures.split(' ', signaturesMax).filter((signature) => signature.startsWith('v1,'));
  const isRight = given
    .map((signature) => Buffer.from(signature.slice('v1,'.length), 'base64'))
    .map((mac) => mac.length === expected.length && timingSafeEqual(mac, expected))
    .includes(true);
  const isInTime =
    /^\d{1,12}$/.test(timestamp) && Math.abs(now.getTime() / 1000 - Number(timestamp)) <= toleranceSeconds;
  return isRight && isInTime;
}

/** Null for events that are not about users. */
function namedUser(body: Uint8Array): string | null {
  const event = parse(body);
  if (typeof event !== 'object' || event === null) throw invalid('invalid request: the body is not a JSON object');
  if (!('type' in event) || !userEvents.includes(event.type)) return null;
  const data = 'data' in event ? event.data : undefined;
  const id = typeof data === 'object' && data !== null && 'id' in data ? data.id : undefined;
  if (typeof id !== 'string' || !isUuid(id)) throw invalid('invalid request: data.id must be the id of a user');
  return id;
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** For a user that was made or deleted over the API: it is known here before the provider's webhook comes. */
export async function noteUser(
  scope: Scope,
  integration: { readonly providerUrl: string | null; readonly providerProjectId: string | null },
  userId: string,
): Promise<void> {
  const { providerUrl, providerProjectId } = integration;
  if (providerUrl === null || providerProjectId === null || !isUuid(userId)) return;
  await insertUserHint(scope.sql, providerProjectId, userId);
}
