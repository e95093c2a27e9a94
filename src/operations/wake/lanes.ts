/**
 * The lanes in which a worker runs operations, and the bell that calls one of them when there is work. Most lanes take
 * any operation. A few take only urgent ones, so that a wake finds a lane free however many slow copies are under way;
 * each of these has a connection of its own, on which all its statements are prepared, and statements that are sent
 * together are carried out in that order.
 */

import type { Core } from '../../core/context.ts';
import type { Database } from '../../db/client.ts';
import type { WakeCall } from '../../db/wakes.ts';
import { delay } from '../../lib/clock.ts';

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

interface IdleLane {
  readonly urgentOnly: boolean;
  readonly called: AbortController;
  call: WakeCall | null;
}

export class Doorbell {
  readonly #idle: IdleLane[] = [];
  #rings = 0;

  /** A lane reads this before it claims work and hands it to `wait`, so that it misses no ring in between. */
  get rings(): number {
    return this.#rings;
  }

  /** Calls one lane, which is enough: a lane that finds something to do rings for the next. */
  ring(urgent: boolean, call: WakeCall | null = null): void {
    this.#rings++;
    // The one that worked last: its connection and caches are warm.
    const reserved = urgent ? this.#idle.findLast(({ urgentOnly }) => urgentOnly) : undefined;
    if (reserved !== undefined) reserved.call = call;
    this.#call(reserved ?? this.#idle.find(({ urgentOnly }) => !urgentOnly));
  }

  /** For news that does not say whether urgent work has become due. */
  ringForBoth(): void {
    this.ring(false);
    this.#call(this.#idle.findLast(({ urgentOnly }) => urgentOnly));
  }

  ringForAll(): void {
    for (const idle of [...this.#idle]) this.#call(idle);
  }

  /** Returns what the lane was called for, if the ring named it. */
  async wait(lane: Lane, ms: number, rings: number): Promise<WakeCall | null> {
    if (rings !== this.#rings) return null;
    const idle: IdleLane = { urgentOnly: lane.urgentOnly, called: new AbortController(), call: null };
    this.#idle.push(idle);
    await delay(ms, idle.called.signal);
    this.#leave(idle);
    return idle.call;
  }

  #call(lane: IdleLane | undefined): void {
    if (lane === undefined) return;
    this.#leave(lane);
    lane.called.abort();
  }

  #leave(lane: IdleLane): void {
    const index = this.#idle.indexOf(lane);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}
