/**
 * Writes to a socket with as little work as possible. A Writable accounts for each chunk and schedules a tick for its
 * callback, which for a small message is much of the cost of passing it on; mostly the system takes the bytes at once
 * and there is nothing to account for. So a chunk goes straight to the socket when nothing is queued before it. Order
 * is kept: the socket carries out writes one after the other, and the end of the stream after them.
 */
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { BunSocket } from './bun/socket.ts';

export interface Writer {
  /** False when the system has not taken all bytes; `onDrain` follows. Does nothing when the stream is closed. */
  write(bytes: Buffer): boolean;
  /** Some of what was written has not been taken yet. */
  readonly isFull: boolean;
}

/** A TLS socket always has a write under way, and other streams are not sockets: those are written to as streams. */
export function writerTo(stream: ByteStream, onDrain: () => void): Writer {
  if (stream instanceof BunSocket) {
    stream.on('drain', onDrain);
    return stream;
  }
  const isPlain = stream instanceof Socket && !(stream instanceof TLSSocket);
  const writer = isPlain ? new StraightWriter(stream, onDrain) : new StreamWriter(stream);
  stream.on('drain', onDrain);
  return writer;
}

class StreamWriter implements Writer {
  readonly #stream: ByteStream;

  constructor(stream: ByteStream) {
    this.#stream = stream;
  }

  get isFull(): boolean {
    return this.#stream.writableNeedDrain;
  }

  write(bytes: Buffer): boolean {
    const stream = this.#stream;
    // `write` returns false for a chunk above the high-water mark even if the system has taken it at once.
    return !stream.writable || stream.write(bytes) || stream.writableLength === 0;
  }
}

/** The method that a Writable calls with each chunk when no other write is under way. */
interface Sink {
  _write(bytes: Buffer, encoding: string, done: (error?: Error | null) => void): void;
}

class StraightWriter extends StreamWriter {
  readonly #socket: Socket;
  readonly #sink: Sink;
  readonly #onDrain: () => void;
  #isWriting = false;
  #isTaken = false;
  /** Writes that the system has not fully taken. */
  #unfinished = 0;

  constructor(socket: Socket, onDrain: () => void) {
    super(socket);
    this.#socket = socket;
    this.#sink = socket;
    this.#onDrain = onDrain;
  }

  override get isFull(): boolean {
    return this.#unfinished > 0 || super.isFull;
  }

  override write(bytes: Buffer): boolean {
    const socket = this.#socket;
    if (!socket.writable) return true;
    if (socket.writableLength > 0 || socket.connecting) return super.write(bytes);
    this.#isWriting = true;
    this.#isTaken = false;
    this.#sink._write(bytes, 'buffer', this.#done);
    this.#isWriting = false;
    if (!this.#isTaken) this.#unfinished += 1;
    return this.#unfinished === 0;
  }

  #done = (error?: Error | null): void => {
    if (error) this.#socket.destroy(error);
    if (this.#isWriting) {
      this.#isTaken = true;
      return;
    }
    this.#unfinished -= 1;
    if (this.#unfinished === 0 && !error) this.#onDrain();
  };
}
