/** `npm run fuzz`, or `--only=postgres`: the long form of bytes to the ports of clients. */
import { expect, test } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { isAsked, secondsSince } from './parts.ts';
import { fuzzSessions } from './plain-proxy.ts';
import { fuzzProgram } from './program.ts';

const options = proofOptions();
const { seed } = options;
const residentGrowthMbMax = 150;

test.runIf(isAsked(options, 'postgres'))('bytes to the Postgres port, SQL over HTTP and WebSockets', async () => {
  const began = performance.now();
  const minutes = (options.minutes ?? 20) / 2;
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
