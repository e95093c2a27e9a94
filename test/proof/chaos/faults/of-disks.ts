/** The home’s disk is full, hangs or takes no writes, or the server program cannot be run. */
import { chmod, mkdir, readdir, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { unmountUnder } from '../../../../src/compute/local/host/disks/mounts.ts';
import { runProgram } from '../../../../src/lib/run-program.ts';
import { eventually, letRun } from '../../../helpers/eventually.ts';
import type { Random } from '../../random.ts';
import type { World } from '../world.ts';
import { type Fault, killServers, pickSome, startAgain } from './fault.ts';
import { killEverythingAndComputes } from './of-catnap.ts';

const hasDisk = (world: World) => world.installation.disk !== null;
const diskOf = (world: World) => world.installation.disk?.path ?? '';

const mebibyte = 1024 ** 2;

async function freeBytes(world: World): Promise<number> {
  const { bsize, bavail } = await statfs(diskOf(world));
  return bsize * bavail;
}

/** In pieces that become smaller: the last of the room is needed to keep account of what is taken. */
async function takeAllRoom(world: World, folder: string): Promise<void> {
  for (let piece = await freeBytes(world), n = 0; piece >= mebibyte; n++) {
    const isTaken = await runProgram('fallocate', ['-l', String(piece), join(folder, String(n))]).then(
      () => true,
      () => false,
    );
    piece = isTaken ? await freeBytes(world) : Math.floor(piece / 2);
  }
}

/** Meanwhile the API answers, and what is deleted is gone: that is the way out. */
async function fill(world: World, random: Random): Promise<number> {
  const spare = await world.call('POST', '/projects', { project: { name: 'to be deleted on a full disk' } });
  const folder = join(diskOf(world), 'taken');
  await mkdir(folder);
  try {
    await takeAllRoom(world, folder);
    if ((await freeBytes(world)) >= mebibyte) return 0;
    await letRun(random.between(1_000, 6_000));
    await world.get('/projects?limit=1');
    if (spare?.status === 201) await remove(world, spare.body.project.id);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return 1;
}

const remove = (world: World, projectId: string) =>
  eventually(async () => {
    const reply = await world.call('DELETE', `/projects/${projectId}`);
    if (reply?.status !== 200 && reply?.status !== 404) throw new Error(`no deletion on a full disk: ${reply?.status}`);
  });

async function freeze(world: World, random: Random): Promise<number> {
  await runProgram('/usr/sbin/fsfreeze', ['-f', diskOf(world)]);
  try {
    await letRun(random.between(500, 4_000));
  } finally {
    await runProgram('/usr/sbin/fsfreeze', ['-u', diskOf(world)]);
  }
  return 1;
}

/** For everything that is opened by its path; servers that run go on with the files that they have. */
async function makeReadOnly(world: World, random: Random): Promise<number> {
  await runProgram('mount', ['--rbind', world.home, world.home]);
  try {
    await runProgram('mount', ['-o', 'remount,ro,bind', world.home]);
    await letRun(random.between(500, 3_000));
    return 1;
  } catch (error) {
    // Somebody has opened a file for writing since the line above.
    if (/is busy/.test(String(error))) return 0;
    throw error;
  } finally {
    await runProgram('umount', ['-l', world.home]);
  }
}

/** No directory can be made where branches and their data go. */
async function refuseDirectories(world: World, random: Random): Promise<number> {
  const folders = world.tenants.flatMap(({ projectId }) =>
    ['branches', 'endpoints'].map((name) => join(world.home, 'projects', projectId, name)),
  );
  try {
    await runProgram('/usr/bin/chattr', ['+i', ...folders, join(world.home, 'work')]);
    await letRun(random.between(500, 4_000));
  } finally {
    await runProgram('/usr/bin/chattr', ['-i', ...folders, join(world.home, 'work')]);
  }
  return 1;
}

/** Only where the builds belong to this home alone. */
async function forbidServerProgram(world: World, random: Random): Promise<number> {
  const builds = join(world.home, 'builds');
  const found = (await readdir(builds, { recursive: true })).filter((path) => path.endsWith('/bin/postgres'));
  try {
    for (const path of found) await chmod(join(builds, path), 0o600);
    const killed = await killServers(world, pickSome(world.processes().computes(), 2, random));
    await letRun(random.between(500, 3_000));
    return killed;
  } finally {
    for (const path of found) await chmod(join(builds, path), 0o755);
  }
}

/** As after the machine itself has started again. */
async function killAndUnmount(world: World): Promise<number> {
  const killed = await killEverythingAndComputes(world);
  await unmountUnder(world.home);
  return killed;
}

export const faultsOfDisks: readonly Fault[] = [
  { name: 'full disk', weight: 3, isPossible: hasDisk, strike: fill },
  { name: 'disk that hangs for a while', weight: 3, isPossible: hasDisk, strike: freeze },
  { name: 'directories cannot be made for a while', weight: 3, isPossible: hasDisk, strike: refuseDirectories },
  {
    name: 'read-only home for a while',
    weight: 1.5,
    isPossible: ({ installation }) => installation.isRoot,
    strike: makeReadOnly,
  },
  {
    name: 'kill everything and unmount its storage',
    weight: 3,
    isPossible: ({ home, installation }) => installation.root !== home,
    strike: killAndUnmount,
    mend: startAgain,
  },
  {
    name: 'server program cannot be run for a while',
    weight: 4,
    isPossible: ({ installation }) => installation.uid !== undefined,
    strike: forbidServerProgram,
  },
];
