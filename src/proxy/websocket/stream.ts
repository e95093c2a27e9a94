/**
 * A WebSocket as a stream of bytes, so that to the rest of the proxy its client is like any other. The end of the
 * stream is a Close frame; an end of the socket without one counts as an end too, as it does on the database port.
 */
import { Duplex } from 'node:stream';
import { closeCodes, encodeClose, encodeFrame, encodeHeader, FrameError, FrameReader, opcodes } from './frames.ts';

/** A longer chunk is not copied behind the header of its frame: the system takes both in one call. */
const copiedBytesMax = 16_384;
/** How long a client has to read the last bytes after the stream is destroyed. */
const flushMs = 1_000;
const ping = encodeFrame(opcodes.ping, Buffer.alloc(0));

export class WebSocketStream extends Duplex {
  readonly #socket: Duplex;
  readonly #frames: FrameReader;
  readonly #pings: NodeJS.Timeout;
  #isCloseSent = false;
  #hasEnded = false;
  /** Writes that wait until the socket has drained. */
  #waiting: (() => void)[] = [];

  /** The socket has been upgraded, and delivers frames from here on. */
  constructor(socket: Duplex, pingMs: number) {
    super({ allowHalfOpen: true, decodeStrings: true });
    this.#socket = socket;
    this.#frames = new FrameReader({
      onData: (bytes) => this.#onPayload(bytes),
      onPing: (payload) => this.#onPing(payload),
      onClose: (code) => this.#onClose(code),
    });
    this.#pings = setInterval(() => this.#sendPing(), pingMs);
    this.#pings.unref();
    socket.on('data', this.#onBytes);
    socket.on('drain', this.#onDrain);
    socket.on('end', () => this.#end());
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
    if (socket.destroyed) this.destroy();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    // What follows a Close frame is not read by anybody.
    if (this.#isCloseSent) return void done();
    const socket = this.#socket;
    if (chunk.length <= copiedBytesMax) {
      socket.write(encodeFrame(opcodes.binary, chunk));
    } else {
      socket.cork();
      socket.write(encodeHeader(opcodes.binary, chunk.length));
      socket.write(chunk);
      socket.uncork();
    }
    if (socket.writableNeedDrain && socket.writableLength > 0) this.#waiting.push(done);
    else done();
  }

  override _final(done: () => void): void {
    this.#sendClose(closeCodes.normal);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearInterval(this.#pings);
    this.#sendClose(closeCodes.normal);
    this.#onDrain();
    closeSoon(this.#socket);
    done(error);
  }

  #onBytes = (chunk: Buffer): void => {
    if (this.#hasEnded || this.destroyed) return;
    try {
      this.#frames.read(chunk);
    } catch (thrown) {
      if (!(thrown instanceof FrameError)) throw thrown;
      this.#sendClose(thrown.closeCode);
      this.destroy();
    }
  };

  #onDrain = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const done of waiting) done();
  };

  #onPayload(bytes: Buffer): void {
    // One chunk may have many frames, and the first of them may have ended the session.
    if (!this.destroyed && !this.push(bytes)) this.#socket.pause();
  }

  /** A client that does not read gets no more pongs: it could have them pile up. */
  #onPing(payload: Buffer): void {
    if (!this.#isCloseSent && !this.#socket.writableNeedDrain) this.#socket.write(encodeFrame(opcodes.pong, payload));
  }

  #onClose(code: number): void {
    this.#sendClose(code);
    this.#socket.end();
    this.#end();
  }

  #end(): void {
    if (this.#hasEnded || this.destroyed) return;
    this.#hasEnded = true;
    this.push(null);
  }

  #sendPing(): void {
    if (!this.#isCloseSent && !this.#socket.writableNeedDrain) this.#socket.write(ping);
  }

  #sendClose(code: number): void {
    if (this.#isCloseSent) return;
    this.#isCloseSent = true;
    if (this.#socket.writable) this.#socket.write(encodeClose(code));
  }
}

/** Lets the client read what was written to it. */
function closeSoon(socket: Duplex): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), flushMs);
  socket.once('close', () => clearTimeout(timer));
  socket.end(() => socket.destroy());
  // What still arrives is not wanted; unread, it would turn the close into a reset.
  socket.resume();
}
