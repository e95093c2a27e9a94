/**
 * Kept connections to the proxies for requests that are small and many. They speak HTTP to the proxy's server, one
 * request at a time, and write and read it here: `node:http` spends more time on such a request than the proxy does. A
 * request goes out in one piece if its body is small, and only what the proxy's server sends is understood, whose
 * replies always state their length.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type Proxies, unreachable } from './proxies.ts';

export interface Answer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A stream if the body is not small. */
  readonly body: Buffer | Readable;
}

export interface Question {
  /** Request line and headers, with the empty line at their end. */
  readonly head: string;
  /** The body, or its beginning. */
  readonly body: Buffer;
  /** Sends the rest of the body, if there is more. It may be told to stop at any time. */
  readonly rest?: ((line: BodySink) => () => void) | undefined;
}

export interface BodySink {
  /** Returns false when the proxy should be given time until `onDrain`. */
  write(bytes: Buffer): boolean;
  onDrain(listener: () => void): void;
  end(): void;
}

/** Connections to one proxy that are kept for the next request. */
const idleMax = 64;
/** A body up to this length is gathered and passed on in one piece. */
const gatheredBytesMax = 65_536;
const headBytesMax = 65_536;
const headEnd = Buffer.from('\r\n\r\n');

export class ProxyLines {
  readonly #proxies: Proxies;
  readonly #idle = new Map<string, Line[]>();
  #isClosed = false;

  constructor(proxies: Proxies) {
    this.#proxies = proxies;
  }

