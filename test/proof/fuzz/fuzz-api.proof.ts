/** `npm run fuzz`, or `--only=api`: the long form of requests to the API. */
import { expect, test } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { ApiFuzz } from './api.ts';
import { isAsked, secondsSince } from './parts.ts';

const options = proofOptions();
const { seed } = options;
/** A heap that has grown by more than this has kept something of each request. */
const heapGrowthMbMax = 25;

test.runIf(isAsked(options, 'api'))('requests made from the OpenAPI document', async () => {
  const began = performance.now();
  const fuzz = await ApiFuzz.create(seed);
  try {
    const result = await fuzz.run({ seed, count: options.count ?? 60_000, minutes: options.minutes ?? 20 });
    const { requests, operations, statuses, kinds, findings, heapAfterWarmUp, heapAtEnd } = result;
    const failures = [...statuses].filter(([status]) => status >= 500 && status !== 501);
    const totals = {
      requests,
      operations,
      'replies of 5xx (501 left out)': failures.reduce((sum, [, count]) => sum + count, 0),
      findings: findings.length,
      'MB of heap after the warm-up': Math.round(heapAfterWarmUp),
      'MB of heap at the end': Math.round(heapAtEnd),
    };
    const byNumber = [...statuses].sort(([one], [other]) => one - other);
    const tables = [
      { title: 'Requests by kind', columns: ['wrong in', 'requests'], rows: [...kinds] },
      { title: 'Replies by status', columns: ['status', 'replies'], rows: byNumber.map(([s, n]) => [String(s), n]) },
    ];
    keepLedger('fuzz-api', { seed, seconds: secondsSince(began), totals, tables }, options);
    expect(findings).toEqual([]);
    expect(heapAtEnd - heapAfterWarmUp).toBeLessThan(heapGrowthMbMax);
  } finally {
    await fuzz.close();
  }
});
