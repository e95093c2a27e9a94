/**
 * The unnamed statement of a pooled client. The server has it for as long as the client has the server; for a later
 * turn its Parse is kept, unless it is long and the client will hardly need it. As in Postgres, a Parse that is refused
 * leaves none behind, and one that is skipped leaves the statement before it.
 */
import type { StatementChange } from './request-queue.ts';

class Version implements StatementChange {
  /** The Parse, for another server; null where there is none to send again. */
  readonly message: Buffer | null;
  /** The turn in which the server has this statement. */
  readonly turn: number;
  /** The batch of the request that made this version, until the server has replied to it; then null. */
  madeIn: number | null;
  /** What holds in place of this version, if its request was refused or skipped. */
  successor: Version | null = null;
  /** What it replaced, and what is left if it is refused; null when the server has replied. */
  #before: Version | null;
  #ifRefused: Version | null;

  constructor(message: Buffer | null, turn: number, madeIn: number | null, before: Version | null, ifRefused = before) {
    this.message = message;
    this.turn = turn;
    this.madeIn = madeIn;
    this.#before = before;
    this.#ifRefused = ifRefused;
  }

  done(): void {
    this.madeIn = null;
    this.#before = null;
    this.#ifRefused = null;
  }

  undo(how: 'refused' | 'skipped'): void {
    this.successor = how === 'refused' ? this.#ifRefused : this.#before;
    this.done();
  }

  redo(): void {}
}

const none = new Version(null, -1, null, null);

export class UnnamedStatement {
  #latest: Version = none;

  /** Only the replies tell whether there is one: a request of an earlier batch may still be refused or skipped. */
  isInDoubt(batch: number): boolean {
    const { madeIn } = this.#current;
    return madeIn !== null && madeIn !== batch;
  }

  /** The client has sent a Parse; `message` is kept for later turns. */
  parse(message: Buffer | null, turn: number, batch: number): StatementChange {
    this.#latest = new Version(message, turn, batch, this.#current, none);
    return this.#latest;
  }

  /** Whether there is certainly none. */
  get isNone(): boolean {
    const { message, turn, madeIn } = this.#current;
    return message === null && turn === -1 && madeIn === null;
  }

  /** The client has sent a simple query, which drops the statement, or a Close for it. */
  drop(batch: number): StatementChange {
    this.#latest = new Version(null, -1, batch, this.#current, none);
    return this.#latest;
  }

  /** Whether the server has it in this turn. */
  isOn(turn: number): boolean {
    return this.#current.turn === turn;
  }

  /** The Parse that a server needs before the client can use the statement there; null if there is none. */
  get message(): Buffer | null {
    return this.#current.message;
  }

  /** The proxy sends that Parse. If the server refuses or skips it, the client still has its statement. */
  provide(turn: number, batch: number): StatementChange {
    this.#latest = new Version(this.message, turn, batch, this.#current);
    return this.#latest;
  }

  get #current(): Version {
    while (this.#latest.successor !== null) this.#latest = this.#latest.successor;
    return this.#latest;
  }
}