  /** A connected line; nothing has been sent over it. Leads to one answer, or to `abandon`. */
  async open(): Promise<Exchange> {
    return new Exchange(await this.#proxies.reachOne((path) => this.#take(path)));
  }

  close(): void {
    this.#isClosed = true;
    for (const lines of this.#idle.values()) for (const line of lines.splice(0)) line.socket.destroy();
  }

  async #take(path: string): Promise<Line> {
    for (let line = this.#idle.get(path)?.pop(); line !== undefined; line = this.#idle.get(path)?.pop()) {
      if (line.socket.writable && !line.socket.readableEnded) return line;
    }
    const socket = connect(path);
    await once(socket, 'connect');
    return new Line(socket, (line) => this.#keep(path, line));
  }

  #keep(path: string, line: Line): void {
    const lines = this.#idle.get(path) ?? [];
    this.#idle.set(path, lines);
    if (this.#isClosed || lines.length >= idleMax) line.socket.destroy();
    else lines.push(line);
  }
}

/** One connection, and who listens to it. */
class Line {
  readonly socket: Socket;
  readonly giveBack: () => void;
  #onData: ((bytes: Buffer) => void) | null = null;
  #onClose: ((cause: Error) => void) | null = null;
  #onDrain: (() => void) | null = null;

  constructor(socket: Socket, giveBack: (line: Line) => void) {
    this.socket = socket;
    this.giveBack = () => giveBack(this);
    let cause = new Error('the proxy has closed the connection');
    socket.on('data', (bytes: Buffer) => {
      // Bytes that nobody asked for: what follows them could be taken for the answer to another request.
      if (this.#onData === null) socket.destroy();
      else this.#onData(bytes);
    });
    socket.on('drain', () => this.#onDrain?.());
    socket.on('error', (error) => {
      cause = error;
    });
    socket.on('close', () => this.#onClose?.(cause));
  }

  listen(to: { data: (bytes: Buffer) => void; close: (cause: Error) => void } | null): void {
    this.#onData = to?.data ?? null;
    this.#onClose = to?.close ?? null;
    this.#onDrain = null;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }
}

/** One request and its answer. */
export class Exchange {
  readonly #line: Line;
  #isOver = false;
  /** The whole request was sent, so that another may follow it. */
  #isSent = false;
  #stopSending: () => void = () => {};

  constructor(line: Line) {
    this.#line = line;
  }

  ask({ head, body, rest }: Question): Promise<Answer> {
    const line = this.#line;
    return new Promise((resolve, reject) => {
      if (this.#isOver) return reject(unreachable(new Error('the caller has left')));
      const reader = new AnswerReader(line.socket, resolve, (canBeKept) => this.#finish(canBeKept));
      line.listen({
        data: (bytes) => {
          try {
            reader.take(bytes);
          } catch (thrown) {
            line.socket.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
          }
        },
        close: (cause) => {
          this.abandon();
          reader.fail(cause);
          reject(unreachable(cause));
        },
      });
      const first = Buffer.from(head, 'latin1');
      line.socket.write(body.length === 0 ? first : Buffer.concat([first, body]));
      if (rest === undefined) this.#isSent = true;
      else this.#stopSending = rest(this.#sink());
    });
  }

  /** Nobody waits for the answer any more. Does nothing once it is complete. */
  abandon(): void {
    this.#finish(false);
  }

  #finish(canBeKept: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopSending();
    const line = this.#line;
    const isKept = canBeKept && this.#isSent && line.socket.writableLength === 0;
    if (!isKept) return void line.socket.destroy();
    line.listen(null);
    line.giveBack();
  }

  #sink(): BodySink {
    const line = this.#line;
    return {
      write: (bytes) => line.socket.write(bytes),
      onDrain: (listener) => line.onDrain(listener),
      end: () => {
        this.#isSent = true;
      },
    };
  }
}

/** Reads one answer. `onEnd` is called when it is complete, and whether the connection may be used again. */
class AnswerReader {
  readonly #socket: Socket;
  readonly #onAnswer: (answer: Answer) => void;
  readonly #onEnd: (canBeKept: boolean) => void;
  #head: Omit<Answer, 'body'> | null = null;
  #chunks: Buffer[] = [];
  #gathered = 0;
  /** Bytes of the body that have not arrived. */
  #left = 0;
  #stream: Readable | null = null;

  constructor(socket: Socket, onAnswer: (answer: Answer) => void, onEnd: (canBeKept: boolean) => void) {
    this.#socket = socket;
    this.#onAnswer = onAnswer;
    this.#onEnd = onEnd;
  }

  take(bytes: Buffer): void {
    if (this.#head !== null) return void this.#takeBody(bytes);
    this.#chunks.push(bytes);
    const all = this.#chunks.length === 1 ? bytes : Buffer.concat(this.#chunks);
    const end = all.indexOf(headEnd);
    if (end === -1) {
      if (all.length > headBytesMax) throw new Error('the head of an answer is too long');
      return;
    }
    this.#chunks = [];
    this.#head = readHead(all.toString('latin1', 0, end));
    this.#left = lengthOf(this.#head);
    if (this.#left > gatheredBytesMax) this.#startStream(this.#head);
    this.#takeBody(all.subarray(end + headEnd.length));
  }

  /** The connection is lost in the middle of an answer. */
  fail(cause: Error): void {
    this.#stream?.destroy(cause);
  }

  #startStream(head: Omit<Answer, 'body'>): void {
    this.#stream = new Readable({
      // Once the answer is complete, the connection may belong to another.
      read: () => {
        if (this.#left > 0) this.#socket.resume();
      },
      destroy: (error, done) => {
        if (this.#left > 0) this.#socket.destroy();
        done(error);
      },
    });
    this.#onAnswer({ ...head, body: this.#stream });
  }

  #takeBody(bytes: Buffer): void {
    if (bytes.length > this.#left) throw new Error('an answer is longer than it says');
    this.#left -= bytes.length;
    if (this.#stream !== null) {
      if (bytes.length > 0 && !this.#stream.push(bytes)) this.#socket.pause();
    } else if (bytes.length > 0) {
      this.#chunks.push(bytes);
      this.#gathered += bytes.length;
    }
    if (this.#left === 0) this.#end();
  }

  #end(): void {
    const head = this.#head;
    if (head === null) return;
    this.#socket.resume();
    this.#onEnd(head.headers.connection?.toLowerCase() !== 'close');
    if (this.#stream !== null) return void this.#stream.push(null);
    const [only = Buffer.alloc(0)] = this.#chunks;
    this.#onAnswer({ ...head, body: this.#chunks.length > 1 ? Buffer.concat(this.#chunks, this.#gathered) : only });
  }
}

function readHead(text: string): Omit<Answer, 'body'> {
  const [first = '', ...lines] = text.split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${first} `)?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) throw new Error('an answer begins with no status');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { status, headers };
}

function lengthOf({ headers }: Pick<Answer, 'headers'>): number {
  const length = headers['content-length'] ?? '';
  if (!/^\d{1,15}$/.test(length)) throw new Error('an answer does not state its length');
  return Number(length);
}
