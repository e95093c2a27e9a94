/**
 * One pooled client after its login. It has a server only while a transaction runs; between transactions it costs a
 * socket and a few fields, and its compute may sleep. A transaction that has not begun waits for its server, also
 * while the compute wakes, restarts or is replaced; one that has begun shares its server's fate.
 */
import type { Duplex } from 'node:stream';
import { CatnapError } from '../../lib/errors.ts';
import { administratorCommand, describeRefusal } from '../compute/refusal.ts';
import { type ErrorReport, errorResponse, parseErrorResponse } from '../protocol/messages.ts';
import { encodeMessage, ProtocolError } from '../protocol/wire.ts';
import { onChunks } from '../sockets/chunks.ts';
import { type Writer, writerTo } from '../sockets/straight-writer.ts';
import { FirstRequest, isCrashNotice } from './first-request.ts';
import { type Tracked, withValue } from './parameters.ts';
import type { Pool, Waiter } from './pool.ts';
import { asSurvivable, errorField, sqlStateField } from './reply-bodies.ts';
import { RequestTranslator } from './requests.ts';
import type { ServerConnection, ServerLoss } from './server-connection.ts';
import { ClientStatements } from './statements.ts';

export interface PooledSessionOptions {
  readonly stream: Duplex;
  readonly pool: Pool;
  readonly values: Tracked;
  /** A transaction begins, or goes on. */
  readonly onActivity: () => void;
  readonly onRefusal: (thrown: unknown, sqlState: string) => void;
  readonly onClosed: () => void;
  readonly cancelMs: number;
}

/** What a client may send ahead of its server. */
const heldBytesMax = 65_536;
const lingerMs = 5_000;
const readyForQuery = encodeMessage('Z', Buffer.from('I'));
const serverGone: ErrorReport = { sqlState: '08006', message: 'server closed the connection unexpectedly' };

export class PooledSession implements Waiter {
  readonly #options: PooledSessionOptions;
  readonly #stream: Duplex;
  readonly #pool: Pool;
  readonly #statements: ClientStatements;
  readonly #translator: RequestTranslator;
  readonly #writer: Writer;
  readonly #stopHearing: () => void;
  values: Tracked;
  #server: ServerConnection | null = null;
  #isWaiting = false;
  /** What came before there was a server. */
  #held: Buffer | null = null;
  readonly #first = new FirstRequest();
  /** What the server said when it ended the connection, if the client has not heard it. */
  #lastWords: Buffer | null = null;
  /** The server's own last words went to the client. */
  #isTold = false;
  #isClosed = false;
  #isGone = false;

