/** `npm run pieces`: kills of any process until the API has taken enough requests; each tenth is a rolling restart. */
import { expect, it } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { Random } from '../random.ts';
import { runPieces } from './run-pieces.ts';

const usualCount = 500;
const usualMinutes = 60;
const rollingEvery = 10;

it('nothing is lost or doubled, whichever of two of each dies', async () => {
  const options = proofOptions();
  const endsAtMs = Date.now() + (options.minutes ?? usualMinutes) * 60_000;
  const wanted = options.count ?? usualCount;
  const ledger = await runPieces({
    random: new Random(options.seed),
    next: ({ operationCount }, struck) => {
      if (operationCount >= wanted || Date.now() >= endsAtMs) return null;
      return struck % rollingEvery === rollingEvery - 1 ? 'rolling restart' : 'kill';
    },
    pooledClients: 8,
    betweenOperationsMs: 500,
    tell: (line) => process.stdout.write(`pieces: ${line}\n`),
  });
  keepLedger('pieces', ledger, options);
  expect(ledger.totals['rows lost']).toBe(0);
});
