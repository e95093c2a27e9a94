/**
 * Following what happens in the system database. A notification makes it quick; a poll makes it right, because a
 * notification can be lost. `follow` repeats some work whenever there is news; `followKeys` lets callers wait for news
 * about one key each.
 */
import { delay } from '../lib/clock.ts';
import type { Database } from './client.ts';

type Listens = Pick<Database, 'listen'>;

export interface Followed {
  readonly channels: readonly string[];
  /** The time after a run at which the next one starts without any notification. */
  readonly pollMs: number;
  /** A burst of notifications is one run, this long after the first of them; 0, if not given, runs at once. */
  readonly gatherMs?: number;
  /** Reads everything that is due: what a notification said is not passed on, since another may have been lost. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
}

export interface Follower {
  /** Runs the work at once, or once more if it is running. */
  nudge(): void;
  /** Waits for the run that is under way. */
  stop(): Promise<void>;
}

/** Runs the work now and whenever there is news. Runs never overlap; news that arrives during a run causes another. */
export async function follow(database: Listens, followed: Followed): Promise<Follower> {
  const { channels, pollMs, gatherMs = 0, run, onFailure } = followed;
  const stopping = new AbortController();
  const bell = new Bell();
  const subscriptions = channels.map((channel) => ({ channel, onMessage: () => bell.ring() }));
  const unsubscribe = await subscribe(database, subscriptions);
  const loop = async () => {
    while (!stopping.signal.aborted) {
      bell.reset();
      try {
        await run(stopping.signal);
      } catch (error) {
        onFailure(error);
      }
      const rungAt = await bell.wait(pollMs);
      if (rungAt !== null && gatherMs > 0) await delay(rungAt + gatherMs - performance.now(), stopping.signal);
    }
  };
  const ended = loop();
  return {
    nudge: () => bell.ring(),
    stop: async () => {
      stopping.abort();
      bell.ring();
      await ended;
      await unsubscribe();
    },
  };
}

/** One caller's interest in one key, from when it is made until it is ended. */
export interface Interest<T> {
  /** Resolves after `ms`, or with the first news since the last wait: at once if there was some meanwhile. */
  wait(ms: number): Promise<void>;
  /** What the newest notification about the key said, if it said more than that something changed. */
  readonly told: T | null;
  /** Makes `told` null; the next wait still ends at once if there was news. */
  forgetTold(): void;
  end(): void;
}

export interface KeyFollower<T> {
  interestIn(key: string): Interest<T>;
  close(): Promise<void>;
}

export interface KeyNews<T> {
  readonly key: string;
  readonly told: T | null;
}

/** `channels` names, for each channel, how its payloads are read. Any number of interests in one key may exist. */
export async function followKeys<T = never>(
  database: Listens,
  channels: Readonly<Record<string, (payload: string) => KeyNews<T>>>,
): Promise<KeyFollower<T>> {
  const interests = new Map<string, Set<KeyInterest<T>>>();
  const subscriptions = Object.entries(channels).map(([channel, parse]) => ({
    channel,
    onMessage: (payload: string) => {
      // The subscription was broken, and news about any key may be lost: every caller reads again.
      if (payload === '') {
        for (const ofKey of interests.values()) for (const interest of ofKey) interest.tell(null);
        return;
      }
      const { key, told } = parse(payload);
      for (const interest of interests.get(key) ?? []) interest.tell(told);
    },
  }));
  const unsubscribe = await subscribe(database, subscriptions);
  return {
    interestIn: (key) => {
      const ofKey = interests.get(key) ?? new Set();
      const interest: KeyInterest<T> = new KeyInterest(() => {
        ofKey.delete(interest);
        if (ofKey.size === 0 && interests.get(key) === ofKey) interests.delete(key);
      });
      interests.set(key, ofKey.add(interest));
      return interest;
    },
    close: unsubscribe,
  };
}

class KeyInterest<T> implements Interest<T> {
  readonly end: () => void;
  readonly #bell = new Bell();
  #told: T | null = null;

  constructor(end: () => void) {
    this.end = end;
  }

  get told(): T | null {
    return this.#told;
  }

  forgetTold(): void {
    this.#told = null;
  }

  tell(told: T | null): void {
    if (told !== null) this.#told = told;
    this.#bell.ring();
  }

  async wait(ms: number): Promise<void> {
    await this.#bell.wait(ms);
    this.#bell.reset();
  }
}

/** Ends a wait. A ring while nothing waits is kept for the next wait. */
class Bell {
  #rungAt: number | null = null;
  #waiting = new AbortController();

  ring(): void {
    this.#rungAt ??= performance.now();
    this.#waiting.abort();
  }

  reset(): void {
    this.#rungAt = null;
  }

  /** Returns when it was first rung since the reset; null when the time was up instead. */
  async wait(ms: number): Promise<number | null> {
    if (this.#rungAt === null) {
      this.#waiting = new AbortController();
      await delay(ms, this.#waiting.signal);
    }
    return this.#rungAt;
  }
}

interface Subscription {
  readonly channel: string;
  /** Called with '' too, whenever the subscription is made: something may have been missed. */
  readonly onMessage: (payload: string) => void;
}

/** All of them or none. */
async function subscribe(database: Listens, subscriptions: readonly Subscription[]): Promise<() => Promise<void>> {
  const made: (() => Promise<void>)[] = [];
  const undo = async () => {
    await Promise.all(made.map((unlisten) => unlisten()));
  };
  try {
    for (const { channel, onMessage } of subscriptions) made.push(await database.listen(channel, onMessage));
  } catch (error) {
    await undo().catch(() => {});
    throw error;
  }
  return undo;
}
