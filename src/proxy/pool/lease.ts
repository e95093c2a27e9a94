/** One server connection lent to somebody inside the proxy, message by message. `pools.ts` says how to use it. */

import { ComputeRefusal } from '../compute/session.ts';
import { PeerGone } from '../protocol/message-stream.ts';
import { parseErrorResponse } from '../protocol/messages.ts';
import { encodeMessage, FrameBuffer, type Message } from '../protocol/wire.ts';
import { FirstRequest, isCrashNotice } from './first-request.ts';
import type { Tracked } from './parameters.ts';
import type { Pool, Waiter } from './pool.ts';
import { RequestTranslator } from './requests.ts';
import type { ServerConnection, ServerLoss } from './server-connection.ts';
import { ClientStatements } from './statements.ts';

/** Unread answers beyond this make the server wait. */
const unreadBytesMax = 1_000_000;
const messageBytesMax = 0x3fff_ffff;

export class Lease implements Waiter {
  readonly values: Tracked;
  readonly #pool: Pool;
  readonly #cancelMs: number;
  readonly #statements: ClientStatements;
  readonly #translator: RequestTranslator;
  readonly #frames = new FrameBuffer();
  readonly #first = new FirstRequest();
  #server: ServerConnection | null = null;
  #hasSent = false;
  /** What another server is waited for with, after one has gone. */
  #held: Buffer | null = null;
  #failure: Error | null = null;
  #wake: (() => void) | null = null;
  #isReleased = false;

  private constructor(pool: Pool, values: Tracked, cancelMs: number) {
    this.#pool = pool;
    this.values = values;
    this.#cancelMs = cancelMs;
    this.#statements = new ClientStatements(pool.statements);
    this.#translator = new RequestTranslator(this.#statements);
  }

  /** Takes over the caller's place among the pool's clients. */
  static take(pool: Pool, values: Tracked, signal: AbortSignal, cancelMs: number): Promise<Lease> {
    const lease = new Lease(pool, values, cancelMs);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        pool.withdraw(lease);
        reject(signal.reason);
      };
      const settle = () => signal.removeEventListener('abort', onAbort);
      lease.onServer = (server) => {
        settle();
        lease.#server = server;
        resolve(lease);
      };
      lease.onNoServer = (error) => {
        settle();
        reject(error);
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      const server = pool.take(lease);
      if (server !== null) lease.onServer(server);
    });
  }

  /** Set while a server is waited for. */
  onServer: (server: ServerConnection) => void = () => {};
  onNoServer: (error: unknown) => void = () => {};

  /** Everything sent is answered, and no transaction is open. */
  get isIdle(): boolean {
    return this.#server?.isFree === true && this.#frames.length === 0;
  }

  send(messages: Buffer): void {
    const server = this.#server;
    if (this.#held !== null) this.#held = Buffer.concat([this.#held, messages]);
    if (server === null) return;
    if (this.#hasSent) this.#first.add(messages);
    else this.#first.begin(messages, null, server.isEnding);
    this.#hasSent = true;
    this.#pass(server, messages);
  }

  #pass(server: ServerConnection, messages: Buffer): void {
    for (const part of this.#translator.translate(messages, server)) server.write(part);
    server.replies.answerLocally();
  }

  /**
   * Rejects when the connection is lost, or released, and with ProtocolError at a message longer than `maxBytes`. A
   * FATAL error of the server comes as a message first.
   */
  async receive(maxBytes = messageBytesMax): Promise<Message> {
    for (;;) {
      const message = this.#frames.nextMessage(maxBytes);
      if (message !== null) {
        if (this.#frames.length < unreadBytesMax) this.#server?.resume();
        return message;
      }
      if (this.#failure !== null) throw this.#failure;
      // One message may be longer than what makes the server wait.
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
    if (server.isFree && !this.#translator.isMidMessage) return void this.#pool.release(server);
    void server.cancel(this.#cancelMs).catch(() => {});
    server.leave();
    server.destroy();
  }

  onServerBytes(bytes: Buffer): boolean {
    if (this.#first.bytes !== null && isCrashNotice(bytes)) return true;
    this.#first.bytes = null;
    this.#frames.push(Buffer.from(bytes));
    this.#notify();
    return this.#frames.length < unreadBytesMax;
  }

  onServerLost({ cause }: ServerLoss): void {
    this.#server = null;
    const again = this.#hasSent ? this.#first.takeAgain(cause) : Buffer.alloc(0);
    if (again === null || this.#isReleased) return void this.#fail(new PeerGone(cause));
    this.#translator.rewind();
    this.#held = again;
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

  /** Settings that the pool could not make: the lease is of no use. */
  onServerError(body: Buffer, wasHidden: boolean): void {
    if (wasHidden) this.#fail(new ComputeRefusal(parseErrorResponse(body), encodeMessage('E', body)));
  }

  onServerFatal(body: Buffer): boolean {
    return this.#first.isRefusedBy(body);
  }
  onServerAnswered(): void {}
  onServerDrain(): void {}
  onServerParameter(): void {}

  onServerCommand(tag: string): void {
    if (tag === 'DISCARD ALL' || tag === 'DEALLOCATE ALL') this.#statements.clear();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
