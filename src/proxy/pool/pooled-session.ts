/**
 * One pooled client after its login. It has a server only while a transaction runs; between transactions it costs a
 * socket and a few fields, and its compute may sleep. A transaction that has not begun waits for a server, also while
 * the compute wakes, restarts or is replaced. A transaction that has begun is lost with its server.
 */
import { CatnapError } from '../../lib/errors.ts';
import { describeRefusal } from '../compute/refusal.ts';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { type ErrorReport, errorResponse, parseErrorResponse } from '../protocol/messages.ts';
import { encodeMessage, ProtocolError } from '../protocol/wire.ts';
import { onChunks } from '../sockets/chunks.ts';
import { type Writer, writerTo } from '../sockets/straight-writer.ts';
import { dropsStatements } from './command-tags.ts';
import { asNonFatal } from './error-fields.ts';
import { headerBytes } from './message-types.ts';
import type { Pool, Waiter } from './pool.ts';
import { RequestTranslator } from './request-translator.ts';
import { isCrashNotice, ResendBuffer } from './resend-buffer.ts';
import type { ServerConnection, ServerLoss } from './server-connection.ts';
import { ClientStatements } from './statements.ts';
import { type TrackedValues, withValue } from './tracked-settings.ts';

export interface PooledSessionOptions {
  readonly stream: ByteStream;
  readonly pool: Pool;
  readonly values: TrackedValues;
  /** The client has sent something. */
  readonly onActivity: () => void;
  /** What was sent to the client is added to it. */
  readonly sent: { bytes: number };
  readonly onRefusal: (thrown: unknown, sqlState: string) => void;
  readonly onClosed: () => void;
  readonly cancelMs: number;
}

/** How much a client may send before it has a server. */
const heldBytesMax = 65_536;
/** How long a client may take to close its side. */
const lingerMs = 5_000;
const nothing = Buffer.alloc(0);
export const readyForQuery = encodeMessage('Z', Buffer.from('I'));
const serverClosed: ErrorReport = { sqlState: '08006', message: 'server closed the connection unexpectedly' };

export class PooledSession implements Waiter {
  readonly #options: PooledSessionOptions;
  readonly #stream: ByteStream;
  readonly #pool: Pool;
  readonly #statements: ClientStatements;
  readonly #translator: RequestTranslator;
  readonly #writer: Writer;
  readonly #stopListening: () => void;
  values: TrackedValues;
  #server: ServerConnection | null = null;
  #isWaiting = false;
  /** What the client has sent while it waits for a server. */
  #held: Buffer | null = null;
  readonly #resend = new ResendBuffer();
  /** The server's FATAL error, as an ordinary error, if it was kept from the client. */
  #hiddenError: Buffer | null = null;
  /** The client has received the server's FATAL error. */
  #hasFatalError = false;
  /** The last message for a client that may finish its transaction. */
  #farewell: Buffer | null = null;
  /** Nothing more is written to the client. */
  #isEnded = false;
  #isClosed = false;

