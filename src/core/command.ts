/**
 * Runs a command: one transaction that writes intent and gives the reply. With an Idempotency-Key the reply is stored
 * in the same transaction, so there is no moment at which the work is done and the key is not.
 */
import { createHash } from 'node:crypto';
import { insertIdempotencyKey, selectIdempotencyKey, updateIdempotencyReply } from '../db/idempotency-keys.ts';
import { CatnapError, invalid } from '../errors.ts';
import { type CommandScope, type Core, commandScope } from './context.ts';

export interface Idempotency {
  /** Who asks and for what: one key used on two routes, or by two callers, is two keys. */
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
  if (idempotency.key.length === 0 || idempotency.key.length > keyLengthMax) {
    throw invalid(`invalid request: header idempotency-key must be 1 to ${keyLengthMax} characters`);
  }
  return core.database.transaction(async (tx) => {
    const { scope, key } = idempotency;
    const requestHash = createHash('sha256').update(idempotency.body).digest();
    const place = `idempotency:${scope}:${key}`;
    if (await insertIdempotencyKey(tx, { scope, key, requestHash })) {
      const reply = await work(commandScope(core, tx));
      await updateIdempotencyReply(tx, scope, key, core.box.seal(JSON.stringify(reply), place));
      return reply;
    }
    const stored = await selectIdempotencyKey(tx, scope, key);
    if (!stored?.reply)
      throw new CatnapError('unavailable', 'the first request with this idempotency key has not ended yet');
    if (!requestHash.equals(stored.requestHash)) {
      throw new CatnapError('unprocessable', 'the idempotency key was used before with another request body');
    }
    return JSON.parse(core.box.open(stored.reply, place)) as T;
  });
}
