/**
 * Writes to a socket on the shortest way. A Writable keeps account of each chunk and plans a tick for its callback,
 * which for a small message is much of what it costs to pass it on; mostly the system takes the bytes at once and
 * there is nothing to account for. So a chunk that finds nothing waiting goes to the socket itself. Order is kept: the
 * socket carries out what it is given one after the other, the end of the stream too.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

export interface Writer {
  /** False when not all is on its way; `onDrain` follows. To a closed stream nothing is written, and that is all. */
  write(bytes: Buffer): boolean;
  /** The other side has not taken what was written. */
  readonly isFull: boolean;
}

/** TLS has always something under way, and a stream of another kind is not a socket: they are written to as streams. */
export function writerTo(stream: Duplex, onDrain: () => void): Writer {
  const isPlain = stream instanceof Socket && !(stream instanceof TLSSocket);
  const writer = isPlain ? new StraightWriter(stream, onDrain) : new StreamWriter(stream);
  stream.on('drain', onDrain);
  return writer;
}

class StreamWriter implements Writer {
  readonly #stream: Duplex;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  get isFull(): boolean {
    return this.#stream.writableNeedDrain;
  }

  write(bytes: Buffer): boolean {
    const stream = this.#stream;
    // A full buffer that is empty right after has been taken all the same.
    return !stream.writable || stream.write(bytes) || stream.writableLength === 0;
  }
}

/** What a Writable calls with each chunk when nothing else is under way. */
interface Sink {
  _write(bytes: Buffer, encoding: string, done: (error?: Error | null) => void): void;
}

class StraightWriter extends StreamWriter {
  readonly #socket: Socket;
  readonly #sink: Sink;
  readonly #onDrain: () => void;
  #isWriting = false;
  #isTaken = false;
  /** Writes that the system has not taken whole. */
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
