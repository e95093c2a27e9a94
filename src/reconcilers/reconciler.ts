/**
 * A loop that takes no input: each turn compares intent with what is observed and queues what is missing. A turn finds
 * items and then works on them one by one; an item that fails is logged and does not keep the turn from the others.
 * Nothing is retried: the next turn finds the same state.
 */
import { setMaxListeners } from 'node:events';
import type { ComputeDriver } from '../compute/interface/driver.ts';
import type { Core } from '../core/context.ts';
import { delay } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Rest } from './rest.ts';

export interface ReconcilerParts {
  readonly core: Core;
  readonly driver: ComputeDriver;
  readonly log: Logger;
}

export interface Reconciler {
  readonly name: string;
  readonly everyMs: number;
  /** The time between two turns while all sleeps; a minute, if not given. */
  readonly restMs?: number;
  readonly turn: (parts: ReconcilerParts) => Promise<void>;
}

export interface Item {
  /** What the log calls it: mostly an id. */
  readonly subject: string;
  readonly work: () => Promise<unknown>;
}

/** `find` returns what this turn has to do, in the order in which it is done. */
export function makeReconciler(
  name: string,
  everyMs: number,
  find: (parts: ReconcilerParts) => Promise<readonly Item[]>,
): Reconciler {
  const turn = async (parts: ReconcilerParts) => {
    for (const { subject, work } of await find(parts)) {
      try {
        await work();
      } catch (error) {
        parts.log.error({ err: error, subject }, 'a subject could not be handled');
      }
    }
  };
  return { name, everyMs, turn };
}

/** Whether this worker is the one that runs the loops. */
export interface Duty {
  readonly isHeld: boolean;
  untilHeld(signal: AbortSignal): Promise<void>;
}

const usualRestMs = 60_000;

/** A turn comes `everyMs` after the last one, or after what has ended a rest: a wake that did so has the machine. */
export function startReconcilers(
  reconcilers: readonly Reconciler[],
  parts: ReconcilerParts,
  rest: Pick<Rest, 'news' | 'take' | 'turn'>,
  duty: Duty,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  // Every loop listens for the end; without this, Node reports the eleventh as a leak on the terminal.
  setMaxListeners(reconcilers.length, stopping.signal);
  const loops = reconcilers.map(async ({ name, everyMs, restMs = usualRestMs, turn }) => {
    const log = parts.log.child({ reconciler: name });
    while (!stopping.signal.aborted) {
      await duty.untilHeld(stopping.signal);
      if (!duty.isHeld) continue;
      const { news } = rest;
      try {
        await rest.turn(() => turn({ ...parts, log }));
      } catch (error) {
        if (!stopping.signal.aborted) log.error({ err: error }, 'a turn failed');
      }
      if (restMs > everyMs) await rest.take(news, restMs - everyMs, stopping.signal);
      await delay(everyMs, stopping.signal);
    }
  });
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
