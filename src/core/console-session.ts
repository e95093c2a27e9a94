/**
 * Signing in to the console. A sign-in stands for an API key: it is kept as the hash of a random token, ends when the
 * key is revoked, and never holds the key itself. A link from the terminal signs in once.
 */
import { type ApiKeyRow, notifyKeysChanged, selectApiKeyByHash } from '../db/api-keys.ts';
import {
  deleteConsoleSession,
  insertConsoleLink,
  insertConsoleSession,
  selectConsoleSession,
  takeConsoleLink,
} from '../db/console-sessions.ts';
import { dayMs, minuteMs } from '../lib/clock.ts';
import { newSecret } from '../lib/ids.ts';
import { hashToken } from '../lib/secrets.ts';
import type { Caller } from './access.ts';
import { callerOfKey } from './api-key.ts';
import type { CommandScope, Scope } from './context.ts';

export const sessionDays = 14;
const linkMinutes = 60;
const sessionsOfEachKey = 50;

/** The token of a new sign-in, or undefined when the key is not valid. */
export async function signInWithKey(scope: CommandScope, apiKey: string): Promise<string | undefined> {
  const key = await selectApiKeyByHash(scope.tx, hashToken(apiKey), scope.clock.now());
  return key === undefined ? undefined : makeSession(scope, key.id);
}

/** The token of a new sign-in, or undefined when the link was used before, is too old, or does not exist. */
export async function signInWithLink(scope: CommandScope, link: string): Promise<string | undefined> {
  const keyId = await takeConsoleLink(scope.tx, hashToken(link), scope.clock.now());
  return keyId === undefined ? undefined : makeSession(scope, keyId);
}

async function makeSession(scope: CommandScope, apiKeyId: number): Promise<string> {
  const token = newSecret();
  const expiresAt = new Date(scope.clock.now().getTime() + sessionDays * dayMs);
  await insertConsoleSession(scope.tx, { tokenHash: hashToken(token), apiKeyId, expiresAt }, sessionsOfEachKey);
  return token;
}

export interface ConsoleSession {
  readonly caller: Caller;
  readonly keyName: string;
}

/** The caller behind the token of a sign-in, or undefined. */
export async function findConsoleSession(scope: Scope, token: string): Promise<ConsoleSession | undefined> {
  const key: ApiKeyRow | undefined = await selectConsoleSession(scope.sql, hashToken(token), scope.clock.now());
  return key === undefined ? undefined : { caller: callerOfKey(key), keyName: key.name };
}

export async function signOut(scope: CommandScope, token: string): Promise<void> {
  const keyId = await deleteConsoleSession(scope.tx, hashToken(token));
  if (keyId !== undefined) await notifyKeysChanged(scope.tx, keyId);
}

/** A token that signs in once, as the owner of this key. */
export async function makeConsoleLink(scope: CommandScope, apiKey: string): Promise<string | undefined> {
  const key = await selectApiKeyByHash(scope.tx, hashToken(apiKey), scope.clock.now());
  if (key === undefined) return undefined;
  const token = newSecret();
  const expiresAt = new Date(scope.clock.now().getTime() + linkMinutes * minuteMs);
  await insertConsoleLink(scope.tx, { tokenHash: hashToken(token), apiKeyId: key.id, expiresAt });
  return token;
}
