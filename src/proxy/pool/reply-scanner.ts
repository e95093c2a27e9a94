/**
 * Follows the replies of one server connection, to know which bytes the client gets and when the server is free again.
 * It reads message headers and the few short bodies that matter; rows pass through unread.
 *
 * Every request that has a reply is announced with `expect`, in order. A reply can be hidden (the proxy made the
 * request, so the client does not get the reply) or local (the server does not get the request, and the proxy replies).
 */
import { encodeMessage, ProtocolError } from '../protocol/wire.ts';
import { isSessionCommand, sessionTagBytesMax } from './command-tags.ts';
import { errorField, severityField, withClientsName } from './error-fields.ts';
import {
  bindComplete,
  closeComplete,
  commandComplete,
  copyInResponse,
  dataRow,
  emptyQueryResponse,
  errorResponse,
  headerBytes,
  noData,
  parameterStatus,
  parseComplete,
  portalSuspended,
  readyForQuery,
  rowDescription,
} from './message-types.ts';
import { hidden, kindMask, local, RequestQueue, requestKind, type StatementChange } from './request-queue.ts';

/** What the scanner reports while it reads. */
export interface ReplyEvents {
  /** Bytes for the client, in whole chunks where possible. They are valid during the call only. */
  onBytes(bytes: Buffer): void;
  onParameter(name: string, value: string): void;
  /** A command has completed that changes what the session holds (`command-tags.ts`). */
  onCommand(tag: string): void;
  /** An error that ends the connection. Returns true when the client should not get it. */
  onFatal(body: Buffer): boolean;
  /** An error that the connection survives. `isOwnQuery`: a query of the proxy failed, not one of the client. */
  onError(body: Buffer, isOwnQuery: boolean): void;
}

/** Transaction status of a ReadyForQuery outside of a transaction. */
const idleStatus = 'I'.charCodeAt(0);
/** An inspected body that is longer than this passes uninspected. */
const inspectedBytesMax = 1_000_000;

/** A Close is the only request that the proxy replies to. */
const localReply = Buffer.from([closeComplete, 0, 0, 0, 4]);

export class ReplyScanner {
  readonly #events: ReplyEvents;
  readonly #queue = new RequestQueue();
  /** The status of the last ReadyForQuery: I, T or E. */
  #status = idleStatus;
  /** Requests followed the last Sync or query: a transaction may be open that no ReadyForQuery has reported yet. */
  #isBatchOpen = false;
  /** The open batch contains a Bind, so it may have begun to run something. */
  #isBatchBound = false;
  /** After an error the server skips every request up to a Sync, which the client has not sent yet. */
  #isSkipping = false;
  /** The server reads the rows of a COPY, and ignores a Sync among them. */
  #isReadingCopy = false;
  /** How many Syncs were sent: the server skips requests of one batch together, and never those of another. */
  batch = 0;
  /** Bytes that are still to come of the message that is passing. */
  #bodyLeft = 0;
  #isBodyHidden = false;
  /** The beginning of a message that can only be understood as a whole. */
  #partial: Buffer | null = null;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  /** The server has replied to everything, and no transaction is open. */
  get isIdle(): boolean {
    return (
      this.#queue.isEmpty &&
      this.#status === idleStatus &&
      !this.#isBatchOpen &&
      !this.#isSkipping &&
      !this.#isReadingCopy &&
      this.#bodyLeft === 0 &&
      this.#partial === null
    );
  }

  /** Whether the server owes a reply. If not, there is nothing to cancel. */
  get isReplyDue(): boolean {
    return !this.#queue.isEmpty;
  }

  /** The server is outside of a transaction, and owes nothing but the reply to a query of the proxy. */
  get isOnlyHiddenDue(): boolean {
    const isLast = this.#queue.length === 1 && this.#queue.frontHas(hidden);
    return isLast && this.#status === idleStatus && this.#queue.frontKind === requestKind.query;
  }

  /** Whether a command of the client runs or will run, which may drop prepared statements. */
  get isCommandDue(): boolean {
    return this.#queue.hasCommand;
  }

  /** The server reads the rows of a COPY. */
  get isReadingCopy(): boolean {
    return this.#isReadingCopy;
  }

  /** The server sends nothing more until the client does: all has its reply, or a COPY or a batch has no end yet. */
  get isWaitingForClient(): boolean {
    return this.#queue.isEmpty || this.#isReadingCopy || this.#isBatchOpen;
  }

