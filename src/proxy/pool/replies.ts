/**
 * Follows what a pooled server was asked and what it answers, to know which bytes the client may see and when the
 * server is free again. It looks at message headers and at the few short bodies that matter; rows pass untouched.
 *
 * Every request that ends in an answer is noted with `expect`, in order. An answer may be hidden (the client did not
 * ask for it) or local (the server is not asked; we answer when its turn comes).
 */
import { ProtocolError } from '../protocol/wire.ts';
import { asked, countReady, hidden, kindMask, local } from './asked.ts';
import {
  bindComplete,
  closeComplete,
  commandComplete,
  copyIn,
  dataRow,
  emptyQuery,
  errorField,
  errorMessage,
  isLookedInto,
  isSessionCommand,
  noData,
  parameterStatus,
  parseComplete,
  portalSuspended,
  readyForQuery,
  rowDescription,
  severityField,
  tagBytesMax,
} from './reply-bodies.ts';
import type { ReplyEvents, RequestNote } from './reply-events.ts';

const idleStatus = 'I'.charCodeAt(0);
const headerBytes = 5;
/** Bodies that we look into are short; a longer error passes unread. */
const bodyBytesMax = 1_000_000;

const localAnswers: Readonly<Record<number, Buffer>> = {
  [asked.parse]: Buffer.from([parseComplete, 0, 0, 0, 4]),
  [asked.close]: Buffer.from([closeComplete, 0, 0, 0, 4]),
};

export class ReplyScanner {
  readonly #events: ReplyEvents;
  readonly #kinds: number[] = [];
  readonly #notes: (RequestNote | null)[] = [];
  #head = 0;
  /** Of the last ReadyForQuery: I, T or E. */
  #status = idleStatus;
  /** Something was asked since the last Sync, so the server may hold a transaction that no status tells of. */
  #batchIsOpen = false;
  #batchIsBound = false;
  /** After an error the server ignores everything up to a Sync that was not sent yet. */
  #isIgnoring = false;
  /** The server reads rows of a COPY; it ignores a Sync meanwhile. */
  #readsCopy = false;
  #bodyLeft = 0;
  #bodyIsHidden = false;
  #partial: Buffer | null = null;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  /** Everything is answered and no transaction is open. */
  get isIdle(): boolean {
    return (
      this.#head === this.#kinds.length &&
      this.#status === idleStatus &&
      !this.#batchIsOpen &&
      !this.#isIgnoring &&
      !this.#readsCopy &&
      this.#bodyLeft === 0 &&
      this.#partial === null
    );
  }

  /** Whether an answer is owed; a server that owes nothing has nothing to cancel. */
  get isAsked(): boolean {
    return this.#head < this.#kinds.length;
  }

  /** The client has got the beginning of a message, and not its end. */
  get isMidMessage(): boolean {
    return this.#bodyLeft > 0 && !this.#bodyIsHidden;
  }

