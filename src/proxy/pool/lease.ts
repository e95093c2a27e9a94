/** One server connection lent to somebody inside the proxy, message by message. `pools.ts` says how to use it. */
import { PeerGone } from '../message-stream.ts';
import { parseErrorResponse } from '../messages.ts';
import { ComputeRefusal } from '../session.ts';
import { encodeMessage, FrameBuffer, type Message } from '../wire.ts';
import type { Tracked } from './parameters.ts';
import type { Pool, Waiter } from './pool.ts';
import { RequestTranslator } from './requests.ts';
import type { ServerConnection } from './server-connection.ts';
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
  #server: ServerConnection | null = null;
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

  /** Set while the lease is waited for. */
  onServer: (server: ServerConnection) => void = () => {};
  onNoServer: (error: unknown) => void = () => {};

  /** Everything sent is answered, and no transaction is open. */
  get isIdle(): boolean {
    return this.#server?.isFree === true && this.#frames.length === 0;
  }

  send(messages: Buffer): void {
    const server = this.#server;
    if (server === null) return;
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
    if (server === null) return;
    if (server.isFree && !this.#translator.isMidMessage) return void this.#pool.release(server);
    void server.cancel(this.#cancelMs).catch(() => {});
    server.leave();
    server.destroy();
  }

  onServerBytes(bytes: Buffer): boolean {
    this.#frames.push(Buffer.from(bytes));
    this.#notify();
    return this.#frames.length < unreadBytesMax;
  }

  onServerLost(cause: Error | null): void {
    this.#server = null;
    this.#fail(new PeerGone(cause));
  }

  /** Settings that the pool could not make: the lease is of no use. */
  onServerError(body: Buffer, wasHidden: boolean): void {
    if (wasHidden) this.#fail(new ComputeRefusal(parseErrorResponse(body), encodeMessage('E', body)));
  }

  onServerFatal(): boolean {
    return false;
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
