import { expect, test } from 'vitest';
import { ProcessRegistry } from './process-metrics.ts';

test('the first scrape has the figures of the process, and a delay of its event loop that can be', async () => {
  const registry = new ProcessRegistry('test_');
  const text = await registry.metrics();
  expect(text).toContain('test_process_cpu_seconds_total');
  const least = Number(/^test_nodejs_eventloop_lag_min_seconds (\S+)$/m.exec(text)?.[1]);
  expect(least).toBeLessThan(performance.now());
  expect(await registry.getMetricsAsJSON()).not.toHaveLength(0);
});

test('nothing is followed before somebody asks', () => {
  expect(new ProcessRegistry().getMetricsAsArray()).toEqual([]);
});
