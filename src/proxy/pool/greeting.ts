/**
 * What a pooled client is greeted with: the settings that a server reports, with the client's own values. A server is
 * asked once for each combination of values; clients after that are greeted from memory.
 */
import { CatnapError } from '../../lib/errors.ts';
import { ComputeRefusal } from '../compute/session.ts';
import { errorResponse, parseErrorResponse } from '../protocol/messages.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';
import {
  applicationNameIndex,
  changeSql,
  cleanApplicationName,
  type Tracked,
  trackedIndex,
  withValue,
} from './parameters.ts';
import type { Pool, Waiter } from './pool.ts';
import { readParameters, type ServerConnection, type ServerLoss } from './server-connection.ts';

export interface Greeting {
  readonly values: Tracked;
  /** ParameterStatus of everything but the application's name. */
  readonly bytes: Buffer;
}

/** Combinations kept for one pool; drivers send a handful. */
const greetingsMax = 100;
const lossesMax = 5;

/** Rejects with what the client is to be told. */
export async function greet(
  pool: Pool,
  wanted: ReadonlyMap<number, string>,
  signal: AbortSignal,
): Promise<{ values: Tracked; bytes: Buffer }> {
  const application = cleanApplicationName(wanted.get(applicationNameIndex) ?? '');
  const asked = new Map(wanted);
  asked.delete(applicationNameIndex);
  const key = JSON.stringify([...asked].sort(([a], [b]) => a - b));
  let greeting = pool.greetings.get(key);
  if (greeting === undefined) {
    greeting = await learn(pool, asked, signal);
    const [oldest] = pool.greetings.keys();
    if (pool.greetings.size >= greetingsMax && oldest !== undefined) pool.greetings.delete(oldest);
    pool.greetings.set(key, greeting);
  }
  return {
    values: withValue(greeting.values, applicationNameIndex, application),
    bytes: Buffer.concat([greeting.bytes, parameterStatus('application_name', application)]),
  };
}

function learn(pool: Pool, wanted: ReadonlyMap<number, string>, signal: AbortSignal): Promise<Greeting> {
  return new Promise((resolve, reject) => {
    const learner = new Learner(pool, wanted, (outcome) => {
      signal.removeEventListener('abort', onAbort);
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.greeting);
    });
    const onAbort = () => {
      pool.withdraw(learner);
      reject(signal.reason);
    };
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    learner.start();
  });
}

type Outcome = { readonly greeting: Greeting } | { readonly error: unknown };

/** Takes a server, sets the values there, and reads what they have become. */
class Learner implements Waiter {
  /** None: whatever the server has is fine, since all are set below. */
  readonly values: Tracked = [];
  readonly #pool: Pool;
  readonly #wanted: ReadonlyMap<number, string>;
  readonly #finish: (outcome: Outcome) => void;
  #server: ServerConnection | null = null;
  #losses = 0;

  constructor(pool: Pool, wanted: ReadonlyMap<number, string>, finish: (outcome: Outcome) => void) {
    this.#pool = pool;
    this.#wanted = wanted;
    this.#finish = finish;
  }

  start(): void {
    const server = this.#pool.take(this);
    if (server !== null) this.onServer(server);
  }

  onServer(server: ServerConnection): void {
    this.#server = server;
    let values = server.loginValues;
    for (const [at, value] of this.#wanted) values = withValue(values, at, value);
    const sql = changeSql(server.values, values);
    if (sql === '') this.onServerAnswered();
    else server.writeHidden(sql);
  }

  onNoServer(error: unknown): void {
    this.#finish({ error });
  }

  onServerAnswered(): void {
    const server = this.#server;
    if (server?.isFree !== true) return;
    const { values } = server;
    const messages = readParameters(server.greeting)
      .filter(({ name }) => trackedIndex(name) !== applicationNameIndex)
      .map(({ name, value }) => parameterStatus(name, values[trackedIndex(name) ?? -1] ?? value));
    this.#leave();
    this.#finish({ greeting: { values, bytes: Buffer.concat(messages) } });
  }

  onServerError(body: Buffer): void {
    const report = parseErrorResponse(body);
    this.#finish({ error: new ComputeRefusal(report, errorResponse(report)) });
    // Half of the settings may be set; they are all known, so the server is as good as before.
  }

  /** It was about to stop, most likely: the next one waits until the compute is back. */
  onServerLost({ cause }: ServerLoss): void {
    this.#server = null;
    this.#losses += 1;
    if (this.#losses < lossesMax) return void this.start();
    this.#finish({ error: new CatnapError('unavailable', "Couldn't connect to compute node", { cause }) });
  }

  onServerBytes(): boolean {
    return true;
  }
  onServerDrain(): void {}
  onServerParameter(): void {}
  onServerCommand(): void {}
  onServerFatal(): boolean {
    return true;
  }

  #leave(): void {
    const server = this.#server;
    this.#server = null;
    if (server !== null) this.#pool.release(server);
  }
}

function parameterStatus(name: string, value: string): Buffer {
  return encodeMessage('S', cstring(name), cstring(value));
}
