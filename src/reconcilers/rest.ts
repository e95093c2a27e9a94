/**
 * Lets the loops of an installation rest in which everything sleeps. A notification ends it at once; since one can be
 * lost, what goes on is also looked up every few seconds, for all loops together.
 */
import type { Core } from '../core/context.ts';
import { isAnythingGoingOn } from '../db/going-on.ts';
import { changesChannel, operationsChannel } from '../db/operations.ts';
import { delay } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';

/** Work whose time has come waits for this at most. */
const usualLookMs = 5_000;

export class Rest {
  readonly #core: Core;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  /** Ends the rest of each loop that takes one. */
  readonly #resting = new Set<() => void>();
  #unlisten: (() => Promise<void>)[] = [];
  #looking: Promise<void> | null = null;
  #news = 0;
  #isQuiet = false;
  readonly #onEnd: () => void;
  /** Ends with the last of the turns that wait for each other. */
  #turns: Promise<void> = Promise.resolve();

  /** `onEnd` is called when a rest ends. */
  constructor({ core, log, onEnd = () => {} }: { core: Core; log: Logger; onEnd?: () => void }) {
    this.#core = core;
    this.#log = log;
    this.#onEnd = onEnd;
  }

  /** Nothing went on at the last look, and there was no news since. */
  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  async start(lookMs = usualLookMs): Promise<void> {
    for (const channel of [operationsChannel, changesChannel]) {
      this.#unlisten.push(await this.#core.database.listen(channel, () => this.#end()));
    }
    this.#looking = this.#look(lookMs);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#end();
    await this.#looking;
    await Promise.all(this.#unlisten.map((unlisten) => unlisten()));
  }

  /** A loop reads this before each turn and hands it to `take`: no news may be older than the turn that knew of it. */
  get news(): number {
    return this.#news;
  }

  /** Returns at once while something goes on, or when there was news since the turn; otherwise after `ms`, or then. */
  async take(news: number, ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isQuiet || news !== this.#news || signal.aborted) return;
    const over = new AbortController();
    const end = () => over.abort();
    this.#resting.add(end);
    signal.addEventListener('abort', end, { once: true });
    await delay(ms, over.signal);
    this.#resting.delete(end);
    signal.removeEventListener('abort', end);
  }

  /** Runs one turn of a loop. While all sleeps, turns wait for each other: at once, each would open a connection. */
  async turn(work: () => Promise<void>): Promise<void> {
    if (!this.#isQuiet) return work();
    const before = this.#turns;
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    this.#turns = before.then(() => finished);
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#resting.add(end);
    try {
      await Promise.race([before, ended]);
      await work();
    } finally {
      this.#resting.delete(end);
      finish();
    }
  }

  async #look(lookMs: number): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const news = this.#news;
      try {
        const { database, clock } = this.#core;
        if (await isAnythingGoingOn(database.sql, clock.now())) this.#end();
        else if (news === this.#news && !this.#isQuiet) this.#begin();
      } catch (error) {
        this.#end();
        if (!this.#stopping.signal.aborted) this.#log.warn({ err: error }, 'it could not be read whether all sleeps');
      }
      await delay(lookMs, this.#stopping.signal);
    }
  }

  #begin(): void {
    // Each loop has one more turn, which sees the end of what went on.
    this.#news++;
    this.#isQuiet = true;
  }

  #end(): void {
    this.#news++;
    if (this.#isQuiet) this.#onEnd();
    this.#isQuiet = false;
    for (const end of this.#resting) end();
  }
}
