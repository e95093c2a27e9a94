/**
 * Two APIs, two workers and two proxies on one system database elsewhere. Any of them is killed at any time, and now
 * and then all of them are restarted in turn, under random work, writers on every transport, pooled transactions and
 * requests that are repeated with their key.
 */

import { configurations } from '../chaos/configurations.ts';
import { runEpisode } from '../chaos/episode.ts';
import { allFaults } from '../chaos/faults/all.ts';
import type { Fault } from '../chaos/faults/fault.ts';
import { Tally } from '../chaos/tally.ts';
import type { World } from '../chaos/world.ts';
import type { Ledger } from '../ledger.ts';
import type { Random } from '../random.ts';
import { KeyedLoad } from './keyed-load.ts';
import { PooledLoad } from './pooled-load.ts';
import { rollingRestart } from './rolling-restart.ts';

const kills = ['kill api', 'kill worker', 'kill proxy'];

export interface PiecesOptions {
  readonly random: Random;
  /** The names of faults, in order; `kill` is one of any process. Null when it is over. */
  readonly next: (world: World, struck: number) => 'kill' | 'rolling restart' | null;
  readonly pooledClients: number;
  readonly betweenOperationsMs: number;
  readonly tell: (line: string) => void;
}

export async function runPieces(options: PiecesOptions): Promise<Ledger> {
  const { random, next, tell, betweenOperationsMs } = options;
  const configuration = configurations.find(({ name }) => name === 'two of each');
  if (configuration === undefined) throw new Error('there is no such configuration');
  const tally = new Tally();
  const began = performance.now();
  let load: PooledLoad | undefined;
  let keyed: KeyedLoad | undefined;
  let struck = 0;
  const faultOf = (name: string): Fault => {
    if (name === 'rolling restart' && load !== undefined) return rollingRestart(load);
    const found = allFaults.find((fault) => fault.name === name);
    if (found === undefined) throw new Error(`there is no fault ${name}`);
    return found;
  };
  await runEpisode(
    {
      configuration,
      random,
      tenants: 1,
      nextFault: (world, choices) => {
        const name = next(world, struck++);
        if (name === null) return null;
        return faultOf(name === 'kill' ? choices.pick(kills) : name);
      },
      auditEvery: 20,
      betweenOperationsMs,
      beside: async (world) => {
        const pooled = await PooledLoad.start(world, options.pooledClients);
        const repeated = new KeyedLoad(world);
        [load, keyed] = [pooled, repeated];
        return {
          stop: async () => {
            await repeated.stop();
            world.violations.push(...(await pooled.stop()));
          },
        };
      },
      tell,
    },
    tally,
  );
  const ledger = tally.ledger(random.seed, (performance.now() - began) / 1_000);
  return {
    ...ledger,
    totals: {
      ...ledger.totals,
      'requests repeated with their key until answered': keyed?.made ?? 0,
      'pooled transactions committed': load?.committed ?? 0,
      'pooled clients sent away between transactions': load?.sentAway ?? 0,
      'pooled transactions broken off by kills': (load?.brokenOff ?? 0) - (load?.brokenOffByRestarts ?? 0),
      'pooled transactions broken off by rolling restarts': load?.brokenOffByRestarts ?? 0,
    },
  };
}
