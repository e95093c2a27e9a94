/**
 * A connection on Bun. To the proxy it is like a Duplex, without what a Duplex does for each chunk: what arrives goes
 * to the listener, what is written goes to the system, and only what cannot be passed on at once is kept here.
 */
import { EventEmitter } from 'node:events';
import type { ByteStream } from '../../protocol/byte-stream.ts';
import { type BunHandle, type BunHandleOwner, bunTlsHandlers } from './api.ts';

type Listener = (chunk: Buffer) => void;

interface Handshake {
  resolve(): void;
  reject(error: Error): void;
}

export interface SecureOptions {
  readonly secureContext: unknown;
  /** In the form of the TLS extension: each name behind its length. */
  readonly alpnProtocols: Buffer;
}

export class BunSocket extends EventEmitter implements ByteStream, BunHandleOwner {
  /** Null before the connection is open, and after it. */
  #handle: BunHandle | null = null;
  /** What takes the chunks in place of the listeners of 'data'. */
  #listener: Listener | null = null;
  /** Arrived, or put back, and not delivered. */
  #unread: Buffer[] = [];
  /** Written, and not taken by the system. */
  #unsent: Buffer[] = [];
  /** Nothing is delivered before somebody asks for it. */
  #isPaused = true;
  #isHandlePaused = false;
  #isDeliveryDue = false;
  #hasPeerEnded = false;
  #isEnding = false;
  #isFinished = false;
  #handshake: Handshake | null = null;
  readableEnded = false;
  destroyed = false;
  closed = false;

  get writable(): boolean {
    return this.#handle !== null && !this.#isEnding;
  }

  get address(): string {
    return this.#handle?.remoteAddress ?? '';
  }

  get serverName(): string | null {
    return this.#handle?.getServername() || null;
  }

  get alpnProtocol(): string | false | null {
    return this.#handle?.alpnProtocol ?? null;
  }

  get writableNeedDrain(): boolean {
    return this.isFull;
  }

  get writableLength(): number {
    return this.#unsent.reduce((sum, { length }) => sum + length, 0);
  }

  /** Some of what was written has not been taken yet. */
  get isFull(): boolean {
    return this.#unsent.length > 0;
  }

