/**
 * The lanes in which a worker runs operations, and the bell that calls one of them when there is work. Most lanes take
 * any operation. A few take only urgent ones, so that a wake finds a lane free however many slow copies are under way;
 * each of these has a connection of its own, on which all its statements are prepared, and statements that are sent
 * together are carried out in that order.
 */

import type { Core } from '../../core/context.ts';
import type { Database } from '../../db/client.ts';
import type { WakeCall } from '../../db/wakes.ts';

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

/** Shorter than such a connection is kept open without use. */
const warmMs = 30_000;

/**
 * A connection that one ordinary lane at a time has for itself. A pool takes its connections in turn, and on each of
 * them every statement would be parsed and planned anew; here an operation finds all of them prepared by the one before
 * it. A lane that comes meanwhile uses the pool, so that no operation waits for the locks of another.
 */
export class OwnConnection {
  readonly core: Core;
  #isTaken = false;
  #usedAt = Number.NEGATIVE_INFINITY;

  constructor(core: Core, database: Database) {
    this.core = { ...core, database };
  }

  /** Null when another lane has it. The lane gives it back when its operation has ended. */
  take(): this | null {
    if (this.#isTaken) return null;
    this.#isTaken = true;
    return this;
  }

  /** Otherwise its next use would have to connect first: a lane that only looks for work should not do that. */
  get isWarm(): boolean {
    return performance.now() - this.#usedAt < warmMs;
  }

  giveBack(wasUsed: boolean): void {
    this.#isTaken = false;
    if (wasUsed) this.#usedAt = performance.now();
  }
}

interface IdleLane {
  readonly urgentOnly: boolean;
  readonly wake: () => void;
  call: WakeCall | null;
  /** Of the idle lanes of a kind one has it, and looks again by itself: all of them would ask the same at once. */
  timer: NodeJS.Timeout | null;
  readonly ms: number;
  /** When its timer ends. */
  until: number;
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

  /**
   * Returns what the lane was called for, if the ring named it. Of the idle lanes of a kind only one returns by itself,
   * after `ms`: that which came last, unless another was to wait much shorter. When it has left, another one does.
   */
  async wait(lane: Lane, ms: number, rings: number): Promise<WakeCall | null> {
    if (rings !== this.#rings) return null;
    return new Promise((resolve) => {
      const { urgentOnly } = lane;
      const until = performance.now() + ms;
      const idle: IdleLane = { urgentOnly, call: null, timer: null, ms, until, wake: () => resolve(idle.call) };
      const sentry = this.#sentryOf(urgentOnly);
      this.#idle.push(idle);
      // One that has just looked goes on looking, so that the sessions of the others may close.
      if (sentry !== undefined && sentry.until <= until - ms / 2) return;
      if (sentry !== undefined) disarm(sentry);
      this.#arm(idle);
    });
  }

  #call(lane: IdleLane | undefined): void {
    if (lane === undefined) return;
    const index = this.#idle.indexOf(lane);
    if (index >= 0) this.#idle.splice(index, 1);
    const wasSentry = lane.timer !== null;
    disarm(lane);
    lane.wake();
    const next = this.#idle.findLast(({ urgentOnly }) => urgentOnly === lane.urgentOnly);
    if (wasSentry && next !== undefined) this.#arm(next);
  }

  #sentryOf(urgentOnly: boolean): IdleLane | undefined {
    return this.#idle.find((idle) => idle.urgentOnly === urgentOnly && idle.timer !== null);
  }

  #arm(lane: IdleLane): void {
    lane.until = performance.now() + lane.ms;
    lane.timer = setTimeout(() => this.#call(lane), lane.ms);
  }
}

function disarm(lane: IdleLane): void {
  if (lane.timer !== null) clearTimeout(lane.timer);
  lane.timer = null;
}
