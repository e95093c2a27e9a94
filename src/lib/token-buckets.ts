/**
 * Token buckets by name, in memory. A bucket holds `capacity` tokens and gets `perSecond` back, or all of them at once
 * when `windowMs` have passed since the first was taken; taking from an empty one returns how long to wait. Memory is
 * bounded: past `bucketsMax` the one unused for longest is forgotten, which can only allow too much.
 */
export type BucketShape =
  | { readonly capacity: number; readonly perSecond: number }
  | { readonly capacity: number; readonly windowMs: number };

interface Bucket {
  tokens: number;
  /** Of a steady bucket, when its tokens were counted; of one with a window, when that began. */
  atMs: number;
}

export interface TokenBuckets {
  /** Seconds to wait, or 0 when a token was taken. */
  take(name: string, nowMs: number, shape?: BucketShape): number;
  /** Gives back a token that was taken for something that succeeded. */
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
    const passedMs = Math.max(0, nowMs - known.atMs);
    if ('windowMs' in shape) return passedMs < shape.windowMs ? known : { tokens: shape.capacity, atMs: nowMs };
    const tokens = Math.min(shape.capacity, known.tokens + (passedMs / 1000) * shape.perSecond);
    return { tokens, atMs: nowMs };
  };

  const waitSeconds = ({ tokens, atMs }: Bucket, nowMs: number, shape: BucketShape) => {
    if (tokens >= 1) return 0;
    const seconds = 'windowMs' in shape ? (atMs + shape.windowMs - nowMs) / 1000 : (1 - tokens) / shape.perSecond;
    return Math.max(1, Math.ceil(seconds));
  };

  return {
    take(name, nowMs, shape = standard) {
      const bucket = filled(name, nowMs, shape);
      const wait = waitSeconds(bucket, nowMs, shape);
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
      // Filling up never goes past the capacity, so one token too many would last only until the next take.
      if (bucket !== undefined) bucket.tokens += 1;
    },
    peek: (name, nowMs) => waitSeconds(filled(name, nowMs, standard), nowMs, standard),
    get size() {
      return buckets.size;
    },
  };
}
