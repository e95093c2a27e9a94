/**
 * Runs a command: one transaction that writes intent and gives the reply. With an Idempotency-Key the reply is stored
 * in the same transaction, so there is no moment at which the work is done and the key is not.
 */
import { createHash } from 'node:crypto';
import {
  claimIdempotencyKey,
  deleteIdempotencyKey,
  insertIdempotencyKey,
  selectIdempotencyKey,
  updateIdempotencyReply,
} from '../db/idempotency-keys.ts';
import { delay, minuteMs } from '../lib/clock.ts';
import { CatnapError, invalid } from '../lib/errors.ts';
import { type CommandScope, type Core, commandScope } from './context.ts';

export interface Idempotency {
  /** The caller and the route: one key used on two routes, or by two callers, is two keys. */
  readonly scope: string;
  readonly key: string;
  /** The request body as it arrived. */
  readonly body: string;
}

const keyLengthMax = 255;

/** `work` returns the reply as it goes over the wire (plain JSON), because that is what a repeat gets. */
export async function runCommand<T extends object>(
  core: Core,
  idempotency: Idempotency | null,
  work: (scope: CommandScope) => Promise<T>,
): Promise<T> {
  if (idempotency === null) return core.database.transaction((tx) => work(commandScope(core, tx)));
  requireKey(idempotency);
  return core.database.transaction(async (tx) => {
    const { scope, key } = idempotency;
    const requestHash = createHash('sha256').update(idempotency.body).digest();
    const sealContext = `idempotency:${scope}:${key}`;
    if (await insertIdempotencyKey(tx, { scope, key, requestHash })) {
      const reply = await work(commandScope(core, tx));
      await updateIdempotencyReply(tx, scope, key, core.box.seal(JSON.stringify(reply), sealContext));
      return reply;
    }
    const stored = await selectIdempotencyKey(tx, scope, key);
    if (!stored?.reply)
      throw new CatnapError('unavailable', 'the first request with this idempotency key has not ended yet');
    requireSameRequest(requestHash, stored);
    return JSON.parse(core.box.open(stored.reply, sealContext)) as T;
  });
}

function requireKey({ key }: Idempotency): void {
  if (key.length > 0 && key.length <= keyLengthMax) return;
  throw invalid(`invalid request: header idempotency-key must be 1 to ${keyLengthMax} characters`);
}

function requireSameRequest(requestHash: Buffer, stored: { readonly requestHash: Uint8Array }): void {
  if (requestHash.equals(stored.requestHash)) return;
  throw new CatnapError('unprocessable', 'the idempotency key was used before with another request body');
}

/** Longer than the longest wait of a request. */
const abandonedAfterMs = minuteMs;
const duplicateWaitMs = 35_000;
const duplicatePollMs = 200;

/**
 * As `runCommand`, for work that calls an outside service and must not hold a transaction meanwhile. A duplicate waits
 * for the first request. If that one failed, it has left nothing behind; if it died, it is taken over after a minute.
 */
export async function runOutside<T extends object>(
  core: Core,
  idempotency: Idempotency | null,
  work: () => Promise<T>,
): Promise<T> {
  if (idempotency === null) return work();
  requireKey(idempotency);
  const { sql } = core.database;
  const { scope, key } = idempotency;
  const requestHash = createHash('sha256').update(idempotency.body).digest();
  const sealContext = `idempotency:${scope}:${key}`;
  const giveUpAt = performance.now() + duplicateWaitMs;
  while (!(await claimIdempotencyKey(sql, { scope, key, requestHash }, abandonedAfterMs))) {
    const stored = await selectIdempotencyKey(sql, scope, key);
    if (stored !== undefined) requireSameRequest(requestHash, stored);
    if (stored?.reply) return JSON.parse(core.box.open(stored.reply, sealContext)) as T;
    if (performance.now() > giveUpAt)
      throw new CatnapError('unavailable', 'the first request with this idempotency key has not ended yet');
    await delay(duplicatePollMs);
  }
  try {
    const reply = await work();
    await updateIdempotencyReply(sql, scope, key, core.box.seal(JSON.stringify(reply), sealContext));
    return reply;
  } catch (error) {
    await deleteIdempotencyKey(sql, scope, key);
    throw error;
  }
}
