/**
 * One server connection of a pool. It has one user at a time, which gets the replies that are meant for it and learns
 * when the server is free. Between two users it is idle, and what the server sends then is dropped.
 */
import { type CancelTarget, forwardCancel } from '../compute/cancel.ts';
import { socketNameOf } from '../compute/dial.ts';
import type { ComputeLogin } from '../compute/login.ts';
import type { ByteStream } from '../protocol/byte-stream.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { onChunks } from '../sockets/chunks.ts';
import { type Writer, writerTo } from '../sockets/straight-writer.ts';
import { dropsStatements, type Leftovers, leftoversAfter } from './command-tags.ts';
import { requestTypes } from './message-types.ts';
import { type ReplyEvents, ReplyScanner } from './reply-scanner.ts';
import { hidden, requestKind } from './request-queue.ts';
import { ServerStatements, type StatementTable } from './statements.ts';
import { changeSql, readTrackedValues, type TrackedValues, trackedIndex, withValue } from './tracked-settings.ts';

/** The session, lease or query that has the connection. */
export interface ServerUser {
  /** Bytes for the client, valid during the call only. Returns false to get no more of them until `resume`. */
  onServerBytes(bytes: Buffer): boolean;
  /** The server sends nothing more by itself. It is free, or in the middle of a transaction, a batch or a COPY. */
  onServerDone(): void;
  /** The server takes bytes again, after `write` has returned false. */
  onServerDrain(): void;
  /** A tracked setting has changed. */
  onServerParameter(index: number, value: string): void;
  onServerCommand(tag: string): void;
  /** `isOwnQuery`: a query of the proxy failed, not one of the client. */
  onServerError(body: Buffer, isOwnQuery: boolean): void;
  /** The server ends the connection with an error. Returns true when the client should not get it. */
  onServerFatal(body: Buffer): boolean;
  onServerLost(loss: ServerLoss): void;
}

/** How a connection was lost, and what its user was waiting for. */
export interface ServerLoss {
  /** The error of the socket, if there was one. */
  readonly cause: Error | null;
  /** The user has the beginning of a message, and will not get the rest. */
  readonly isMidMessage: boolean;
  /** As `ReplyScanner.readyOwed`. */
  readonly readyOwed: number | null;
}

const resetMessage = Buffer.concat([Buffer.from([requestTypes.query, 0, 0, 0, 16]), Buffer.from('DISCARD ALL\0')]);
const terminateMessage = Buffer.from([requestTypes.terminate, 0, 0, 0, 4]);
/** How long a server may take to close its side. */
const closeMs = 2_000;
let lastTurn = 0;

export class ServerConnection implements ReplyEvents {
  readonly replies = new ReplyScanner(this);
  readonly statements: ServerStatements;
  /** The ParameterStatus messages of the login. */
  readonly greeting: Buffer;
  /** The settings right after the login, which a reset brings back. */
  readonly loginValues: TrackedValues;
  readonly openedAt = Date.now();
  values: TrackedValues;
  /** See `socketNameOf`. */
  readonly socketName: string;
  turn = 0;
  idleSince = 0;
  /** The connection will not be given to another user. */
  isRetired = false;
  /** What earlier users may have left in the session; it is reset before a different user gets it. */
  #leftovers: Leftovers = 'none';
  #lastUser: ServerUser | null = null;
  #user: ServerUser | null = null;
  readonly #socket: ByteStream;
  readonly #writer: Writer;
  readonly #cancelTarget: CancelTarget;
  #cause: Error | null = null;
  /** Cancel requests under way. */
  #cancels = 0;
  #isClosing = false;
  #isEnding = false;
  readonly #onClosed: (server: ServerConnection) => void;