  /**
   * How many ReadyForQuery the client waits for, if an error and as many of them are all that it needs to go on
   * without this server. Null when a transaction that it has begun would be lost behind its back, or when it cannot be
   * told.
   */
  get owed(): number | null {
    if (this.isMidMessage || this.#status !== idleStatus || this.#isIgnoring) return null;
    // Statements that it has only prepared and described are prepared again wherever they are used.
    if (this.#batchIsOpen && (this.#batchIsBound || this.isAsked)) return null;
    return countReady(this.#kinds, this.#head);
  }

  expect(kind: number, note: RequestNote | null = null): void {
    const plain = kind & kindMask;
    if (plain === asked.sync) {
      if (this.#readsCopy) return;
      this.#batchIsOpen = false;
      this.#batchIsBound = false;
      this.#isIgnoring = false;
    } else if (plain === asked.copyEnd) {
      this.#readsCopy = false;
      if (!this.isAsked) return;
    } else if (plain !== asked.query) {
      this.#batchIsOpen = true;
      if (plain === asked.bind) this.#batchIsBound = true;
      if (this.#isIgnoring) return void note?.undo();
    }
    this.#kinds.push(kind);
    this.#notes.push(note);
  }

  /** Sends the local answers whose turn has come. To be called after a run of `expect`. */
  answerLocally(): void {
    while (this.#frontIs(local)) {
      const answer = localAnswers[this.#frontKind()];
      this.#pop();
      if (answer) this.#events.onBytes(answer);
    }
  }

  /** The connection is lost: nothing that was asked will be answered. */
  abandon(): void {
    this.#drop(this.#kinds.length);
  }

  feed(arrived: Buffer): void {
    const chunk = this.#partial === null ? arrived : Buffer.concat([this.#partial, arrived]);
    this.#partial = null;
    const end = chunk.length;
    let at = 0;
    /** Start of the bytes that go to the client in one piece. */
    let from = 0;
    while (at < end) {
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, end - at);
        this.#bodyLeft -= step;
        at += step;
        if (this.#bodyIsHidden) from = at;
        continue;
      }
      if (end - at < headerBytes) break;
      const type = chunk[at] ?? 0;
      const length = chunk.readUInt32BE(at + 1);
      if (length < 4) throw new ProtocolError('invalid message length from the compute');
      const next = at + 1 + length;
      if (next > end && isLookedInto(type) && length <= bodyBytesMax) break;
      // What an error means depends on whether its client has got anything yet.
      if (type === errorMessage && from < at) {
        this.#events.onBytes(chunk.subarray(from, at));
        from = at;
      }
      const isHidden = this.#see(type, chunk, at + headerBytes, next);
      if (isHidden && from < at) this.#events.onBytes(chunk.subarray(from, at));
      this.#bodyIsHidden = isHidden;
      this.#bodyLeft = Math.max(0, next - end);
      at = Math.min(next, end);
      if (isHidden) from = at;
      if (this.#frontIs(local)) {
        if (from < at) this.#events.onBytes(chunk.subarray(from, at));
        from = at;
        this.answerLocally();
      }
    }
    if (at < end) this.#partial = Buffer.from(chunk.subarray(at));
    if (from < at) this.#events.onBytes(from === 0 && at === end ? chunk : chunk.subarray(from, at));
  }

  /** Takes note of one message; true when it is not for the client. A body beyond the chunk is not looked into. */
  #see(type: number, chunk: Buffer, start: number, next: number): boolean {
    switch (type) {
      case dataRow:
        return this.#frontIs(hidden);
      case parseComplete:
        return this.#answered(asked.parse);
      case bindComplete:
        return this.#answered(asked.bind);
      case closeComplete:
        return this.#answered(asked.close);
      case rowDescription:
      case noData:
        return this.#frontIs(hidden) || (this.#frontKind() === asked.describe && this.#answered(asked.describe));
      case commandComplete:
        this.#seeCommand(chunk, start, next);
        return this.#frontIs(hidden) || (this.#frontKind() === asked.execute && this.#answered(asked.execute));
      case emptyQuery:
      case portalSuspended:
        return this.#frontKind() === asked.execute && this.#answered(asked.execute);
      case readyForQuery:
        return this.#seeReady(chunk[start] ?? idleStatus);
      case errorMessage:
        return next <= chunk.length && this.#seeError(chunk.subarray(start, next));
      case parameterStatus:
        if (next <= chunk.length) this.#seeParameter(chunk, start, next);
        return this.#frontIs(hidden);
      case copyIn:
        this.#seeCopyIn();
        return false;
      default:
        return this.#frontIs(hidden);
    }
  }

  #frontKind(): number {
    return (this.#kinds[this.#head] ?? 0) & kindMask;
  }

  #frontIs(flag: number): boolean {
    return ((this.#kinds[this.#head] ?? 0) & flag) !== 0;
  }

  /** True when the answer is hidden. */
  #answered(kind: number): boolean {
    const front = this.#kinds[this.#head] ?? 0;
    if ((front & kindMask) !== kind) throw new ProtocolError('the compute answered what it was not asked');
    this.#pop();
    return (front & hidden) !== 0;
  }

  #seeReady(status: number): boolean {
    this.#status = status;
    this.#readsCopy = false;
    while (this.#head < this.#kinds.length) {
      const kind = this.#kinds[this.#head] ?? 0;
      this.#pop();
      const plain = kind & kindMask;
      if (plain === asked.sync || plain === asked.query) return (kind & hidden) !== 0;
    }
    // The Sync was sent during a COPY that had failed by then.
    this.#isIgnoring = false;
    this.#batchIsOpen = false;
    return false;
  }

  #seeError(body: Buffer): boolean {
    const severity = errorField(body, severityField);
    if (severity === 'FATAL' || severity === 'PANIC') return this.#events.onFatal(body);
    this.#readsCopy = false;
    const kind = this.#frontKind();
    const wasHidden = kind === asked.query && this.#frontIs(hidden);
    this.#events.onError(body, wasHidden);
    if (kind === asked.query) return wasHidden;
    if (kind === asked.sync || kind === 0) return false;
    let sync = this.#head;
    while (sync < this.#kinds.length && ((this.#kinds[sync] ?? 0) & kindMask) !== asked.sync) sync += 1;
    this.#isIgnoring = sync === this.#kinds.length;
    this.#drop(sync);
    return false;
  }

  #seeParameter(chunk: Buffer, start: number, next: number): void {
    const middle = chunk.indexOf(0, start);
    if (middle === -1 || middle >= next) return;
    this.#events.onParameter(chunk.toString('utf8', start, middle), chunk.toString('utf8', middle + 1, next - 1));
  }

  #seeCommand(chunk: Buffer, start: number, next: number): void {
    if (next - start > tagBytesMax || this.#frontIs(hidden) || !isSessionCommand(chunk, start)) return;
    this.#events.onCommand(chunk.toString('latin1', start, next - 1));
  }

  /** A Sync that was sent behind the COPY and before its end is read as part of the COPY, and ignored. */
  #seeCopyIn(): void {
    for (let i = this.#head; i < this.#kinds.length; i++) {
      if (this.#kinds[i] === asked.copyEnd) return;
      if (this.#kinds[i] === asked.sync) {
        this.#kinds.splice(i, 1);
        this.#notes.splice(i, 1);
        i -= 1;
        this.#batchIsOpen = true;
      }
    }
    this.#readsCopy = true;
  }

  #pop(): void {
    do {
      this.#notes[this.#head] = null;
      this.#head += 1;
    } while (this.#kinds[this.#head] === asked.copyEnd);
    if (this.#head < this.#kinds.length) return;
    this.#kinds.length = 0;
    this.#notes.length = 0;
    this.#head = 0;
  }

  /** Undoes, latest first, everything up to `end`. */
  #drop(end: number): void {
    for (let i = end - 1; i >= this.#head; i--) this.#notes[i]?.undo();
    this.#kinds.splice(0, end);
    this.#notes.splice(0, end);
    this.#head = 0;
  }
}
