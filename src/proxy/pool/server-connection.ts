/**
 * One connection of a pool to its server. It belongs to one user at a time; between two users it is idle, and what
 * the server says then is for nobody. The user hears what is meant for it, and when the server is free.
 */
import type { Socket } from 'node:net';
import { type CancelTarget, forwardCancel } from '../compute/cancel.ts';
import type { ComputeLogin } from '../compute/login.ts';
import { FrameBuffer, ProtocolError } from '../protocol/wire.ts';
import { onChunks } from '../sockets/chunks.ts';
import { type Writer, writerTo } from '../sockets/straight-writer.ts';
import { asked, hidden } from './asked.ts';
import { type Tracked, trackedIndex, trackedNames, withValue } from './parameters.ts';
import { ReplyScanner } from './replies.ts';
import type { ReplyEvents } from './reply-events.ts';
import { ServerStatements, type StatementTable } from './statements.ts';

export interface ServerUser {
  /** Bytes for the client; valid during the call only. False asks to be spared until `resume`. */
  onServerBytes(bytes: Buffer): boolean;
  /** Everything that was asked is answered; the server may be free, or in the middle of a transaction. */
  onServerAnswered(): void;
  /** The server may take bytes again. */
  onServerDrain(): void;
  onServerParameter(at: number, value: string): void;
  onServerCommand(tag: string): void;
  onServerError(body: Buffer, wasHidden: boolean): void;
  /** The server ends the connection with an error; true keeps the error from the client. */
  onServerFatal(body: Buffer): boolean;
  onServerLost(loss: ServerLoss): void;
}

/** The connection is gone, and what its user had asked of it. */
export interface ServerLoss {
  /** That of the socket, if there was one. */
  readonly cause: Error | null;
  /** The user has got the beginning of a message, and will not get the rest. */
  readonly isMidMessage: boolean;
  /** As `ReplyScanner.owed` says. */
  readonly owed: number | null;
}

const terminateMessage = Buffer.from([0x58, 0, 0, 0, 4]);
/** How long a server may take to say goodbye. */
const farewellMs = 2_000;
let lastTurn = 0;

export class ServerConnection implements ReplyEvents {
  readonly replies = new ReplyScanner(this);
  readonly statements: ServerStatements;
  readonly target: CancelTarget;
  /** ParameterStatus messages of the login. */
  readonly greeting: Buffer;
  /** Settings right after the login, which a reset brings back. */
  readonly loginValues: Tracked;
  readonly bornAt = Date.now();
  values: Tracked;
  turn = 0;
  idleSince = 0;
  /** It will not be used again. */
  isRetired = false;
  /** What its users may have left in the session; a different user wants it gone. */
  leftovers: 'none' | 'settings' | 'more' = 'none';
  lastUser: ServerUser | null = null;
  #user: ServerUser | null = null;
  readonly #socket: Socket;
  readonly #writer: Writer;
  #cause: Error | null = null;
  #cancels = 0;
  #isClosing = false;
  #isEnding = false;
  readonly #onGone: (server: ServerConnection) => void;

