import { describe, expect, it } from 'vitest';
import { planOf } from './plan.ts';
import {
  clampSize,
  maxConnections,
  requireSize,
  resolveSize,
  serverSettings,
  sizes,
  temporaryDiskBytes,
} from './sizing.ts';

const fixed = (cu: number) => ({ minCu: cu, maxCu: cu });

describe('the specification’s table of sizes', () => {
  it.each([
    [0.25, 112],
    [0.5, 225],
    [1, 450],
    [2, 901],
    [3, 1351],
    [4, 1802],
    [5, 2253],
    [6, 2703],
    [7, 3154],
    [8, 3604],
    [9, 4000],
    [16, 4000],
    [38, 4000],
    [56, 4000],
  ])('%d CU has max_connections %d', (cu, connections) => {
    expect(maxConnections(fixed(cu))).toBe(connections);
    expect(serverSettings(fixed(cu)).max_connections).toBe(String(connections));
  });

  it('reckons a range from the smaller of its maximum and eight times its minimum', () => {
    expect(maxConnections({ minCu: 0.25, maxCu: 2 })).toBe(901);
    expect(maxConnections({ minCu: 0.25, maxCu: 16 })).toBe(901);
    expect(maxConnections({ minCu: 1, maxCu: 4 })).toBe(1802);
  });

  it('lists .25, .5, 1 to 16 and even numbers to 56', () => {
    expect(sizes).toHaveLength(2 + 16 + 20);
    expect(sizes.at(-1)).toBe(56);
    expect(sizes).not.toContain(17);
  });

  it('bounds temporary files by the greater of 20 GiB and 15 GiB a CU', () => {
    expect(temporaryDiskBytes(fixed(1))).toBe(20 * 1024 ** 3);
    expect(temporaryDiskBytes({ minCu: 0.25, maxCu: 2 })).toBe(30 * 1024 ** 3);
  });
});

describe('requireSize', () => {
  const scale = planOf('scale');
  it.each([fixed(0.25), fixed(16), fixed(56), { minCu: 0.25, maxCu: 16 }])('takes %o', (size) => {
    expect(() => requireSize(size, scale)).not.toThrow();
  });
  it.each([
    [fixed(0.3), /autoscaling_limit_min_cu must be one of/],
    [fixed(17), /must be one of/],
    [fixed(58), /must be one of/],
    [{ minCu: 2, maxCu: 1 }, /must not be greater/],
    [{ minCu: 8, maxCu: 18 }, /above 16 CU are fixed/],
  ])('refuses %o', (size, message) => {
    expect(() => requireSize(size, scale)).toThrow(message);
  });
  it('knows what a plan allows', () => {
    expect(() => requireSize(fixed(2), planOf('free'))).not.toThrow();
    expect(() => requireSize(fixed(3), planOf('free'))).toThrow(/at most 2 on the plan "free"/);
  });
});

it('resolveSize fills in the bound that is missing', () => {
  expect(resolveSize({}, fixed(1))).toEqual(fixed(1));
  expect(resolveSize({ maxCu: 4 }, fixed(0.25))).toEqual({ minCu: 0.25, maxCu: 4 });
  expect(resolveSize({ minCu: 2 }, fixed(0.25))).toEqual(fixed(2));
  expect(resolveSize({ maxCu: 1 }, fixed(2))).toEqual(fixed(1));
});

it('a smaller plan leaves a compute what it allows', () => {
  expect(clampSize({ minCu: 4, maxCu: 8 }, planOf('free'))).toEqual(fixed(2));
  expect(clampSize({ minCu: 0.25, maxCu: 8 }, planOf('free'))).toEqual({ minCu: 0.25, maxCu: 2 });
  expect(clampSize(fixed(8), planOf('scale'))).toEqual(fixed(8));
});
