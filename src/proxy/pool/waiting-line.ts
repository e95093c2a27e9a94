/**
 * Those who wait, in the order they came. A Map would do, but for what it costs to find the first of a thousand when
 * all before it have gone.
 */

interface Ticket<T> {
  readonly who: T;
  readonly since: number;
  hasLeft: boolean;
}

/** Tickets of those who have gone are kept until there are so many of them. */
const spentMax = 1_024;

export class WaitingLine<T> {
  readonly #tickets = new Map<T, Ticket<T>>();
  #line: Ticket<T>[] = [];
  #head = 0;

  get size(): number {
    return this.#tickets.size;
  }

  /** Who waits already keeps the place. */
  add(who: T, since: number): void {
    if (this.#tickets.has(who)) return;
    const ticket = { who, since, hasLeft: false };
    this.#tickets.set(who, ticket);
    this.#line.push(ticket);
  }

  remove(who: T): void {
    const ticket = this.#tickets.get(who);
    if (ticket === undefined) return;
    ticket.hasLeft = true;
    this.#tickets.delete(who);
  }

  /** Since when the first has waited; null when nobody waits. */
  get firstSince(): number | null {
    return this.#first()?.since ?? null;
  }

  shift(): T | null {
    const ticket = this.#first();
    if (ticket === null) return null;
    this.#head += 1;
    this.#tickets.delete(ticket.who);
    return ticket.who;
  }

  #first(): Ticket<T> | null {
    while (this.#line[this.#head]?.hasLeft) this.#head += 1;
    if (this.#head === this.#line.length || this.#head > spentMax) {
      this.#line = this.#line.slice(this.#head);
      this.#head = 0;
    }
    return this.#line[this.#head] ?? null;
  }
}
