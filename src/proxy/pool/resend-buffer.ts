/**
 * Keeps the first request that a client sends to a server, until the server sends something back. If the server goes
 * before it has read the request, the transaction has not begun, and the request can be sent to another server. Three
 * things show that the request was not read:
 *
 * - The server reports that it stops. A server that is stopped while it waits for a command does not read the command
 *   that has just been sent. A server that is stopped in the middle of a command reports the same and rolls back what
 *   the command did, unless the command was a function that has committed something: such an error has a context.
 * - The connection is reset, which happens when it is closed with bytes of ours unread. Postgres reads a short request
 *   at once or not at all.
 * - The server had already ended when the request was written, and its socket was not closed yet.
 */
import { contextField, errorField, sqlStateField } from './error-fields.ts';
import { headerBytes, noticeResponse } from './message-types.ts';

/** A longer request is not kept: Postgres reads this many bytes at a time, and might have read a part of it. */
const bytesMax = 8_192;
/** A server that reports its stop later than this after a request may have worked on the request. */
const unreadMsMax = 1_000;
const resendsMax = 5;
const adminShutdown = '57P01';
const crashShutdown = '57P02';
const cannotConnectNow = '57P03';

export class ResendBuffer {
  /** Null once the server has sent something, and for a request that is too long. */
  bytes: Buffer | null = null;
  #sentAt = 0;
  #isSplit = false;
  #isUnread = false;
  #resends = 0;

  /**
   * A request goes to a server. `before` is an earlier chunk with the beginning of its first message; `isUnread` means
   * that the server has already ended.
   */
  start(bytes: Buffer, before: Buffer | null, isUnread: boolean): void {
    this.#keep(before === null ? bytes : Buffer.concat([before, bytes]));
    this.#sentAt = Date.now();
    this.#isSplit = false;
    this.#isUnread = isUnread;
  }

  /** More bytes were sent before the server has sent anything. */
  add(bytes: Buffer): void {
    if (this.bytes === null) return;
    this.#keep(Buffer.concat([this.bytes, bytes]));
    this.#isSplit = true;
  }

  /** The client does not use the server any more. */
  end(): void {
    this.bytes = null;
    this.#resends = 0;
  }

  /** Takes note of a FATAL error. Returns true when the request was not read, so that the client need not know. */
  noteFatal(body: Buffer): boolean {
    const state = errorField(body, sqlStateField);
    this.#isUnread =
      this.bytes !== null &&
      (state === adminShutdown || state === cannotConnectNow) &&
      errorField(body, contextField) === null &&
      Date.now() - this.#sentAt < unreadMsMax;
    return this.#isUnread;
  }

  /** The connection is lost. Returns the request if it can be sent to another server. */
  takeForResend(cause: Error | null): Buffer | null {
    const { bytes } = this;
    this.bytes = null;
    // A reset proves nothing about a request in several chunks: the server may have read the first of them.
    if (!this.#isUnread && (this.#isSplit || !isReset(cause))) return null;
    if (this.#resends === resendsMax) return null;
    this.#resends += 1;
    return bytes;
  }

  #keep(bytes: Buffer): void {
    this.bytes = bytes.length <= bytesMax ? bytes : null;
  }
}

/**
 * Whether the bytes are the notice that every backend sends when another backend has crashed. It does not show that the
 * request was read; whether it was shows in how the connection ends.
 */
export function isCrashNotice(bytes: Buffer): boolean {
  return bytes[0] === noticeResponse && errorField(bytes.subarray(headerBytes), sqlStateField) === crashShutdown;
}

function isReset(cause: Error | null): boolean {
  const code = cause !== null && 'code' in cause ? cause.code : null;
  return code === 'ECONNRESET' || code === 'EPIPE';
}
