/** The short form of `npm run fuzz`, with a fixed seed. */
import { expect, test } from 'vitest';
import { ApiFuzz } from './api.ts';
import { fuzzSessions } from './plain-proxy.ts';

const seed = 17;
const minutes = 5;

test('requests made from the OpenAPI document get replies as published, and no failure', async () => {
  const fuzz = await ApiFuzz.create(seed);
  try {
    const { requests, findings } = await fuzz.run({ seed, count: 200, minutes });
    expect(findings).toEqual([]);
    expect(requests).toBeGreaterThan(0);
  } finally {
    await fuzz.close();
  }
});

test('pooled and direct sessions answer as a plain server does, whatever they are sent', async () => {
  const { findings, leftTransactions, counts } = await fuzzSessions({ seed, rounds: 12, minutes });
  expect(findings).toEqual([]);
  expect(leftTransactions).toBe(0);
  expect(counts.compared).toBeGreaterThan(0);
});
