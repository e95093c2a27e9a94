/** Tenants' servers, or single processes inside them, die or stand still: several at once, each counted. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import { clientBackend, type FoundServer, sendSignal } from '../process-table.ts';
import type { World } from '../world.ts';
import { type Fault, killAll, killServers, pickSome, stopForAWhile } from './fault.ts';

const most = 4;
const hasComputes = (world: World) => world.processes().computes().length > 0;

function insideSome(world: World, title: RegExp, random: Random): number[] {
  const table = world.processes();
  const found = table.computes().flatMap((server) => table.inside(server, title));
  return pickSome(found, most, random).map(({ pid }) => pid);
}

const hasInside = (title: RegExp) => (world: World) => {
  const table = world.processes();
  return table.computes().some((server) => table.inside(server, title).length > 0);
};

const killInside = (what: string, title: RegExp, weight: number): Fault => ({
  name: `kill ${what}`,
  weight,
  isPossible: hasInside(title),
  strike: async (world, random) => killAll(insideSome(world, title, random)),
});

/** The pid file of a killed server names a process that lives, of the same user: the number was given out again. */
async function reusePid(world: World, random: Random): Promise<number> {
  const victim = random.pick(world.processes().computes());
  const { uid } = await stat(victim.dataDirectory);
  const sleeper = spawn('sleep', ['600'], { cwd: '/', stdio: 'ignore', uid, gid: uid });
  await once(sleeper, 'spawn');
  try {
    await nameInPidFile(victim, sleeper);
    await killServers(world, [victim]);
    // Long enough for a start to meet it; the process goes on and says nothing about the server.
    await letRun(random.between(500, 3_000));
    return 1;
  } finally {
    sendSignal(sleeper.pid ?? 0, 'SIGKILL');
  }
}

async function nameInPidFile(victim: FoundServer, other: ChildProcess): Promise<void> {
  const path = join(victim.dataDirectory, 'postmaster.pid');
  const lines = (await readFile(path, 'utf8')).split('\n');
  await writeFile(path, [other.pid, ...lines.slice(1)].join('\n'));
}

export const faultsOfComputes: readonly Fault[] = [
  {
    name: 'kill computes',
    weight: 8,
    isPossible: hasComputes,
    strike: async (world, random) => killServers(world, pickSome(world.processes().computes(), most, random)),
  },
  killInside('sessions of clients', clientBackend, 8),
  killInside('sessions of Catnap in computes', /^postgres: \S+: catnap_admin /, 3),
  killInside('checkpointers', /: checkpointer/, 4),
  killInside('walsenders', /: walsender /, 3),
  killInside('walreceivers', /: walreceiver/, 3),
  killInside('startup processes of replicas', /: startup /, 2),
  {
    name: 'stop computes for a while',
    weight: 4,
    isPossible: hasComputes,
    strike: async (world, random) => {
      const table = world.processes();
      const servers = pickSome(table.computes(), most, random);
      await stopForAWhile(
        servers.flatMap((server) => [server, ...table.childrenOf(server.pid)]).map(({ pid }) => pid),
        random,
      );
      return servers.length;
    },
  },
  {
    name: 'stop sessions of clients for a while',
    weight: 3,
    isPossible: hasInside(clientBackend),
    strike: (world, random) => stopForAWhile(insideSome(world, clientBackend, random), random),
  },
  { name: 'kill a compute whose pid is given out again', weight: 2, isPossible: hasComputes, strike: reusePid },
];
