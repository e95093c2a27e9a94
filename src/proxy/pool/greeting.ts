/**
 * What a pooled client gets at the end of its login: the settings that a server reports, with the values that the
 * client asked for. A server is needed once for each combination of values; later clients are greeted from memory.
 */
import { CatnapError } from '../../lib/errors.ts';
import { ComputeRefusal } from '../compute/session.ts';
import { errorResponse, parseErrorResponse } from '../protocol/messages.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';
import type { Greeting, Pool, Waiter } from './pool.ts';
import type { ServerConnection, ServerLoss } from './server-connection.ts';
import {
  applicationNameIndex,
  changeSql,
  cleanApplicationName,
  readParameters,
  type TrackedValues,
  trackedIndex,
  withValue,
} from './tracked-settings.ts';

/** Combinations that a pool remembers; drivers send a handful. */
const greetingsMax = 100;
const lossesMax = 5;

/** Rejects with the error for the client. */
export async function greet(pool: Pool, wanted: ReadonlyMap<number, string>, signal: AbortSignal): Promise<Greeting> {
  // Clients differ in the application name most often, and every server takes it, so it is added afterwards.
  const application = cleanApplicationName(wanted.get(applicationNameIndex) ?? '');
  const others = new Map(wanted);
  others.delete(applicationNameIndex);
  const key = JSON.stringify([...others].sort(([a], [b]) => a - b));
  let greeting = pool.greetings.get(key);
  if (greeting === undefined) {
    greeting = await requestGreeting(pool, others, signal);
    const [oldest] = pool.greetings.keys();
    if (pool.greetings.size >= greetingsMax && oldest !== undefined) pool.greetings.delete(oldest);
    pool.greetings.set(key, greeting);
  }
  return {
    values: withValue(greeting.values, applicationNameIndex, application),
    bytes: Buffer.concat([greeting.bytes, parameterStatus('application_name', application)]),
  };
}

function requestGreeting(pool: Pool, wanted: ReadonlyMap<number, string>, signal: AbortSignal): Promise<Greeting> {
  return new Promise((resolve, reject) => {
    const request = new GreetingRequest(pool, wanted, (outcome) => {
      signal.removeEventListener('abort', onAbort);
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.greeting);
    });
    const onAbort = () => {
      pool.withdraw(request);
      reject(signal.reason);
    };
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    request.start();
  });
}

type Outcome = { readonly greeting: Greeting } | { readonly error: unknown };

/** Takes a server, sets the values there, and reads how the server reports them. */
class GreetingRequest implements Waiter {
  /** None: the server may come with any values, since all of them are set below. */
  readonly values: TrackedValues = [];
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
    for (const [index, value] of this.#wanted) values = withValue(values, index, value);
    const sql = changeSql(server.values, values);
    if (sql === '') this.onServerDone();
    else server.writeHidden(sql);
  }

  onNoServer(error: unknown): void {
    this.#finish({ error });
  }

  onServerDone(): void {
    const server = this.#server;
    if (server?.isFree !== true) return;
    const { values } = server;
    const messages = readParameters(server.greeting)
      .filter(({ name }) => trackedIndex(name) !== applicationNameIndex)
      .map(({ name, value }) => parameterStatus(name, values[trackedIndex(name) ?? -1] ?? value));
    this.#server = null;
    this.#pool.release(server);
    this.#finish({ greeting: { values, bytes: Buffer.concat(messages) } });
  }

  onServerError(body: Buffer): void {
    const report = parseErrorResponse(body);
    this.#finish({ error: new ComputeRefusal(report, errorResponse(report)) });
    // Some of the settings may be set. The server has reported them, so it can be used as before.
  }

  /** Most likely the server was about to stop: the next one waits until the compute is back. */
  onServerLost({ cause }: ServerLoss): void {
    this.#server = null;
    this.#losses += 1;
    if (this.#losses < lossesMax) return void this.start();
    this.#finish({ error: new CatnapError('unavailable', "Couldn't connect to compute node", { cause }) });
  }

  onServerFatal(): boolean {
    return true;
  }

  onServerBytes(): boolean {
    return true;
  }
  onServerDrain(): void {}
  onServerParameter(): void {}
  onServerCommand(): void {}
}

function parameterStatus(name: string, value: string): Buffer {
  return encodeMessage('S', cstring(name), cstring(value));
}