  constructor(options: PooledSessionOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#pool = options.pool;
    this.values = options.values;
    this.#statements = new ClientStatements(options.pool.statements);
    this.#translator = new RequestTranslator(this.#statements);
    const stream = this.#stream;
    this.#stopHearing = onChunks(stream, this.#onData);
    this.#writer = writerTo(stream, this.#onDrain);
    stream.on('end', this.#onEnd);
    stream.on('error', this.#onGone);
    stream.on('close', this.#onGone);
    stream.resume();
    if (stream.destroyed) process.nextTick(this.#onGone);
  }

  /** For a cancel request of this client: only while something of its own runs. */
  async cancel(): Promise<void> {
    await this.#server?.cancel(this.#options.cancelMs);
  }

  /** The proxy is closing. In the middle of a message nothing could be said that would be understood. */
  terminate(): void {
    this.#end(this.#server?.replies.isMidMessage ? null : errorResponse(administratorCommand));
  }

  #onData = (chunk: Buffer): void => {
    this.#options.onActivity();
    if (this.#server !== null) return void this.#send(this.#server, chunk);
    if (this.#isWaiting) return void this.#hold(chunk);
    const wanted = this.#translator.withoutStrayCopy(chunk);
    if (this.#translator.isGoodbye(wanted)) this.#end(null);
    else if (wanted.length > 0) this.#begin(wanted);
  };

  #begin(chunk: Buffer): void {
    const server = this.#pool.take(this);
    if (server === null) {
      this.#isWaiting = true;
      return void this.#hold(chunk);
    }
    this.#server = server;
    this.#sendFirst(server, chunk);
  }

  #hold(chunk: Buffer): void {
    this.#held = this.#held === null ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk]);
    if (this.#held.length > heldBytesMax) this.#stream.pause();
  }

  onServer(server: ServerConnection): void {
    this.#isWaiting = false;
    this.#server = server;
    const held = this.#held;
    this.#held = null;
    if (this.#stream.isPaused()) this.#stream.resume();
    if (held !== null) this.#sendFirst(server, held);
    else this.#leaveIfFree(server);
  }

  onNoServer(error: unknown): void {
    this.#isWaiting = false;
    this.#refuse(error);
  }

  #sendFirst(server: ServerConnection, chunk: Buffer): void {
    this.#first.begin(chunk, this.#translator.partial, server.isEnding);
    this.#pass(server, chunk);
  }

  #send(server: ServerConnection, chunk: Buffer): void {
    this.#first.add(chunk);
    this.#pass(server, chunk);
  }

  #pass(server: ServerConnection, chunk: Buffer): void {
    let takesMore = true;
    try {
      const parts = this.#translator.translate(chunk, server);
      const [only] = parts;
      if (only !== undefined) takesMore = server.write(parts.length === 1 ? only : Buffer.concat(parts));
    } catch (thrown) {
      if (thrown instanceof ProtocolError || thrown instanceof CatnapError) return void this.#refuse(thrown);
      throw thrown;
    }
    server.replies.answerLocally();
    // What was sent before the goodbye is still carried out, as Postgres does.
    if (this.#translator.isTerminated && !server.replies.isAsked) return void this.#end(null);
    if (!takesMore) this.#stream.pause();
    this.#leaveIfFree(server);
  }

  #leaveIfFree(server: ServerConnection): void {
    if (this.#server !== server || !server.isFree || this.#translator.isMidMessage) return;
    this.#server = null;
    this.#first.end();
    this.#pool.release(server);
    // It was paused for the server's sake; that one tells somebody else now that it has room.
    if (this.#stream.isPaused() && !this.#writer.isFull) this.#stream.resume();
  }

  onServerBytes(bytes: Buffer): boolean {
    if (this.#first.bytes !== null) {
      if (isCrashNotice(bytes)) return true;
      this.#first.bytes = null;
    }
    if (this.#writer.write(bytes)) return true;
    // Who does not read its answers may not ask for more either.
    this.#stream.pause();
    return false;
  }

  onServerAnswered(): void {
    if (this.#server !== null) this.#leaveIfFree(this.#server);
    if (this.#translator.isTerminated) this.#end(null);
  }

  onServerDrain(): void {
    if (this.#stream.isPaused()) this.#stream.resume();
  }

  onServerParameter(at: number, value: string): void {
    this.values = withValue(this.values, at, value);
  }

  onServerCommand(tag: string): void {
    if (tag === 'DISCARD ALL' || tag === 'DEALLOCATE ALL') this.#statements.clear();
  }

  onServerError(body: Buffer, wasHidden: boolean): void {
    if (wasHidden) return void this.#refuse(new CatnapError('invalid_request', parseErrorResponse(body).message));
    if (errorField(body, sqlStateField) !== '0A000' || !body.includes('RevalidateCachedQuery')) return;
    // What it was prepared against has changed. Prepared again it must be new, on this server and on all others.
    this.#pool.statements.forgetAll();
    if (this.#server !== null) this.#server.isRetired = true;
  }

  onServerFatal(body: Buffer): boolean {
    const isSpared = this.#first.isRefusedBy(body) || this.#server?.replies.owed !== null;
    this.#isTold = !isSpared;
    this.#lastWords = isSpared ? encodeMessage('E', asSurvivable(body)) : null;
    return isSpared;
  }

  /**
   * What had not begun begins elsewhere. A client that has lost no more than what it waits for is told that it failed,
   * and goes on; one that was in the middle of a transaction could take what follows for a part of it, and has to go.
   */
  onServerLost({ cause, isMidMessage, owed }: ServerLoss): void {
    this.#server = null;
    const again = this.#first.takeAgain(cause);
    const lastWords = this.#lastWords;
    this.#lastWords = null;
    if (this.#isClosed) return;
    // It may have been paused for the sake of the server that has gone.
    if (this.#stream.isPaused() && !this.#writer.isFull) this.#stream.resume();
    if (again !== null) {
      this.#translator.rewind();
      return void this.#begin(again);
    }
    if (owed === null) return void this.#end(this.#isTold || isMidMessage ? null : errorResponse(serverGone));
    const words = lastWords ?? encodeMessage('E', asSurvivable(errorResponse(serverGone).subarray(5)));
    for (; owed > 0; owed--) this.#writer.write(Buffer.concat([words, readyForQuery]));
    if (this.#translator.isTerminated) this.#end(null);
  }

  #onDrain = (): void => {
    this.#server?.resume();
    if ((this.#held?.length ?? 0) <= heldBytesMax) this.#stream.resume();
  };

  /** Without a goodbye the client has died, or soon will: nobody waits for the answer. */
  #onEnd = (): void => {
    if (!this.#translator.isTerminated) this.#end(null);
  };

  #refuse(thrown: unknown): void {
    const { sqlState, response } = describeRefusal(thrown);
    this.#options.onRefusal(thrown, sqlState);
    this.#end(response);
  }

  /** Closes towards the client, after `words` if there are any; a server in the middle of something goes too. */
  #end(words: Buffer | null): void {
    this.#letGo();
    if (this.#isClosed) return;
    this.#isClosed = true;
    const stream = this.#stream;
    if (stream.writable) stream.end(words ?? undefined);
    const timer = setTimeout(() => stream.destroy(), lingerMs);
    stream.once('close', () => clearTimeout(timer));
    this.#stopHearing();
    stream.resume();
  }

  #onGone = (): void => {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#isClosed = true;
    this.#stream.destroy();
    this.#letGo();
    this.#options.onClosed();
  };

  /** Never gives a server back that is in the middle of something. */
  #letGo(): void {
    if (this.#isWaiting) this.#pool.withdraw(this);
    this.#isWaiting = false;
    this.#held = null;
    this.#first.end();
    const server = this.#server;
    this.#server = null;
    this.#statements.clear();
    if (server === null) return;
    if (server.isFree && !this.#translator.isMidMessage) return void this.#pool.release(server);
    void server.cancel(this.#options.cancelMs).catch(() => {});
    server.leave();
    server.destroy();
  }
}
