/**
 * Token buckets by name, in memory. A bucket holds `capacity` tokens and gets `perSecond` back; taking from an empty
 * one tells how long to wait. Memory is bounded: past `bucketsMax` the one unused for longest is forgotten, which can
 * only be generous, never unjust.
 */
export interface BucketShape {
  readonly capacity: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

export interface TokenBuckets {
  /** Seconds to wait, or 0 when a token was taken. */
  take(name: string, nowMs: number, shape?: BucketShape): number;
  /** Gives back what was taken for something that turned out well. */
  give(name: string): void;
  /** As `take`, without taking. */
  peek(name: string, nowMs: number): number;
  readonly size: number;
}

export function createTokenBuckets(standard: BucketShape, bucketsMax: number): TokenBuckets {
  const buckets = new Map<string, Bucket>();

  const filled = (name: string, nowMs: number, shape: BucketShape): Bucket => {
    const known = buckets.get(name);
    if (known === undefined) return { tokens: shape.capacity, atMs: nowMs };
    // A clock that was set back must not take tokens away.
    const seconds = Math.max(0, nowMs - known.atMs) / 1000;
    return { tokens: Math.min(shape.capacity, known.tokens + seconds * shape.perSecond), atMs: nowMs };
  };

  const waitSeconds = (bucket: Bucket, shape: BucketShape) =>
    bucket.tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / shape.perSecond));

  return {
    take(name, nowMs, shape = standard) {
      const bucket = filled(name, nowMs, shape);
      const wait = waitSeconds(bucket, shape);
      if (wait === 0) bucket.tokens -= 1;
      // Deleting first moves it to the end: a Map keeps the order of insertion.
      buckets.delete(name);
      buckets.set(name, bucket);
      const oldest = buckets.size > bucketsMax ? buckets.keys().next().value : undefined;
      if (oldest !== undefined) buckets.delete(oldest);
      return wait;
    },
    give(name) {
      const bucket = buckets.get(name);
      // Filling up never goes past the capacity, so one token too many would last until the next turn only.
      if (bucket !== undefined) bucket.tokens += 1;
    },
    peek: (name, nowMs) => waitSeconds(filled(name, nowMs, standard), standard),
    get size() {
      return buckets.size;
    },
  };
}
