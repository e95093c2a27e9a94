/**
 * One server connection for code inside the proxy, message by message:
 *
 *     const lease = await pools.lease({ identity, parameters, signal });
 *     lease.send(messages);                           // frontend messages, any number, named statements included
 *     const { type, body } = await lease.receive();   // backend messages, in order, up to ReadyForQuery and beyond
 *     lease.release();
 *
 * `sendLast` sends the last request together with a reset of the session, which costs no round trip of its own.
 * Always release, also after an error. A connection that is outside of a transaction goes back to its pool. In the
 * middle of a query or a transaction it is cancelled and closed.
 */
import { ComputeRefusal } from '../compute/session.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { parseErrorResponse } from '../protocol/messages.ts';
import { encodeMessage, FrameBuffer, type Message } from '../protocol/wire.ts';
import { dropsStatements } from './command-tags.ts';
import type { Pool, Waiter } from './pool.ts';
import { RequestTranslator } from './request-translator.ts';
import { isCrashNotice, ResendBuffer } from './resend-buffer.ts';
import type { ServerConnection, ServerLoss } from './server-connection.ts';
import { ClientStatements } from './statements.ts';
import type { TrackedValues } from './tracked-settings.ts';

/** The server is not read from while there are more unread bytes than this. */
const unreadBytesMax = 1_000_000;
const messageBytesMax = 0x3fff_ffff;

export class Lease implements Waiter {
  readonly values: TrackedValues;
  readonly #pool: Pool;
  readonly #cancelMs: number;
  readonly #statements: ClientStatements;
  readonly #translator: RequestTranslator;
  readonly #frames = new FrameBuffer();
  readonly #resend = new ResendBuffer();
  #server: ServerConnection | null = null;
  #hasSent = false;
  /** What the next server gets, while the lease waits for one after a loss. */
  #held: Buffer | null = null;
  #failure: Error | null = null;
  /** Wakes up `receive`. */
  #wake: (() => void) | null = null;
  #isReleased = false;
  /** A reset follows the last request. */
  #isResetSent = false;
  #isResetRefused = false;
  /** The server that goes back to the pool once it is reset. */
  #leaving: ServerConnection | null = null;

  private constructor(pool: Pool, values: TrackedValues, cancelMs: number) {
    this.#pool = pool;
    this.values = values;
    this.#cancelMs = cancelMs;
    this.#statements = new ClientStatements(pool.statements);
    this.#translator = new RequestTranslator(this.#statements, this);
  }

