/**
 * Reads packets and messages from a socket during handshakes, on either side of the proxy, and gives the socket back
 * with every unread byte still in it. It keeps listening between reads, so that it notices at once when the peer
 * leaves.
 */
import type { ByteStream } from './byte-stream.ts';
import { FrameBuffer, type Message } from './wire.ts';

/** The peer closed the connection; an error could not be sent to it any more. */
export class PeerGone extends Error {
  constructor(cause?: unknown) {
    super('the peer closed the connection', { cause });
    this.name = 'PeerGone';
  }
}

/** How much a client may send ahead of our answers before we stop reading. */
const unreadBytesMax = 65_536;

export class MessageStream {
  readonly stream: ByteStream;
  readonly #maxBytes: number;
  readonly #frames = new FrameBuffer();
  #failure: Error | null = null;
  #wait: { resolve(): void; reject(error: Error): void } | null = null;
  #onGone: (() => void) | null = null;

  constructor(stream: ByteStream, maxBytes: number) {
    this.stream = stream;
    this.#maxBytes = maxBytes;
    stream.on('data', this.#onData);
    stream.on('end', this.#onEnd);
    stream.on('close', this.#onEnd);
    stream.on('error', this.#fail);
    // Never removed: an error between two owners of the socket would end the process.
    stream.on('error', () => {});
    stream.resume();
    if (stream.destroyed) this.#fail(new Error('already closed'));
  }

  /** Calls back once if the peer leaves before `release`. */
  onGone(callback: () => void): void {
    this.#onGone = callback;
    if (this.#failure) callback();
  }

  get unreadBytes(): number {
    return this.#frames.length;
  }

  async firstByte(): Promise<number> {
    for (;;) {
      const byte = this.#frames.firstByte();
      if (byte !== null) return byte;
      await this.#more();
    }
  }

  async readPacket(): Promise<Buffer> {
    for (;;) {
      const packet = this.#frames.nextPacket(this.#maxBytes);
      if (packet) return packet;
      await this.#more();
    }
  }

  async readMessage(): Promise<Message> {
    for (;;) {
      const message = this.#frames.nextMessage(this.#maxBytes);
      if (message) return message;
      await this.#more();
    }
  }

  write(bytes: Buffer): void {
    if (!this.stream.destroyed) this.stream.write(bytes);
  }

  /** Makes a pending and every later read fail with `reason`. */
  interrupt(reason: Error): void {
    this.#failure ??= reason;
    this.#wait?.reject(this.#failure);
    this.#wait = null;
  }

  /** Stops listening. The stream is paused and still has the bytes that were not read. */
  release(): ByteStream {
    this.stream.off('data', this.#onData);
    this.stream.off('end', this.#onEnd);
    this.stream.off('close', this.#onEnd);
    this.stream.off('error', this.#fail);
    this.stream.pause();
    const rest = this.#frames.takeRest();
    if (rest.length > 0 && !this.stream.readableEnded) this.stream.unshift(rest);
    this.interrupt(new Error('BUG: read after release'));
    return this.stream;
  }

  #more(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.stream.isPaused()) this.stream.resume();
    return new Promise((resolve, reject) => {
      this.#wait = { resolve, reject };
    });
  }

  #onData = (chunk: Buffer): void => {
    this.#frames.push(chunk);
    if (this.#frames.length > unreadBytesMax) this.stream.pause();
    this.#wait?.resolve();
    this.#wait = null;
  };

  #onEnd = (): void => this.#fail(undefined);

  #fail = (cause: unknown): void => {
    if (this.#failure) return;
    this.interrupt(new PeerGone(cause));
    this.#onGone?.();
  };
}
