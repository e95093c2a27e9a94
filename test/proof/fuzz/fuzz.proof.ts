/** `npm run fuzz`: the long form. `--only=api` and `--only=postgres` run one of its parts. */
import { expect, test } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { ApiFuzz } from './api.ts';
import { fuzzSessions } from './plain-proxy.ts';
import { fuzzProgram } from './program.ts';

const options = proofOptions();
const { seed } = options;
const isAsked = (part: string) => options.only.length === 0 || options.only.includes(part);
const secondsSince = (began: number) => Math.round((performance.now() - began) / 1_000);
/** A heap that has grown by more than this has kept something of each request. */
const heapGrowthMbMax = 25;
const residentGrowthMbMax = 150;

test.runIf(isAsked('api'))('requests made from the OpenAPI document', async () => {
  const began = performance.now();
  const fuzz = await ApiFuzz.create(seed);
  try {
    const result = await fuzz.run({ seed, count: options.count ?? 60_000, minutes: options.minutes ?? 15 });
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

test.runIf(isAsked('postgres'))('bytes to the Postgres port, SQL over HTTP and WebSockets', async () => {
  const began = performance.now();
  const minutes = (options.minutes ?? 10) / 2;
  // A round of the first has about eight inputs, one of the second about thirty.
  const count = options.count ?? 40_000;
  const sessions = await fuzzSessions({ seed, rounds: Math.ceil(count / 2 / 8), minutes });
  const program = await fuzzProgram({ seed, rounds: Math.ceil(count / 2 / 33), minutes });
  const inputs = [...Object.values(sessions.counts), ...Object.values(program.counts)].reduce((a, b) => a + b, 0);
  const findings = [...sessions.findings, ...program.findings];
  const totals = {
    inputs,
    findings: findings.length,
    'transactions left open': sessions.leftTransactions,
    'MB of the proxy after the warm-up': Math.round(program.proxyMbAfterWarmUp),
    'MB of the proxy at the end': Math.round(program.proxyMbAtEnd),
  };
  const rows = (counts: Readonly<Record<string, number>>) => Object.entries(counts);
  const tables = [
    { title: 'Beside a plain server', columns: ['inputs', 'count'], rows: rows(sessions.counts) },
    { title: 'At a whole Catnap', columns: ['inputs', 'count'], rows: rows(program.counts) },
  ];
  keepLedger('fuzz-postgres', { seed, seconds: secondsSince(began), totals, tables }, options);
  expect(findings).toEqual([]);
  expect(sessions.leftTransactions).toBe(0);
  expect(program.proxyMbAtEnd - program.proxyMbAfterWarmUp).toBeLessThan(residentGrowthMbMax);
});