  /** The caller has counted itself in `pool.clients`; from now on `release` takes care of that. */
  static take(pool: Pool, values: TrackedValues, signal: AbortSignal, cancelMs: number): Promise<Lease> {
    const lease = new Lease(pool, values, cancelMs);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        pool.withdraw(lease);
        reject(signal.reason);
      };
      const stopListening = () => signal.removeEventListener('abort', onAbort);
      lease.onServer = (server) => {
        stopListening();
        lease.#server = server;
        resolve(lease);
      };
      lease.onNoServer = (error) => {
        stopListening();
        reject(error);
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const server = pool.take(lease);
      if (server !== null) lease.onServer(server);
    });
  }

  /** Both are set whenever the lease waits for a server. */
  onServer: (server: ServerConnection) => void = () => {};
  onNoServer: (error: unknown) => void = () => {};

  /** Every reply has been received, and no transaction is open. */
  get isIdle(): boolean {
    return this.#server?.isFree === true && this.#frames.length === 0;
  }

  /** Nothing of the user is left in the session, or will be when the server is free. */
  get isReset(): boolean {
    return this.#isResetSent;
  }

  send(messages: Buffer): void {
    this.#send(messages, false);
  }

  /** As `send`. If the request ends outside of a transaction, the session is reset behind it. */
  sendLast(messages: Buffer): void {
    this.#send(messages, true);
  }

  #send(messages: Buffer, isLast: boolean): void {
    const server = this.#server;
    if (this.#held !== null) this.#held = Buffer.concat([this.#held, messages]);
    if (server === null) return;
    if (this.#hasSent) this.#resend.add(messages);
    else this.#resend.start(messages, null, server.isEnding);
    this.#hasSent = true;
    const parts = this.#translator.translate(messages, server);
    if (isLast) {
      this.#isResetSent = true;
      server.write(Buffer.concat([...parts, server.expectReset()]));
    } else for (const part of parts) server.write(part);
    server.replies.sendLocalReplies();
  }

  /**
   * Rejects when the connection is lost or released, and with a ProtocolError for a message longer than `maxBytes`. A
   * FATAL error of the server is received as a message first.
   */
  async receive(maxBytes = messageBytesMax): Promise<Message> {
    for (;;) {
      const message = this.#frames.nextMessage(maxBytes);
      if (message !== null) {
        if (this.#frames.length < unreadBytesMax) this.#server?.resume();
        return message;
      }
      if (this.#failure !== null) throw this.#failure;
      // A single message may be longer than `unreadBytesMax`.
      this.#server?.resume();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async cancel(): Promise<void> {
    await this.#server?.cancel(this.#cancelMs);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#pool.clients -= 1;
    this.#statements.clear();
    const server = this.#server;
    this.#server = null;
    this.#fail(new Error('BUG: the lease was released'));
    if (this.#held !== null) this.#pool.withdraw(this);
    if (server === null) return;
    if (this.#translator.isMidMessage) return void server.abort(this.#cancelMs);
    if (this.#isResetSent && server.replies.isOnlyHiddenDue) this.#leaving = server;
    else this.#giveBack(server);
  }

  #giveBack(server: ServerConnection): void {
    if (!server.isFree || this.#isResetRefused) return void server.abort(this.#cancelMs);
    if (this.#isResetSent) server.noteReset();
    this.#pool.release(server);
  }

  onServerBytes(bytes: Buffer): boolean {
    if (this.#resend.bytes !== null && isCrashNotice(bytes)) return true;
    this.#resend.bytes = null;
    this.#frames.push(Buffer.from(bytes));
    this.#notify();
    return this.#frames.length < unreadBytesMax;
  }

  /** Takes another server and sends the request again, if the lost server had not read it. */
  onServerLost({ cause }: ServerLoss): void {
    this.#server = null;
    this.#leaving = null;
    // The request may be sent again, and then without a reset.
    this.#isResetSent = false;
    const unread = this.#hasSent ? this.#resend.takeForResend(cause) : Buffer.alloc(0);
    if (unread === null || this.#isReleased) return void this.#fail(new PeerGone(cause));
    this.#translator.rewind();
    this.#held = unread;
    this.#hasSent = false;
    this.onServer = (next) => {
      const held = this.#held;
      this.#held = null;
      this.#server = next;
      if (held !== null && held.length > 0) this.send(held);
    };
    this.onNoServer = (error) => {
      this.#held = null;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    };
    const server = this.#pool.take(this);
    if (server !== null) this.onServer(server);
  }

  /** If the pool's own query fails, the server does not have the settings, and the lease cannot be used. */
  onServerError(body: Buffer, isOwnQuery: boolean): void {
    if (isOwnQuery) this.#isResetRefused = this.#isResetSent;
    if (isOwnQuery) this.#fail(new ComputeRefusal(parseErrorResponse(body), encodeMessage('E', body)));
  }

  onServerFatal(body: Buffer): boolean {
    return this.#resend.noteFatal(body);
  }

  onServerCommand(tag: string): void {
    if (dropsStatements(tag)) this.#statements.clear();
  }

  onServerDone(): void {
    const server = this.#leaving;
    this.#leaving = null;
    if (server !== null) this.#giveBack(server);
  }

  onServerDrain(): void {}
  onServerParameter(): void {}

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
