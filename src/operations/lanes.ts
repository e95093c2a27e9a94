/**
 * Who runs operations, and who of them is called when there is something to do. Most lanes take any operation. A few
 * take only those that somebody waits for, so that a wake finds one free however many slow copies are under way; each
 * has a connection of its own, on which all its statements are prepared, and what is sent together is carried out in
 * that order.
 */

import type { Core } from '../core/context.ts';
import type { Database } from '../db/client.ts';
import type { WakeCall } from '../db/wakes.ts';
import { delay } from '../lib/clock.ts';

export interface Lane {
  readonly core: Core;
  readonly urgentOnly: boolean;
}

export function makeLanes(core: Core, concurrency: number, urgent: readonly Database[]): Lane[] {
  return [
    ...Array.from({ length: concurrency }, () => ({ core, urgentOnly: false })),
    ...urgent.map((database) => ({ core: { ...core, database }, urgentOnly: true })),
  ];
}

interface Waiting {
  readonly urgentOnly: boolean;
  readonly called: AbortController;
  call: WakeCall | null;
}

export class Doorbell {
  readonly #waiting: Waiting[] = [];
  #rings = 0;

  /** To be noted before looking for work, and handed to `wait`: what rang in between is not missed. */
  get rings(): number {
    return this.#rings;
  }

  /** Calls one lane, which is enough: whoever finds something to do rings for the next. */
  ring(urgent: boolean, call: WakeCall | null = null): void {
    this.#rings++;
    // The one that worked last: what it needs is at hand.
    const reserved = urgent ? this.#waiting.findLast(({ urgentOnly }) => urgentOnly) : undefined;
    if (reserved !== undefined) reserved.call = call;
    this.#call(reserved ?? this.#waiting.find(({ urgentOnly }) => !urgentOnly));
  }

  /** For when it is not known what has become free. */
  ringForBoth(): void {
    this.ring(false);
    this.#call(this.#waiting.findLast(({ urgentOnly }) => urgentOnly));
  }

  ringForAll(): void {
    for (const waiting of [...this.#waiting]) this.#call(waiting);
  }

  /** What it was called for, if that was told. */
  async wait(lane: Lane, ms: number, rings: number): Promise<WakeCall | null> {
    if (rings !== this.#rings) return null;
    const waiting: Waiting = { urgentOnly: lane.urgentOnly, called: new AbortController(), call: null };
    this.#waiting.push(waiting);
    await delay(ms, waiting.called.signal);
    this.#leave(waiting);
    return waiting.call;
  }

  #call(waiting: Waiting | undefined): void {
    if (waiting === undefined) return;
    this.#leave(waiting);
    waiting.called.abort();
  }

  #leave(waiting: Waiting): void {
    const place = this.#waiting.indexOf(waiting);
    if (place >= 0) this.#waiting.splice(place, 1);
  }
}
