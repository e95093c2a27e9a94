/**
 * Follows a set of objects: lists it once, then asks for what has changed since, from the last version that it has
 * seen. A connection that ends is resumed there and nothing is missed; only when the server no longer knows that
 * version is everything listed again, which the caller sees as another `listed`.
 */
import { delay } from '../../../lib/clock.ts';
import { errorOf, isVerdict, type StatusBody } from './api-error.ts';
import type { KubernetesObject } from './objects.ts';
import { type Patience, pauseMs } from './retries.ts';

export type WatchEvent<T> =
  /** Replaces all that was known: an object that is not among these is gone. */
  | { readonly type: 'listed'; readonly objects: readonly T[] }
  /** Made or changed. */
  | { readonly type: 'changed'; readonly object: T }
  /** As it was at its end. */
  | { readonly type: 'removed'; readonly object: T };

export interface WatchSource<T> {
  list(): Promise<{ readonly items: readonly T[]; readonly resourceVersion: string }>;
  lines(query: Readonly<Record<string, string>>, silentMsMax: number): AsyncIterable<unknown>;
}

interface Line {
  readonly type: string;
  readonly object: unknown;
}

/** The server ends each watch after this long, so that one whose network has silently died is noticed, too. */
const watchSeconds = 240;
const silentMsMax = (watchSeconds + 30) * 1_000;

/** Goes on until the signal fires. Fails when the list is refused; waits for a server that is away. */
export async function* watchObjects<T extends KubernetesObject>(
  source: WatchSource<T>,
  patience: Patience,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<T>> {
  let since: string | null = null;
  for (let failures = 0; !signal.aborted; ) {
    try {
      if (since === null) {
        const listing = await source.list();
        since = listing.resourceVersion;
        yield { type: 'listed', objects: listing.items };
      }
      for await (const line of source.lines(queryFrom(since), silentMsMax)) {
        failures = 0;
        const { type, object } = line as Line;
        if (type === 'ERROR') throw errorOf((object as StatusBody).code ?? 500, object);
        since = (object as T).metadata.resourceVersion ?? since;
        if (type === 'DELETED') yield { type: 'removed', object: object as T };
        else if (type !== 'BOOKMARK') yield { type: 'changed', object: object as T };
      }
      // A server that ends every watch at once is not asked in a tight loop.
      await delay(pauseMs(patience, 0), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isVerdict(error, 'expired')) since = null;
      else if (!isVerdict(error, 'retryable')) throw error;
      await delay(pauseMs(patience, failures++), signal);
    }
  }
}

const queryFrom = (resourceVersion: string) => ({
  watch: '1',
  resourceVersion,
  // Versions of a set in which nothing happens stay young enough to be resumed from.
  allowWatchBookmarks: 'true',
  timeoutSeconds: String(watchSeconds),
});