  constructor(
    login: ComputeLogin,
    options: { table: StatementTable; statementsMax: number; onGone: (server: ServerConnection) => void },
  ) {
    this.#socket = login.socket;
    this.target = { address: login.address, key: login.key };
    this.greeting = login.greeting;
    this.loginValues = valuesOf(login.greeting);
    this.values = this.loginValues;
    this.statements = new ServerStatements(options.table, options.statementsMax);
    this.#onGone = options.onGone;
    const socket = this.#socket;
    onChunks(socket, this.#onData);
    this.#writer = writerTo(socket, () => this.#user?.onServerDrain());
    socket.on('error', (error) => {
      this.#markEnding();
      this.#cause ??= error;
    });
    socket.on('end', () => {
      this.#markEnding();
      socket.destroy();
    });
    socket.on('close', () => this.#gone());
    socket.resume();
    if (!socket.writable) this.#markEnding();
    if (socket.destroyed) process.nextTick(() => this.#gone());
  }

  get isFree(): boolean {
    return this.replies.isIdle && this.#cancels === 0;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** It reads nothing of what is written to it from now on. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  get user(): ServerUser | null {
    return this.#user;
  }

  take(user: ServerUser): void {
    if (this.#user !== null) throw new Error('BUG: the server has a user');
    this.#user = user;
    lastTurn += 1;
    this.turn = lastTurn;
  }

  /** The user is gone; the connection may go on if it is free. */
  leave(): void {
    this.lastUser = this.#user;
    this.#user = null;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** False when the user should wait for `onServerDrain`. */
  write(bytes: Buffer): boolean {
    return this.#writer.write(bytes);
  }

  /** A query of our own, whose answers nobody sees. */
  writeHidden(sql: string): void {
    const text = Buffer.from(`${sql}\0`);
    const header = Buffer.from([0x51, 0, 0, 0, 0]);
    header.writeUInt32BE(text.length + 4, 1);
    this.replies.expect(asked.query | hidden);
    this.write(Buffer.concat([header, text]));
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Cancels what runs. Until that is through, the connection is not free: the cancel could hit the next user. */
  async cancel(timeoutMs: number): Promise<void> {
    if (!this.replies.isAsked) return;
    this.#cancels += 1;
    try {
      await forwardCancel(this.target, timeoutMs);
    } finally {
      this.#cancels -= 1;
      if (!this.replies.isAsked) this.#user?.onServerAnswered();
    }
  }

  /** Says goodbye; `onGone` follows when the server has gone too. */
  close(): void {
    this.isRetired = true;
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.#socket.writable) this.#socket.end(terminateMessage);
    const timer = setTimeout(() => this.#socket.destroy(), farewellMs);
    this.#socket.once('close', () => clearTimeout(timer));
    this.#socket.resume();
  }

  destroy(): void {
    this.isRetired = true;
    this.#isClosing = true;
    this.#socket.destroy();
  }

  onBytes(bytes: Buffer): void {
    if (this.#user !== null && !this.#user.onServerBytes(bytes)) this.#socket.pause();
  }

  onParameter(name: string, value: string): void {
    const at = trackedIndex(name);
    if (at === undefined) return;
    this.values = withValue(this.values, at, value);
    this.#user?.onServerParameter(at, value);
  }

  onCommand(tag: string): void {
    if (tag === 'DISCARD ALL' || tag === 'DEALLOCATE ALL') this.statements.clear();
    if (tag === 'SET') this.leftovers = this.leftovers === 'more' ? 'more' : 'settings';
    else if (tag === 'LISTEN' || tag === 'LOAD' || tag === 'PREPARE' || tag.startsWith('DECLARE')) {
      this.leftovers = 'more';
    }
    this.#user?.onServerCommand(tag);
  }

  onFatal(body: Buffer): boolean {
    this.isRetired = true;
    // Whoever still has it has got all its answers: it is no concern of theirs.
    if (this.replies.isIdle) {
      this.#markEnding();
      return true;
    }
    return this.#user?.onServerFatal(body) ?? true;
  }

  onError(body: Buffer, wasHidden: boolean): void {
    this.#user?.onServerError(body, wasHidden);
  }

  #onData = (chunk: Buffer): void => {
    try {
      this.replies.feed(chunk);
    } catch (thrown) {
      if (!(thrown instanceof ProtocolError)) throw thrown;
      this.#cause = thrown;
      return void this.destroy();
    }
    if (!this.replies.isAsked) this.#user?.onServerAnswered();
  };

  #markEnding(): void {
    this.isRetired = true;
    this.#isEnding = true;
  }

  #gone(): void {
    this.isRetired = true;
    this.#isClosing = true;
    const { isMidMessage, owed } = this.replies;
    this.replies.abandon();
    this.statements.clear();
    const user = this.#user;
    this.#user = null;
    this.#onGone(this);
    user?.onServerLost({ cause: this.#cause, isMidMessage, owed });
  }
}

/** The tracked values among the ParameterStatus messages of a greeting. */
export function valuesOf(greeting: Buffer): Tracked {
  const values: string[] = trackedNames.map(() => '');
  for (const { name, value } of readParameters(greeting)) {
    const at = trackedIndex(name);
    if (at !== undefined) values[at] = value;
  }
  return values;
}

export function readParameters(greeting: Buffer): { name: string; value: string }[] {
  const frames = new FrameBuffer();
  frames.push(greeting);
  const found: { name: string; value: string }[] = [];
  for (let message = frames.nextMessage(greeting.length); message; message = frames.nextMessage(greeting.length)) {
    const [name = '', value = ''] = message.body.toString('utf8').split('\0');
    if (message.type === 'S') found.push({ name, value });
  }
  return found;
}