  constructor(
    login: ComputeLogin,
    options: { table: StatementTable; statementsMax: number; onClosed: (server: ServerConnection) => void },
  ) {
    this.#socket = login.socket;
    this.socketName = socketNameOf(login.address);
    this.#cancelTarget = { address: login.address, key: login.key };
    this.greeting = login.greeting;
    this.loginValues = readTrackedValues(login.greeting);
    this.values = this.loginValues;
    this.statements = new ServerStatements(options.table, options.statementsMax);
    this.#onClosed = options.onClosed;
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
    socket.on('close', () => this.#onSocketClosed());
    socket.resume();
    if (!socket.writable) this.#markEnding();
    if (socket.destroyed) process.nextTick(() => this.#onSocketClosed());
  }

  /** The server can be given to another user. */
  get isFree(): boolean {
    return this.replies.isIdle && this.#cancels === 0;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The server has ended the connection, and reads nothing of what is written from now on. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Gives the connection to a user, with these settings and without what a different user has left behind. */
  assign(user: ServerUser, values: TrackedValues): void {
    if (this.#user !== null) throw new Error('BUG: the server connection already has a user');
    this.#user = user;
    lastTurn += 1;
    this.turn = lastTurn;
    let sql = '';
    if (this.#leftovers !== 'none' && this.#lastUser !== user) {
      if (this.#leftovers === 'state') {
        this.writeHidden('DISCARD ALL');
        this.statements.clear();
      } else sql = 'SET SESSION AUTHORIZATION DEFAULT;RESET ALL;';
      this.#leftovers = 'none';
      this.values = this.loginValues;
    }
    sql += changeSql(this.values, values);
    if (sql !== '') this.writeHidden(sql);
  }

  /** Takes the connection from its user. If it is free, it can be assigned again. */
  unassign(): void {
    this.#lastUser = this.#user;
    this.#user = null;
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** Returns false when the user should wait for `onServerDrain`. */
  write(bytes: Buffer): boolean {
    return this.#writer.write(bytes);
  }

  /** Sends a query of the proxy, whose reply the client does not get. */
  writeHidden(sql: string): void {
    const text = Buffer.from(`${sql}\0`);
    const header = Buffer.from([requestTypes.query, 0, 0, 0, 0]);
    header.writeUInt32BE(text.length + 4, 1);
    this.replies.expect(requestKind.query | hidden);
    this.write(Buffer.concat([header, text]));
  }

  /**
   * The bytes that reset the session, for the user to write behind its last request. They have no reply for the user,
   * which calls `noteReset` once the server is free again.
   */
  expectReset(): Buffer {
    this.replies.expect(requestKind.query | hidden);
    return resetMessage;
  }

  noteReset(): void {
    this.statements.clear();
    this.#leftovers = 'none';
    this.values = this.loginValues;
  }

  /** Reads from the server again, after `onServerBytes` has returned false. */
  resume(): void {
    this.#socket.resume();
  }

  /** Cancels what runs. The connection is not free until that is done: the cancel could hit the next user. */
  async cancel(timeoutMs: number): Promise<void> {
    if (!this.replies.isReplyDue) return;
    this.#cancels += 1;
    try {
      await forwardCancel(this.#cancelTarget, timeoutMs);
    } finally {
      this.#cancels -= 1;
      if (!this.replies.isReplyDue) this.#user?.onServerDone();
    }
  }

  /**
   * Sends Terminate; `onClosed` follows when the server has closed its side too. What still runs after a while is
   * cancelled: without its client nobody waits for it, and it would hold its locks.
   */
  close(): void {
    this.isRetired = true;
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.#socket.writable) this.#socket.end(terminateMessage);
    const timer = setTimeout(() => {
      void this.cancel(closeMs).catch(() => {});
      this.#socket.destroy();
    }, closeMs);
    this.#socket.once('close', () => clearTimeout(timer));
    this.#socket.resume();
  }

  /** Takes the connection from its user in the middle of something: cancels what runs, and closes at once. */
  abort(cancelMs: number): void {
    void this.cancel(cancelMs).catch(() => {});
    this.unassign();
    this.#destroy();
  }

  #destroy(): void {
    this.isRetired = true;
    this.#isClosing = true;
    this.#socket.destroy();
  }

  onBytes(bytes: Buffer): void {
    if (this.#user !== null && !this.#user.onServerBytes(bytes)) this.#socket.pause();
  }

  onParameter(name: string, value: string): void {
    const index = trackedIndex(name);
    if (index === undefined) return;
    this.values = withValue(this.values, index, value);
    this.#user?.onServerParameter(index, value);
  }

  onCommand(tag: string): void {
    if (dropsStatements(tag)) this.statements.clear();
    this.#leftovers = leftoversAfter(tag, this.#leftovers);
    this.#user?.onServerCommand(tag);
    if (dropsStatements(tag)) this.replies.redoChanges();
  }

  onFatal(body: Buffer): boolean {
    this.isRetired = true;
    // A user that still has the connection has all its replies already, so the error is none of its business.
    if (this.replies.isIdle) {
      this.#markEnding();
      return true;
    }
    return this.#user?.onServerFatal(body) ?? true;
  }

  onError(body: Buffer, isOwnQuery: boolean): void {
    this.#user?.onServerError(body, isOwnQuery);
  }

  #onData = (chunk: Buffer): void => {
    try {
      this.replies.feed(chunk);
    } catch (thrown) {
      if (!(thrown instanceof ProtocolError)) throw thrown;
      this.#cause = thrown;
      return void this.#destroy();
    }
    if (this.replies.isWaitingForClient) this.#user?.onServerDone();
  };

  #markEnding(): void {
    this.isRetired = true;
    this.#isEnding = true;
  }

  #onSocketClosed(): void {
    this.isRetired = true;
    this.#isClosing = true;
    const { isMidMessage, readyOwed } = this.replies;
    this.replies.abandon();
    this.statements.clear();
    const user = this.#user;
    this.#user = null;
    this.#onClosed(this);
    user?.onServerLost({ cause: this.#cause, isMidMessage, readyOwed });
  }
}
