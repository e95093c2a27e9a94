/** The short form of `npm run chaos`: one episode from a fixed seed, with a fault of each kind that is quick. */
import { expect, it } from 'vitest';
import { Random } from '../random.ts';
import { configurations } from './configurations.ts';
import { runEpisode } from './episode.ts';
import { allFaults } from './faults/all.ts';
import { Tally } from './tally.ts';

const seed = 20_261_116;
const kinds = [
  'kill computes',
  'kill sessions of clients',
  'kill api',
  'kill worker',
  'kill proxy',
  'kill system database',
  'kill everything and computes',
];

it(`an episode of ${kinds.length} faults loses nothing and leaves nothing (seed ${seed})`, async () => {
  const [configuration] = configurations;
  if (configuration === undefined) throw new Error('there is no configuration');
  const faults = kinds.flatMap((kind) => allFaults.filter(({ name }) => name === kind));
  expect(faults.map(({ name }) => name)).toEqual(kinds);
  const tally = new Tally();
  const story: string[] = [];
  await runEpisode(
    {
      configuration,
      random: new Random(seed),
      tenants: 1,
      nextFault: () => faults.shift() ?? null,
      auditEvery: Number.POSITIVE_INFINITY,
      betweenOperationsMs: 1_000,
      tell: (line) => story.push(line),
    },
    tally,
  );
  const { totals } = tally.ledger(seed, 0);
  expect(totals, story.join('; ')).toMatchObject({ episodes: 1, 'rows lost': 0, 'rows doubled': 0 });
  expect(totals['acknowledged rows']).toBeGreaterThan(kinds.length);
  expect(tally.faultCount).toBeGreaterThanOrEqual(kinds.length);
});
