/**
 * The first request of a client's turn, kept for as long as nothing has come back. If its server goes before it has
 * looked at the request, the transaction was not begun, and the request can be sent to another one. Three things show
 * that:
 *
 * - A server that is told to stop while it waits for a command says so, and does not read the command that has just
 *   been sent. In the middle of a command it says the same, and what the command did is rolled back; only an error that
 *   comes out of a function, which may have committed something, has a context.
 * - A connection that is closed with our bytes unread is reset. Postgres reads a short request at once or not at all.
 * - A server that had ended before the request was written, and whose socket was not gone yet, never had it.
 */
import { contextField, errorField, sqlStateField } from './reply-bodies.ts';

/** Postgres reads this much at a time. */
const bytesMax = 8_192;
/** How long after a request a server that was told to stop may still say so without having looked at it. */
const refusedMsMax = 1_000;
const resendsMax = 5;

export class FirstRequest {
  /** Null when something has come back, or when it was too long to be kept. */
  bytes: Buffer | null = null;
  #sentAt = 0;
  #isSplit = false;
  #isRefused = false;
  #resends = 0;

  /** `before` is what came earlier of its first message; `isUnread` tells that the server has ended already. */
  begin(bytes: Buffer, before: Buffer | null, isUnread: boolean): void {
    this.#keep(before === null ? bytes : Buffer.concat([before, bytes]));
    this.#sentAt = Date.now();
    this.#isSplit = false;
    this.#isRefused = isUnread;
  }

  /** More was sent before anything came back. */
  add(bytes: Buffer): void {
    if (this.bytes === null) return;
    this.#keep(Buffer.concat([this.bytes, bytes]));
    this.#isSplit = true;
  }

  /** The turn is over. */
  end(): void {
    this.bytes = null;
    this.#resends = 0;
  }

  /** The server's last words; true when they mean that it has not begun, so that the client need not hear them. */
  isRefusedBy(body: Buffer): boolean {
    const state = errorField(body, sqlStateField);
    this.#isRefused =
      this.bytes !== null &&
      (state === '57P01' || state === '57P03') &&
      errorField(body, contextField) === null &&
      Date.now() - this.#sentAt < refusedMsMax;
    return this.#isRefused;
  }

  /** The connection is gone: what can be sent to another server. Of a split request a part may have been read. */
  takeAgain(cause: Error | null): Buffer | null {
    const { bytes } = this;
    this.bytes = null;
    if (!this.#isRefused && (this.#isSplit || !isReset(cause))) return null;
    if (this.#resends === resendsMax) return null;
    this.#resends += 1;
    return bytes;
  }

  #keep(bytes: Buffer): void {
    this.bytes = bytes.length <= bytesMax ? bytes : null;
  }
}

/** What every backend says when another has crashed; that it was idle shows in what follows. */
export function isCrashNotice(bytes: Buffer): boolean {
  return bytes[0] === 0x4e && errorField(bytes.subarray(5), sqlStateField) === '57P02';
}

function isReset(cause: Error | null): boolean {
  const code = cause !== null && 'code' in cause ? cause.code : null;
  return code === 'ECONNRESET' || code === 'EPIPE';
}
