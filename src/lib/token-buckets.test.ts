import { expect, test } from 'vitest';
import { createTokenBuckets } from './token-buckets.ts';

test('remember a bounded number of names, and forget the one unused for longest', () => {
  const buckets = createTokenBuckets({ capacity: 1, perSecond: 0.1 }, 2);
  expect(buckets.take('a', 0)).toBe(0);
  expect(buckets.take('b', 0)).toBe(0);
  expect(buckets.take('a', 0)).toBe(10);
  expect(buckets.take('c', 0)).toBe(0);
  expect(buckets.size).toBe(2);
  expect(buckets.peek('b', 0)).toBe(0);
  expect(buckets.peek('a', 0)).toBe(10);
});

test('a clock that is set back takes nothing away', () => {
  const buckets = createTokenBuckets({ capacity: 2, perSecond: 1 }, 10);
  expect(buckets.take('a', 10_000)).toBe(0);
  expect(buckets.take('a', 0)).toBe(0);
  expect(buckets.take('a', 0)).toBe(1);
});

test('one with a window is full again when that is over, and not before', () => {
  const buckets = createTokenBuckets({ capacity: 2, windowMs: 60_000 }, 10);
  expect(buckets.take('a', 0)).toBe(0);
  expect(buckets.take('a', 50_000)).toBe(0);
  expect(buckets.take('a', 59_999)).toBe(1);
  expect(buckets.peek('a', 58_000)).toBe(2);
  expect(buckets.peek('a', 60_000)).toBe(0);
  expect([buckets.take('a', 60_000), buckets.take('a', 60_000), buckets.take('a', 60_000)]).toEqual([0, 0, 60]);
});