  /** False when the system has not taken all bytes; 'drain' follows. Does nothing when the connection is closed. */
  write(bytes: Buffer): boolean {
    const handle = this.#handle;
    if (handle === null || this.#isEnding) return true;
    if (this.#unsent.length === 0) {
      const taken = handle.write(bytes);
      if (taken === bytes.length) return true;
      // Closed by the other side; `handleClose` says why.
      if (taken < 0) return true;
      bytes = bytes.subarray(taken);
    }
    if (bytes.length > 0) this.#unsent.push(bytes);
    return this.#unsent.length === 0;
  }

  end(bytes?: Buffer): this {
    if (this.#isEnding || this.destroyed) return this;
    if (bytes !== undefined) this.write(bytes);
    this.#isEnding = true;
    if (this.#unsent.length === 0) this.#finish();
    return this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.#unread = [];
    this.#unsent = [];
    const handle = this.#handle;
    this.#handle = null;
    if (handle !== null) {
      handle.data = null;
      handle.close();
    }
    this.#handshake?.reject(error ?? new Error('closed during the TLS handshake'));
    this.#handshake = null;
    process.nextTick(() => {
      if (error !== undefined) this.emit('error', error);
      this.closed = true;
      this.emit('close');
    });
    return this;
  }

  pause(): this {
    this.#isPaused = true;
    return this;
  }

  resume(): this {
    if (!this.#isPaused) return this;
    this.#isPaused = false;
    if (this.#unread.length > 0 || this.#isHandlePaused || this.#hasPeerEnded) this.#deliverSoon();
    return this;
  }

  isPaused(): boolean {
    return this.#isPaused;
  }

  unshift(bytes: Buffer): void {
    this.#unread.unshift(bytes);
    if (!this.#isPaused) this.#deliverSoon();
  }

  /** The returned function stops listening; later chunks are for the next listener. */
  onChunks(listener: Listener): () => void {
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }

  /** What has not been delivered is the beginning of the handshake. Rejects when there is none. */
  secure({ secureContext, alpnProtocols }: SecureOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const handle = this.#handle;
      if (handle === null) return reject(new Error('closed before the TLS handshake'));
      this.#handshake = { resolve, reject };
      const initialData = this.#unread.length > 0 ? Buffer.concat(this.#unread) : undefined;
      this.#unread = [];
      if (this.#isHandlePaused) handle.resume();
      this.#isHandlePaused = false;
      const tls = { secureContext, ALPNProtocols: alpnProtocols };
      // From here on the old handle has other bytes than ours to tell of.
      handle.data = null;
      const [raw, secured] = handle.upgradeTLS({
        isServer: true,
        data: this,
        initialData,
        tls,
        socket: bunTlsHandlers,
      });
      raw.data = null;
      // The handshake may have failed meanwhile.
      if (this.destroyed) secured.data = null;
      else this.#handle = secured;
    });
  }

  handleOpen(handle: BunHandle): void {
    if (this.destroyed) {
      handle.data = null;
      handle.close();
      return;
    }
    this.#handle = handle;
    this.emit('connect', handle);
  }

  handleData(handle: BunHandle, chunk: Buffer): void {
    if (handle !== this.#handle) return;
    if (!this.#isPaused && this.#unread.length === 0) return void this.#deliver(chunk);
    this.#unread.push(chunk);
    // Only now: many a pause is over before anything arrives.
    if (!this.#isHandlePaused) handle.pause();
    this.#isHandlePaused = true;
  }

  handleDrain(handle: BunHandle): void {
    if (handle !== this.#handle || this.#unsent.length === 0) return;
    let first = this.#unsent[0];
    while (first !== undefined) {
      const taken = handle.write(first);
      if (taken < first.length) {
        if (taken > 0) this.#unsent[0] = first.subarray(taken);
        return;
      }
      this.#unsent.shift();
      first = this.#unsent[0];
    }
    if (this.#isEnding) this.#finish();
    else this.emit('drain');
  }

  handleEnd(handle: BunHandle): void {
    if (handle !== this.#handle) return;
    this.#hasPeerEnded = true;
    this.#deliverSoon();
  }

  /** Both halves are closed. Without an error, the other side has ended its half first. */
  handleClose(handle: BunHandle, error: Error | undefined): void {
    if (this.destroyed || (this.#handle !== null && handle !== this.#handle)) return;
    this.#handle = null;
    this.#unsent = [];
    handle.data = null;
    if (error !== undefined || this.#handshake !== null || this.readableEnded) return void this.destroy(error);
    this.#hasPeerEnded = true;
    this.#deliverSoon();
  }

  handleHandshake(handle: BunHandle, isDone: boolean): void {
    // It may have begun, and even ended, before `upgradeTLS` has returned.
    this.#handle = handle;
    const handshake = this.#handshake;
    if (!isDone) return void this.destroy(new Error('the TLS handshake failed'));
    this.#handshake = null;
    handshake?.resolve();
  }

  #deliver(chunk: Buffer): void {
    if (this.#listener !== null) this.#listener(chunk);
    else this.emit('data', chunk);
  }

  /** Not at once: whoever resumes may not be ready for a chunk before it returns. */
  #deliverSoon(): void {
    if (this.#isDeliveryDue) return;
    this.#isDeliveryDue = true;
    process.nextTick(this.#deliverNow);
  }

  #deliverNow = (): void => {
    this.#isDeliveryDue = false;
    while (!this.#isPaused && this.#unread.length > 0) this.#deliver(this.#unread.shift() ?? nothing);
    if (this.#isPaused || this.destroyed) return;
    if (this.#isHandlePaused) this.#handle?.resume();
    this.#isHandlePaused = false;
    if (!this.#hasPeerEnded || this.readableEnded) return;
    this.readableEnded = true;
    this.emit('end');
    if (this.#isFinished || this.#handle === null) this.destroy();
  };

  #finish(): void {
    this.#isFinished = true;
    this.#handle?.shutdown();
    process.nextTick(() => {
      if (this.destroyed) return;
      this.emit('finish');
      if (this.readableEnded) this.destroy();
    });
  }
}

const nothing = Buffer.alloc(0);