  /** The next request belongs to a batch, or the server skips it because one before it has failed or will. */
  get isInBatch(): boolean {
    return this.#isBatchOpen || this.#isSkipping || this.#queue.maySkip;
  }

  /** The client has the beginning of a message, and not its end. */
  get isMidMessage(): boolean {
    return this.#bodyLeft > 0 && !this.#isBodyHidden;
  }

  /**
   * If this connection were lost now: how many times the client would need an error and a ReadyForQuery to go on with
   * another server. Null when the client cannot go on, because it would not notice that its open transaction is lost,
   * or because it is in the middle of a message.
   */
  get readyOwed(): number | null {
    if (this.isMidMessage || this.#status !== idleStatus || this.#isSkipping) return null;
    // A batch that has only prepared and described statements loses nothing: they are prepared again where needed.
    if (this.#isBatchOpen && (this.#isBatchBound || this.isReplyDue)) return null;
    return this.#queue.countReady();
  }

  /** A request (a kind with its flags) is on its way to the server. */
  expect(request: number, change: StatementChange | null = null): void {
    const kind = request & kindMask;
    if (kind === requestKind.sync) {
      if (this.#isReadingCopy) return;
      this.batch += 1;
      this.#isBatchOpen = false;
      this.#isBatchBound = false;
      this.#isSkipping = false;
    } else if (kind === requestKind.copyEnd) {
      this.#isReadingCopy = false;
      if (!this.isReplyDue) return;
    } else {
      // The COPY has failed, or the server ends the connection now. It gets nothing of what is replied to here.
      if ((request & local) === 0) this.#isReadingCopy = false;
      if (this.#isSkipping) return void change?.undo('skipped');
      // The ReadyForQuery of a simple query ends a batch as that of a Sync does.
      this.#isBatchOpen = kind !== requestKind.query;
      if (kind !== requestKind.query) this.#isBatchBound ||= kind === requestKind.bind;
      else this.#isBatchBound = false;
    }
    this.#queue.push(request, change);
  }

  /** Sends the local replies that are next in the queue. Call it after a series of `expect`. */
  sendLocalReplies(): void {
    while (this.#queue.frontHas(local)) {
      this.#queue.pop();
      this.#events.onBytes(localReply);
    }
  }

  /** The command that has just completed has dropped all statements; those behind it come after that. */
  redoChanges(): void {
    this.#queue.redoAfterFront();
  }

  /** The connection is lost: undoes the changes of every request that has no reply. */
  abandon(): void {
    this.#queue.abandon();
  }

  /** Bytes from the server. */
  feed(arrived: Buffer): void {
    const chunk = this.#partial === null ? arrived : Buffer.concat([this.#partial, arrived]);
    this.#partial = null;
    const end = chunk.length;
    let at = 0;
    /** Where the bytes start that go to the client next, in one piece. */
    let from = 0;
    while (at < end) {
      if (this.#bodyLeft > 0) {
        const step = Math.min(this.#bodyLeft, end - at);
        this.#bodyLeft -= step;
        at += step;
        if (this.#isBodyHidden) from = at;
        continue;
      }
      if (end - at < headerBytes) break;
      const type = chunk[at] ?? 0;
      const length = chunk.readUInt32BE(at + 1);
      if (length < 4) throw new ProtocolError('invalid message length from the compute');
      const next = at + 1 + length;
      if (next > end && isInspected(type) && length <= inspectedBytesMax) break;
      // How an error is handled depends on whether the client has received anything, so it gets the rest first.
      if (type === errorResponse && from < at) {
        this.#events.onBytes(chunk.subarray(from, at));
        from = at;
      }
      const isHidden = this.#read(type, chunk, at + headerBytes, next);
      if (isHidden && from < at) this.#events.onBytes(chunk.subarray(from, at));
      this.#isBodyHidden = isHidden;
      this.#bodyLeft = Math.max(0, next - end);
      at = Math.min(next, end);
      if (isHidden) from = at;
      if (this.#queue.frontHas(local)) {
        if (from < at) this.#events.onBytes(chunk.subarray(from, at));
        from = at;
        this.sendLocalReplies();
      }
    }
    if (at < end) this.#partial = Buffer.from(chunk.subarray(at));
    if (from < at) this.#events.onBytes(from === 0 && at === end ? chunk : chunk.subarray(from, at));
  }

  /**
   * Takes account of one message, whose body lies from `start` to `next` and may go beyond the chunk. Returns whether
   * it is hidden from the client.
   */
  #read(type: number, chunk: Buffer, start: number, next: number): boolean {
    switch (type) {
      case dataRow:
        return this.#queue.frontHas(hidden);
      case parseComplete:
        return this.#completeFront(requestKind.parse);
      case bindComplete:
        return this.#completeFront(requestKind.bind);
      case closeComplete:
        return this.#completeFront(requestKind.close);
      case rowDescription:
      case noData:
        return this.#queue.frontHas(hidden) || this.#completeIfFront(requestKind.describe);
      case commandComplete:
        this.#readCommandTag(chunk, start, next);
        return this.#queue.frontHas(hidden) || this.#completeIfFront(requestKind.execute);
      case emptyQueryResponse:
      case portalSuspended:
        return this.#completeIfFront(requestKind.execute);
      case readyForQuery:
        return this.#readReady(chunk[start] ?? idleStatus);
      case errorResponse:
        return next <= chunk.length && this.#readError(chunk.subarray(start, next));
      case parameterStatus:
        if (next <= chunk.length) this.#readParameter(chunk, start, next);
        return this.#queue.frontHas(hidden);
      case copyInResponse:
        this.#startCopy();
        return false;
      default:
        return this.#queue.frontHas(hidden);
    }
  }

  /** The reply to the oldest request is complete. Returns whether it is hidden. */
  #completeFront(kind: number): boolean {
    const { front } = this.#queue;
    if ((front & kindMask) !== kind) throw new ProtocolError('the compute sent a reply to no request');
    this.#queue.pop();
    return (front & hidden) !== 0;
  }

  /** As `completeFront`, for a message that can also be a part of the reply to a simple query. */
  #completeIfFront(kind: number): boolean {
    return this.#queue.frontKind === kind && this.#completeFront(kind);
  }

  #readReady(status: number): boolean {
    this.#status = status;
    this.#isReadingCopy = false;
    const request = this.#queue.popThroughReady();
    if (request !== 0) return (request & hidden) !== 0;
    // The client sent the Sync during a COPY that had already failed, so the Sync was not put into the queue.
    this.#isSkipping = false;
    this.#isBatchOpen = false;
    return false;
  }

  #readError(body: Buffer): boolean {
    const severity = errorField(body, severityField);
    if (severity === 'FATAL' || severity === 'PANIC') return this.#events.onFatal(body);
    this.#isReadingCopy = false;
    const kind = this.#queue.frontKind;
    const isOwnQuery = kind === requestKind.query && this.#queue.frontHas(hidden);
    this.#events.onError(body, isOwnQuery);
    if (kind === requestKind.query) {
      this.#queue.undoFront();
      return isOwnQuery;
    }
    if (kind === requestKind.sync || kind === 0) return false;
    const alias = this.#queue.frontAlias;
    this.#isSkipping = !this.#queue.skipToSync();
    const edited = alias === undefined ? null : withClientsName(body, alias);
    if (edited === null) return false;
    this.#events.onBytes(encodeMessage('E', edited));
    return true;
  }

  #readParameter(chunk: Buffer, start: number, next: number): void {
    const nameEnd = chunk.indexOf(0, start);
    if (nameEnd === -1 || nameEnd >= next) return;
    this.#events.onParameter(chunk.toString('utf8', start, nameEnd), chunk.toString('utf8', nameEnd + 1, next - 1));
  }

  #readCommandTag(chunk: Buffer, start: number, next: number): void {
    if (next - start > sessionTagBytesMax || this.#queue.frontHas(hidden) || !isSessionCommand(chunk, start)) return;
    this.#events.onCommand(chunk.toString('latin1', start, next - 1));
  }

  /** If nothing is behind it but Syncs, which the server ignores, the rows are still to come. */
  #startCopy(): void {
    if (this.#queue.removeSyncsInCopy()) return;
    this.#isReadingCopy = true;
    this.#isBatchOpen ||= this.#queue.frontKind !== requestKind.query;
  }
}

/** Whether the whole body of such a message is needed. */
function isInspected(type: number): boolean {
  return type === readyForQuery || type === errorResponse || type === parameterStatus || type === commandComplete;
}
