/** The system database dies, stands still, or somebody holds a lock that everybody needs. */

import { connect } from '../../../../src/db/client.ts';
import { systemDatabaseOptions } from '../../../../src/machine/system-database.ts';
import { letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import { type FoundProcess, type FoundServer, systemBackend } from '../process-table.ts';
import type { World } from '../world.ts';
import { type Fault, killAll, killServers, pickSome, stopForAWhile } from './fault.ts';

/** One, or none if it is elsewhere. */
function systemServers(world: World): FoundServer[] {
  const server = world.processes().systemServer();
  return server === undefined ? [] : [server];
}

const isEmbedded = (world: World) => systemServers(world).length > 0;

function processesOf(world: World, title: RegExp): FoundProcess[] {
  const table = world.processes();
  const server = table.systemServer();
  return server === undefined ? [] : table.inside(server, title);
}

const pids = (found: readonly FoundProcess[]) => found.map(({ pid }) => pid);

/** Tables that nearly every request and every operation reads. */
const busyTables = ['operations', 'endpoints', 'projects', 'branches', 'api_keys'];

async function holdLock(world: World, random: Random): Promise<number> {
  const databaseUrl = world.installation.database?.url;
  const sql = connect(await systemDatabaseOptions({ home: world.home, databaseUrl }), 1, 'chaos');
  try {
    await sql.begin(async (tx) => {
      await tx.unsafe(`lock table ${random.pick(busyTables)} in access exclusive mode`);
      await letRun(random.between(500, 5_000));
    });
    return 1;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

function throughNetwork(name: string, act: 'cut' | 'holdUp'): Fault {
  return {
    name,
    weight: 4,
    isPossible: (world) => world.installation.database !== null,
    strike: async (world, random) => {
      world.installation.database?.[act]();
      await letRun(random.between(100, 4_000));
      world.installation.database?.mend();
      return 1;
    },
  };
}

export const faultsOfSystemDatabase: readonly Fault[] = [
  {
    name: 'kill system database',
    weight: 2,
    isPossible: isEmbedded,
    strike: (world) => killServers(world, systemServers(world)),
  },
  {
    name: 'kill sessions of the system database',
    weight: 2,
    isPossible: isEmbedded,
    strike: async (world, random) => killAll(pids(pickSome(processesOf(world, systemBackend), 3, random))),
  },
  {
    name: 'stop system database for a while',
    weight: 2,
    isPossible: isEmbedded,
    strike: (world, random) => {
      const postmaster = world.processes().systemServer();
      return stopForAWhile(
        pids([...(postmaster === undefined ? [] : [postmaster]), ...processesOf(world, /./)]),
        random,
      );
    },
  },
  {
    name: 'stop sessions of the system database for a while',
    weight: 2,
    isPossible: isEmbedded,
    strike: (world, random) => stopForAWhile(pids(pickSome(processesOf(world, systemBackend), 5, random)), random),
  },
  { name: 'lock a table of the system database', weight: 2, isPossible: () => true, strike: holdLock },
  throughNetwork('break connections to the database elsewhere', 'cut'),
  throughNetwork('hold up connections to the database elsewhere', 'holdUp'),
];
