/** The short form of `npm run pieces`: a rolling restart, and a kill of each kind, from a fixed seed. */
import { expect, it } from 'vitest';
import { Random } from '../random.ts';
import { runPieces } from './run-pieces.ts';

const seed = 20_261_117;
const faults = ['rolling restart', 'kill', 'kill', 'kill'] as const;

it(`two of each lose nothing, restarted in turn and killed (seed ${seed})`, async () => {
  const story: string[] = [];
  const { totals } = await runPieces({
    random: new Random(seed),
    next: (_, struck) => faults[struck] ?? null,
    pooledClients: 3,
    betweenOperationsMs: 1_000,
    tell: (line) => story.push(line),
  });
  expect(totals, story.join('; ')).toMatchObject({ 'rows lost': 0, 'rows doubled': 0, faults: 6 + 3 });
  expect(totals['pooled transactions committed']).toBeGreaterThan(20);
  expect(totals['requests repeated with their key until answered']).toBeGreaterThan(0);
});
