/** Catnap's own processes die or stand still, one at a time or all at once. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { eventually, randomMoment } from '../../../helpers/eventually.ts';
import { freePorts } from '../../../helpers/free-ports.ts';
import { makeTempHome } from '../../../helpers/temp-home.ts';
import type { World } from '../world.ts';
import { always, type Fault, killAll, startAgain, stopForAWhile } from './fault.ts';

const entry = fileURLToPath(new URL('../../../../dist/bin.js', import.meta.url));
/** One that is still there by then has begun to work. */
const refusalMsMax = 60_000;
const roles = ['api', 'worker', 'proxy', 'backup'];
const shownAs = (role: string) => (role === 'backup' ? 'uploader' : role);

export const pidsOf = (world: World, role: string) =>
  world
    .processes()
    .roles(world.program.pid, role)
    .map(({ pid }) => pid);

/** Parent, children and the embedded system database. */
function controlPlanePids(world: World): number[] {
  const table = world.processes();
  const system = table.systemServer();
  const children = roles.flatMap((role) => table.roles(world.program.pid, role));
  return [...children, ...(system === undefined ? [] : [system])].map(({ pid }) => pid);
}

/** The parent first, which would start the others again. */
async function killEverything(world: World, others: readonly number[]): Promise<number> {
  const dying = world.program.killHard();
  const killed = await killAll(others);
  await dying;
  return killed + 1;
}

export function killEverythingAndComputes(world: World): Promise<number> {
  const computes = world.processes().computes();
  return killEverything(world, [...controlPlanePids(world), ...computes.map(({ pid }) => pid)]);
}

const ofOneRole = roles.flatMap((role): Fault[] => [
  {
    name: `kill ${shownAs(role)}`,
    weight: 4,
    isPossible: (world) => pidsOf(world, role).length > 0,
    strike: async (world, random) => killAll([random.pick(pidsOf(world, role))]),
  },
  {
    name: `stop ${shownAs(role)} for a while`,
    weight: 2,
    isPossible: (world) => pidsOf(world, role).length > 0,
    strike: (world, random) => stopForAWhile([random.pick(pidsOf(world, role))], random),
  },
]);

const restarts = (['SIGINT', 'SIGTERM'] as const).map(
  (signal): Fault => ({
    name: `${signal} and start`,
    weight: 1,
    isPossible: always,
    strike: async (world) => {
      const code = await world.program.stop(signal);
      if (code !== 0) world.violations.push(`the program ended with ${code} after ${signal}`);
      return 1;
    },
    mend: startAgain,
  }),
);

/** A second one must refuse to run, say why, and leave the first one alone. */
async function startSecond(world: World, home: string, more: NodeJS.ProcessEnv, reason: string): Promise<number> {
  const env = {
    PATH: process.env.PATH,
    CATNAP_HOME: home,
    CATNAP_HTTP_PORT: String(world.program.pgPort),
    CATNAP_PG_PORT: String(world.program.httpPort),
    ...more,
  };
  const { uid } = world.installation;
  const owner = uid === undefined ? {} : { uid, gid: uid };
  const second = spawn(process.execPath, [entry, 'up'], { env, stdio: ['ignore', 'pipe', 'pipe'], ...owner });
  let output = '';
  for (const stream of [second.stdout, second.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk));
  const giveUp = setTimeout(() => second.kill(), refusalMsMax);
  await once(second, 'close');
  clearTimeout(giveUp);
  if (second.exitCode === 0 || !output.includes(reason)) {
    world.violations.push(`a second Catnap was not refused (${second.exitCode}): ${output.slice(-500)}`);
  }
  return 1;
}

/** From a home of its own, with the key that opens what is in the database. */
async function startSecondOnDatabase(world: World): Promise<number> {
  const home = await makeTempHome({ share: inject('sharedBuildsHome') });
  const [httpPort, pgPort] = await freePorts(2);
  const ports = { CATNAP_HTTP_PORT: String(httpPort), CATNAP_PG_PORT: String(pgPort) };
  const url = { CATNAP_DATABASE_URL: world.installation.database?.url };
  try {
    // What Catnap takes for a home of its own, as one that was moved.
    await mkdir(join(home.path, 'projects'));
    await copyFile(join(world.home, 'secret.key'), join(home.path, 'secret.key'));
    return await startSecond(
      world,
      home.path,
      { ...ports, ...url },
      'another Catnap is running on this system database',
    );
  } finally {
    await home.remove();
  }
}

/** Catnap is killed, and its HTTP port is somebody else's when it is started again. */
async function takePort(world: World): Promise<number> {
  await world.program.killHard();
  const squatter = createServer((socket) => socket.destroy());
  // The children of the dead parent have it for a moment.
  await eventually(async () => {
    squatter.listen(world.program.httpPort, '127.0.0.1');
    await once(squatter, 'listening');
  });
  const started = await world.program.start().then(
    () => 'it started all the same',
    (error: Error) => error.message,
  );
  if (!started.includes(String(world.program.httpPort))) {
    world.violations.push(`a start on a taken port does not name the port: ${started.slice(-500)}`);
  }
  squatter.close();
  await once(squatter, 'close');
  return 1;
}

export const faultsOfCatnap: readonly Fault[] = [
  ...ofOneRole,
  ...restarts,
  {
    name: 'kill parent',
    weight: 2,
    isPossible: always,
    strike: (world) => killEverything(world, []),
    mend: startAgain,
  },
  {
    name: 'stop parent for a while',
    weight: 1,
    isPossible: always,
    strike: (world, random) => stopForAWhile([world.program.pid], random),
  },
  {
    name: 'kill everything but computes',
    weight: 1.5,
    isPossible: always,
    strike: (world) => killEverything(world, controlPlanePids(world)),
    mend: startAgain,
  },
  {
    name: 'kill everything and computes',
    weight: 1.5,
    isPossible: always,
    strike: killEverythingAndComputes,
    mend: startAgain,
  },
  {
    name: 'kill Catnap while it starts',
    weight: 1,
    isPossible: always,
    strike: async (world) => {
      await world.program.killHard();
      const starting = world.program.start().catch(() => undefined);
      await randomMoment(4_000);
      await world.program.killHard();
      await starting;
      return 2;
    },
    mend: startAgain,
  },
  {
    name: 'second Catnap on the home',
    weight: 1,
    isPossible: always,
    strike: (world) => startSecond(world, world.home, {}, 'another Catnap is running'),
  },
  {
    name: 'second Catnap on the database',
    weight: 3,
    isPossible: ({ installation }) => installation.database !== null,
    strike: startSecondOnDatabase,
  },
  { name: 'HTTP port taken at a start', weight: 2, isPossible: always, strike: takePort, mend: startAgain },
];
