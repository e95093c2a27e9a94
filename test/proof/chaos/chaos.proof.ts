/**
 * `npm run chaos`: episodes in configurations that the seed chooses, until there were enough faults or the time is
 * over. `--only` names configurations (`--only="two proxies"`) or faults (`--only="kill api"`).
 */
import { expect, it } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { Random } from '../random.ts';
import { configurations } from './configurations.ts';
import { runEpisode } from './episode.ts';
import { allFaults, pickFault } from './faults/all.ts';
import { Tally } from './tally.ts';

const usualCount = 1_000;
const usualMinutes = 60;
const faultsOfEpisode = 25;

it('nothing is lost, doubled or left behind, whatever dies', async () => {
  const options = proofOptions();
  const tell = (line: string) => process.stdout.write(`chaos: ${line}\n`);
  const random = new Random(options.seed);
  const began = performance.now();
  const endsAtMs = Date.now() + (options.minutes ?? usualMinutes) * 60_000;
  const wanted = options.count ?? usualCount;
  const chosen = <T extends { name: string }>(all: readonly T[]) => {
    const named = all.filter(({ name }) => options.only.includes(name));
    return named.length > 0 ? named : all;
  };
  const possible = [];
  for (const configuration of chosen(configurations)) {
    const reason = await configuration.whyNot();
    if (reason === null) possible.push(configuration);
    else tell(`not tried: ${configuration.name} (${reason})`);
  }
  const first = random.below(possible.length);
  const tally = new Tally();
  for (let episode = 0; tally.faultCount < wanted && Date.now() < endsAtMs; episode++) {
    // In turn, so that each is tried; the seed decides which is first, and what happens in them.
    const configuration = possible[(first + episode) % possible.length];
    if (configuration === undefined) throw new Error('no configuration can be had here');
    const own = random.fork();
    tell(`episode ${episode}, ${configuration.name}, seed ${own.seed}; ${tally.faultCount} faults so far`);
    await runEpisode(
      {
        configuration,
        random: own,
        tenants: 1,
        nextFault: (world, choices) => {
          const isOver = tally.ofEpisode >= faultsOfEpisode || tally.faultCount >= wanted || Date.now() >= endsAtMs;
          return isOver ? null : pickFault(world, chosen(allFaults), choices);
        },
        auditEvery: 8,
        betweenOperationsMs: 1_000,
        tell,
      },
      tally,
    );
  }
  keepLedger('chaos', tally.ledger(options.seed, (performance.now() - began) / 1_000), options);
  expect(tally.faultCount).toBeGreaterThan(0);
});
