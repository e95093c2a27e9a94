/**
 * The waiters of a pool, first come first served. A Map alone would keep the order too, but finding its first entry
 * gets slow when a thousand entries before it have been deleted.
 */

interface Ticket<T> {
  readonly waiter: T;
  readonly since: number;
  hasLeft: boolean;
}

/** Tickets that have been served stay in the array until there are this many. */
const servedMax = 1_024;

export class WaitingLine<T> {
  readonly #tickets = new Map<T, Ticket<T>>();
  #line: Ticket<T>[] = [];
  /** Tickets before this index have been served. */
  #head = 0;

  get size(): number {
    return this.#tickets.size;
  }

  /** A waiter that is already in the line stays where it is. */
  add(waiter: T, since: number): void {
    if (this.#tickets.has(waiter)) return;
    const ticket = { waiter, since, hasLeft: false };
    this.#tickets.set(waiter, ticket);
    this.#line.push(ticket);
  }

  remove(waiter: T): void {
    const ticket = this.#tickets.get(waiter);
    if (ticket === undefined) return;
    ticket.hasLeft = true;
    this.#tickets.delete(waiter);
  }

  /** Since when the first waiter has been waiting; null when the line is empty. */
  get firstSince(): number | null {
    return this.#first()?.since ?? null;
  }

  /** Removes the first waiter and returns it; null when the line is empty. */
  shift(): T | null {
    const ticket = this.#first();
    if (ticket === null) return null;
    this.#head += 1;
    this.#tickets.delete(ticket.waiter);
    return ticket.waiter;
  }

  /** Removes the waiters that have been waiting since `time` or longer, one by one. */
  *shiftSince(time: number): Generator<T> {
    for (let since = this.firstSince; since !== null && since <= time; since = this.firstSince) {
      const waiter = this.shift();
      if (waiter !== null) yield waiter;
    }
  }

  #first(): Ticket<T> | null {
    while (this.#line[this.#head]?.hasLeft) this.#head += 1;
    if (this.#head === this.#line.length || this.#head > servedMax) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    return this.#line[this.#head] ?? null;
  }
}