  constructor(options: PooledSessionOptions) {
    this.#options = options;
    this.#stream = options.stream;
    this.#pool = options.pool;
    this.values = options.values;
    this.#statements = new ClientStatements(options.pool.statements);
    this.#translator = new RequestTranslator(this.#statements, this);
    const stream = this.#stream;
    this.#stopListening = onChunks(stream, this.#onData);
    this.#writer = writerTo(stream, this.#onDrain);
    stream.on('end', this.#onEnd);
    stream.on('error', this.#onClose);
    stream.on('close', this.#onClose);
    stream.resume();
    if (stream.destroyed) process.nextTick(this.#onClose);
  }

  /** For a cancel request of this client; does nothing unless a request of its own runs. */
  async cancel(): Promise<void> {
    await this.#server?.cancel(this.#options.cancelMs);
  }

  /** In the middle of a message the client would not understand `farewell`. */
  terminate(farewell: Buffer): void {
    this.#end(this.#server?.replies.isMidMessage ? null : farewell);
  }

  /** Ends the session with `farewell` as soon as no transaction of it runs or waits; `terminate` may follow. */
  drain(farewell: Buffer): void {
    this.#farewell = farewell;
    this.#endIfDrained();
  }

  #endIfDrained(): void {
    if (this.#farewell === null || this.#server !== null || this.#isWaiting || this.#translator.isMidMessage) return;
    this.#end(this.#farewell);
  }

  #onData = (chunk: Buffer): void => {
    this.#options.onActivity();
    if (this.#server !== null) return void this.#sendMore(this.#server, chunk);
    if (this.#isWaiting) return void this.#hold(chunk);
    const wanted = this.#translator.withoutStrayCopy(chunk);
    if (this.#translator.isTerminate(wanted)) this.#end(null);
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
    else this.#releaseIfFree(server);
  }

  onNoServer(error: unknown): void {
    this.#isWaiting = false;
    this.#refuse(error);
  }

  #sendFirst(server: ServerConnection, chunk: Buffer): void {
    this.#resend.start(chunk, this.#translator.partial, server.isEnding);
    this.#send(server, chunk);
  }

  #sendMore(server: ServerConnection, chunk: Buffer): void {
    this.#resend.add(chunk);
    this.#send(server, chunk);
  }

  #send(server: ServerConnection, chunk: Buffer): void {
    let takesMore = true;
    try {
      const parts = this.#translator.translate(chunk, server);
      const [only] = parts;
      if (only !== undefined) takesMore = server.write(parts.length === 1 ? only : Buffer.concat(parts));
    } catch (thrown) {
      if (thrown instanceof ProtocolError || thrown instanceof CatnapError) return void this.#refuse(thrown);
      throw thrown;
    }
    server.replies.sendLocalReplies();
    // It waited for replies of the proxy's own, and no reply of the server will follow them.
    if (this.#translator.heldBytes > 0 && !server.replies.isReplyDue) return void this.#send(server, nothing);
    if (this.#translator.isTerminated) return void this.#leave(server);
    if (!takesMore || this.#translator.heldBytes > heldBytesMax) this.#stream.pause();
    this.#releaseIfFree(server);
  }

  /**
   * The client has sent Terminate. As in Postgres, the requests before it are still carried out. A server that waits
   * for more of them, in a COPY or a batch without its Sync, gets the Terminate too, and closes.
   */
  #leave(server: ServerConnection): void {
    if (!server.replies.isWaitingForClient) return;
    if (server.isFree) this.#end(null);
    else server.close();
  }

  #releaseIfFree(server: ServerConnection): void {
    if (this.#server !== server || !server.isFree || this.#translator.isMidMessage) return;
    this.#server = null;
    this.#resend.end();
    this.#pool.release(server);
    // If the client was paused because this server was full, the server's drain now goes to another user.
    if (this.#stream.isPaused() && !this.#writer.isFull) this.#stream.resume();
    this.#endIfDrained();
  }

  onServerBytes(bytes: Buffer): boolean {
    if (this.#resend.bytes !== null) {
      if (isCrashNotice(bytes)) return true;
      this.#resend.bytes = null;
    }
    this.#options.sent.bytes += bytes.length;
    if (this.#writer.write(bytes)) return true;
    // A client that does not read its replies may not send more requests either.
    this.#stream.pause();
    return false;
  }

  onServerDone(): void {
    if (this.#server !== null) {
      if (this.#translator.isTerminated) return void this.#leave(this.#server);
      if (this.#translator.heldBytes > 0) return void this.#sendHeld(this.#server);
      this.#releaseIfFree(this.#server);
    }
    if (this.#translator.isTerminated) this.#end(null);
  }

  /** What the translator has held back, now that the server has replied to what came before. */
  #sendHeld(server: ServerConnection): void {
    this.#send(server, nothing);
    if (this.#translator.heldBytes === 0 && this.#stream.isPaused() && !this.#writer.isFull) this.#stream.resume();
  }

  onServerDrain(): void {
    if (this.#stream.isPaused()) this.#stream.resume();
  }

  onServerParameter(index: number, value: string): void {
    this.values = withValue(this.values, index, value);
  }

  onServerCommand(tag: string): void {
    if (dropsStatements(tag)) this.#statements.clear();
  }

  onServerError(body: Buffer, isOwnQuery: boolean): void {
    if (isOwnQuery) this.#refuse(new CatnapError('invalid_request', parseErrorResponse(body).message));
  }

  onServerFatal(body: Buffer): boolean {
    const isHidden = this.#resend.noteFatal(body) || this.#server?.replies.readyOwed !== null;
    this.#hasFatalError = !isHidden;
    this.#hiddenError = isHidden ? encodeMessage('E', asNonFatal(body)) : null;
    return isHidden;
  }

  /**
   * A request that had not begun goes to another server. A client that has lost nothing but its current requests gets
   * an error for each, and stays connected. A client in the middle of a transaction is disconnected: it would take its
   * next statement for a part of the transaction that is lost.
   */
  onServerLost({ cause, isMidMessage, readyOwed }: ServerLoss): void {
    this.#server = null;
    const unread = this.#resend.takeForResend(cause);
    const hiddenError = this.#hiddenError;
    this.#hiddenError = null;
    if (this.#isEnded) return;
    // The client may have been paused because the lost server was full.
    if (this.#stream.isPaused() && !this.#writer.isFull) this.#stream.resume();
    if (unread !== null) {
      this.#translator.rewind();
      return void this.#begin(unread);
    }
    // What it has sent since the server's FATAL error may look like requests that only need errors.
    if (readyOwed === null || this.#hasFatalError) {
      const isSilent = this.#translator.isTerminated || this.#hasFatalError || isMidMessage;
      return void this.#end(isSilent ? null : errorResponse(serverClosed));
    }
    const error = hiddenError ?? encodeMessage('E', asNonFatal(errorResponse(serverClosed).subarray(headerBytes)));
    for (let left = readyOwed; left > 0; left--) this.#writer.write(Buffer.concat([error, readyForQuery]));
    if (this.#translator.isTerminated) this.#end(null);
    // The lost server would have got it next.
    else if (this.#translator.heldBytes > 0) this.#begin(nothing);
    this.#endIfDrained();
  }

  #onDrain = (): void => {
    this.#server?.resume();
    if ((this.#held?.length ?? 0) <= heldBytesMax) this.#stream.resume();
  };

  /** The client has closed its side. Without a Terminate it has died or soon will, so it does not want the reply. */
  #onEnd = (): void => {
    if (!this.#translator.isTerminated) this.#end(null);
  };

  #refuse(thrown: unknown): void {
    const { sqlState, response } = describeRefusal(thrown);
    this.#options.onRefusal(thrown, sqlState);
    this.#end(response);
  }

  /** Sends the last message, if any, and closes the client's connection. A server that is not free is closed too. */
  #end(lastMessage: Buffer | null): void {
    this.#dropServer();
    if (this.#isEnded) return;
    this.#isEnded = true;
    const stream = this.#stream;
    if (stream.writable && lastMessage !== null) stream.end(lastMessage);
    else if (stream.writable) stream.end();
    const timer = setTimeout(() => stream.destroy(), lingerMs);
    stream.once('close', () => clearTimeout(timer));
    this.#stopListening();
    stream.resume();
  }

  #onClose = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isEnded = true;
    this.#stream.destroy();
    this.#dropServer();
    this.#options.onClosed();
  };

  /** Gives the server back if it is free. A server in the middle of something is cancelled and closed instead. */
  #dropServer(): void {
    if (this.#isWaiting) this.#pool.withdraw(this);
    this.#isWaiting = false;
    this.#held = null;
    this.#resend.end();
    const server = this.#server;
    this.#server = null;
    this.#statements.clear();
    if (server === null) return;
    if (server.isFree && !this.#translator.isMidMessage) this.#pool.release(server);
    else server.abort(this.#options.cancelMs);
  }
}
