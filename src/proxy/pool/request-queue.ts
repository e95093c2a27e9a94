/**
 * The requests that a server has not replied to yet, oldest first. Each is one small number: what was requested, and
 * flags for what happens to the reply. A request may also carry a change to the statement tables, which is undone if
 * the server rejects or skips the request, or the name of the statement that it uses.
 */
import type { StatementAlias } from './error-fields.ts';

/** What was requested. The numbers only have to differ, and to be below the flags. */
export const requestKind = {
  parse: 1,
  bind: 2,
  describe: 3,
  execute: 4,
  close: 5,
  sync: 6,
  query: 7,
  /** CopyDone or CopyFail, which have no reply of their own. */
  copyEnd: 8,
} as const;

/** Selects the kind of a request without its flags. */
export const kindMask = 15;
/** Flag: the proxy sent the request on its own account, so the client does not get the reply. */
export const hidden = 16;
/** Flag: the server does not get the request; the proxy replies once all earlier requests have their replies. */
export const local = 32;

/** A change that was made in the statement tables when the request was sent, in the belief that it would succeed. */
export interface StatementChange {
  /** The server has carried out the request. */
  done(): void;
  /** The server has refused the request, or has skipped it because one before it was refused. */
  undo(how: 'refused' | 'skipped'): void;
  /** A command before the request has dropped all statements, so the change is made to what is left. */
  redo(): void;
  /** The statement that an error of the server may name. */
  readonly alias?: StatementAlias;
}

/** A request that changes nothing: a Bind or a Describe, or a Parse that the server will refuse. */
export class StatementUse implements StatementChange, StatementAlias {
  readonly onServer: Buffer;
  readonly byClient: string;

  constructor(onServer: Buffer, byClient: string) {
    this.onServer = onServer;
    this.byClient = byClient;
  }

  get alias(): StatementAlias {
    return this;
  }

  done(): void {}

  undo(): void {}

  redo(): void {}
}

export class RequestQueue {
  readonly #requests: number[] = [];
  readonly #changes: (StatementChange | null)[] = [];
  /** Requests before this index have their reply. */
  #head = 0;
  /** The oldest request, or 0. It is read several times for every message of the server, hence the field. */
  #front = 0;

  get isEmpty(): boolean {
    return this.#front === 0;
  }

  get length(): number {
    return this.#requests.length - this.#head;
  }

  /** The oldest request with its flags; 0 when there is none. */
  get front(): number {
    return this.#front;
  }

  get frontKind(): number {
    return this.#front & kindMask;
  }

  get frontAlias(): StatementAlias | undefined {
    return this.#changes[this.#head]?.alias;
  }

  frontHas(flag: number): boolean {
    return (this.#front & flag) !== 0;
  }

  push(request: number, change: StatementChange | null): void {
    if (this.#front === 0) this.#front = request;
    this.#requests.push(request);
    this.#changes.push(change);
  }

  /** Removes the oldest request, and the ends of COPYs that follow it: they have no reply to wait for. */
  pop(): void {
    do {
      this.#changes[this.#head]?.done();
      this.#changes[this.#head] = null;
      this.#head += 1;
    } while (this.#requests[this.#head] === requestKind.copyEnd);
    this.#front = this.#requests[this.#head] ?? 0;
    if (this.#front !== 0) return;
    this.#requests.length = 0;
    this.#changes.length = 0;
    this.#head = 0;
  }

  /** Removes everything up to the first request that ends with ReadyForQuery. Returns that request, or 0. */
  popThroughReady(): number {
    while (!this.isEmpty) {
      const request = this.#front;
      this.pop();
      if (endsWithReady(request)) return request;
    }
    return 0;
  }

  /** How many ReadyForQuery the client will get for the requests in the queue. */
  countReady(): number {
    let count = 0;
    for (let i = this.#head; i < this.#requests.length; i++) {
      const request = this.#requests[i] ?? 0;
      if (endsWithReady(request) && (request & hidden) === 0) count += 1;
    }
    return count;
  }

  /** The server has rejected the oldest request, and its reply is not complete yet. */
  undoFront(): void {
    this.#changes[this.#head]?.undo('refused');
    this.#changes[this.#head] = null;
  }

  /** Makes the changes of all requests behind the oldest again: it has dropped all statements. */
  redoAfterFront(): void {
    for (let i = this.#head + 1; i < this.#requests.length; i++) this.#changes[i]?.redo();
  }

  /** Whether a command of the client runs or will run. */
  get hasCommand(): boolean {
    for (let i = this.#head; i < this.#requests.length; i++) {
      const request = this.#requests[i] ?? 0;
      if (request === requestKind.query || request === requestKind.execute) return true;
    }
    return false;
  }

  /**
   * The server has refused the oldest request, and skips everything behind it up to the next Sync. Returns false when
   * no Sync was sent yet.
   */
  skipToSync(): boolean {
    let sync = this.#head;
    while (sync < this.#requests.length && ((this.#requests[sync] ?? 0) & kindMask) !== requestKind.sync) sync += 1;
    const isFound = sync < this.#requests.length;
    this.#undoUntil(sync, 'refused');
    return isFound;
  }

  /** No request will be replied to. */
  abandon(): void {
    this.#undoUntil(this.#requests.length, 'skipped');
  }

  /** Whether the server may come to skip what is sent next, because a request fails that no Sync has followed yet. */
  get maySkip(): boolean {
    for (let i = this.#requests.length - 1; i >= this.#head; i--) {
      const kind = (this.#requests[i] ?? 0) & kindMask;
      if (kind === requestKind.sync) return false;
      if (kind !== requestKind.query && kind !== requestKind.copyEnd) return true;
    }
    return false;
  }

  /**
   * The server has begun to read the rows of a COPY. Removes the Syncs right behind it, which the server ignores there;
   * those behind anything else come after the COPY, which then has its end, or has failed, or ends the connection.
   * Returns whether the server has got anything else.
   */
  removeSyncsInCopy(): boolean {
    let at = this.#head + 1;
    while (at < this.#requests.length) {
      const request = this.#requests[at] ?? 0;
      if (request === requestKind.sync) {
        this.#requests.splice(at, 1);
        this.#changes.splice(at, 1);
      } else if ((request & local) !== 0) at += 1;
      else return true;
    }
    return false;
  }

  /** Removes the requests before the index `end` and undoes their changes, latest first. */
  #undoUntil(end: number, first: 'refused' | 'skipped'): void {
    for (let i = end - 1; i > this.#head; i--) this.#changes[i]?.undo('skipped');
    if (end > this.#head) this.#changes[this.#head]?.undo(first);
    this.#requests.splice(0, end);
    this.#changes.splice(0, end);
    this.#head = 0;
    this.#front = this.#requests[0] ?? 0;
  }
}

function endsWithReady(request: number): boolean {
  const kind = request & kindMask;
  return kind === requestKind.sync || kind === requestKind.query;
}
