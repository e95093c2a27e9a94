/** The page of the benchmarks' figures: targets are judged, lines of three points have an exponent. */
import { expect, test } from 'vitest';
import { renderPerformance } from '../scripts/render-performance.mjs';
import { fitPower } from '../scripts/render-plot.mjs';
import { renderScaling } from '../scripts/render-scaling.mjs';

const spread = (median: number) => ({ median, min: median / 2, max: median * 2, n: 5 });
const ledger = {
  name: 'proxy',
  busy: false,
  date: '2026-01-02',
  commit: 'abcdef0',
  machine: '2 arm64 cores, 24 GiB',
  loadBefore: 0.1,
};
const rate = { unit: '/s', beside: 'PgBouncer', peer: spread(1_000), atLeast: 0.95 };

test('a target is of the ratio where there is a peer, and a missed one says why', () => {
  const measures = [
    { ...rate, what: 'fast', ours: spread(990), ratio: spread(0.99) },
    { ...rate, what: 'slow', ours: spread(500), ratio: spread(0.5) },
    { what: 'start', unit: 'ms', ours: spread(120), atMost: 150 },
  ];
  const reasons = { 'proxy: slow': 'it sleeps' };
  const { page } = renderPerformance({ ledgers: [{ ...ledger, measures }], reasons });
  expect(page).toContain('2 of 3 are met on a quiet machine.');
  expect(page).toContain('| slow | 0.5 (0.25–1) |  | ≥ 0.95 | it sleeps |');
  expect(page).toContain('| start | 120 (60–240) ms |  |  | 5 | ≤ 150 ms met |');
});

test('the figures of a machine at work stand beside those of a quiet one', () => {
  const measures = [{ ...rate, what: 'fast', ours: spread(990), ratio: spread(0.99) }];
  const busy = { ...ledger, busy: true, measures: [{ ...rate, what: 'fast', ours: spread(800), ratio: spread(0.8) }] };
  const { page } = renderPerformance({ ledgers: [{ ...ledger, measures }, busy], reasons: {} });
  expect(page).toContain('| fast | 0.99 (0.495–1.98) | 0.8 (0.4–1.6) | ≥ 0.95 |  |');
});

test('three points of one line make a picture with an exponent', () => {
  const measures = [1, 10, 100].map((at) => ({ what: 'get', at, of: 'computes', unit: 'ms', ours: spread(at ** 0.5) }));
  const { page, pictures } = renderPerformance({ ledgers: [{ ...ledger, measures }], reasons: {} });
  expect(page).toContain('| get | 0.50 |');
  expect([...pictures.keys()]).toEqual(['performance-proxy.svg']);
  expect(pictures.get('performance-proxy.svg')?.match(/<circle/g)).toHaveLength(4);
});

test('the exponent is that of the power law', () => {
  expect(fitPower([1, 2, 3].map((x) => [x, 5 * x ** 2]))).toBeCloseTo(2);
  expect(fitPower([1, 10, 100].map((x) => [x, 7]))).toBeCloseTo(0);
});

test('a ledger without a chapter is refused', () => {
  expect(() => renderPerformance({ ledgers: [{ ...ledger, name: 'other', measures: [] }], reasons: {} })).toThrow(
    'docs/performance/other.json belongs to no chapter',
  );
});

test('half of a core, less what ticks anyway, carries so many of each', () => {
  const used = (thing: string, ms: number, log: number) => [
    { what: `system database, ${thing}: busy`, unit: 'ms', ours: spread(ms) },
    { what: `system database, ${thing}: transactions`, unit: '×', ours: spread(2) },
    { what: `system database, ${thing}: rows read`, unit: '×', ours: spread(30) },
    { what: `system database, ${thing}: log written`, unit: 'bytes', ours: spread(log) },
  ];
  const measures = [
    ...used('at rest, each second', 100, 0),
    ...used('API: get a compute', 4, 5_000),
    ...used('API: list 20 projects', 0.5, 5_000),
    ...[10, 1_000].map((at) => ({ what: 'get', at, of: 'computes', unit: 'ms', ours: spread(7) })),
  ];
  const page = renderScaling([{ ...ledger, name: 'scale', measures }]);
  expect(page).toContain('| API: get a compute | 4 ms | 2 | 30 | 5 kB |');
  expect(page).toContain('| API: get a compute | 100 a second | 500 kB a second |');
  // It takes so little that something else is full before.
  expect(page?.match(/\| API: list 20 projects/g)).toHaveLength(1);
  expect(page).toContain('| get, ms | 7 | 7 | 0.00 |');
  expect(renderScaling([{ ...ledger, measures }])).toBeNull();
});
