/** Starts the session of an authenticated client of a `-pooler` hostname: finds its pool and completes its login. */
import { CatnapError } from '../../lib/errors.ts';
import type { Identity } from '../client/authenticate.ts';
import type { CancelKeys } from '../compute/cancel.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import { authenticationOk, backendKeyData } from '../protocol/messages.ts';
import { greet } from './greeting.ts';
import { PooledSession, readyForQuery } from './pooled-session.ts';
import type { Pools } from './pools.ts';
import { splitParameters } from './tracked-settings.ts';

export interface PooledClientOptions {
  readonly identity: Identity;
  readonly parameters: ReadonlyMap<string, string>;
  readonly messages: MessageStream;
  readonly pools: Pools;
  readonly cancelKeys: CancelKeys;
  readonly cancelMs: number;
  readonly signal: AbortSignal;
  readonly onActivity: () => void;
  readonly sent: { bytes: number };
  readonly onRefusal: (thrown: unknown, sqlState: string) => void;
  readonly onClosed: () => void;
}

/** Rejects with the error for the client, whose connection then still belongs to the caller. */
export async function startPooledSession(options: PooledClientOptions): Promise<PooledSession> {
  const { identity, parameters, messages, pools, signal } = options;
  if (parameters.has('replication')) {
    throw new CatnapError(
      'not_supported',
      'replication is not possible through the pooler: leave -pooler out of the host name',
    );
  }
  const pool = pools.open(identity, parameters);
  pool.clients += 1;
  let isStarted = false;
  try {
    const { values, bytes } = await greet(pool, splitParameters(parameters).wanted, signal);
    signal.throwIfAborted();
    let session: PooledSession | null = null;
    const { key, revoke } = options.cancelKeys.issue({ cancel: async () => session?.cancel() });
    const greeting = Buffer.concat([authenticationOk, bytes, backendKeyData(key), readyForQuery]);
    options.sent.bytes += greeting.length;
    messages.write(greeting);
    isStarted = true;
    session = new PooledSession({
      stream: messages.release(),
      pool,
      values,
      cancelMs: options.cancelMs,
      onActivity: options.onActivity,
      sent: options.sent,
      onRefusal: options.onRefusal,
      onClosed: () => {
        revoke();
        pool.clients -= 1;
        options.onClosed();
      },
    });
    return session;
  } finally {
    if (!isStarted) pool.clients -= 1;
  }
}
