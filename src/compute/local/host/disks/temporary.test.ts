import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { newBranchId } from '../../../../lib/ids.ts';
import { Bench, ownerAndDatabase } from '../../../contract/bench.ts';
import type { ComputeObservation } from '../../../interface/driver.ts';
import { dataDirectory } from '../home/layout.ts';
import { makeDiskImage, mountDiskImage, tryDiskImages } from './image.ts';
import { mountsUnder } from './mounts.ts';

const isRoot = process.getuid?.() === 0;
const bound = 16 * 1024 ** 2;
/** A sort of this many rows of 1 kB spills them all. */
const sorted = (rows: number) => `SELECT rpad(i::text, 1000) AS x FROM generate_series(1, ${rows}) i ORDER BY -i`;
const spill = (rows: number) => `SELECT count(x) FROM (${sorted(rows)} OFFSET 1) s`;
const tooMuch = spill(40_000);
const enough = spill(8_000);
/** Keeps 12 MB of temporary files until it is cancelled. */
const holding = `BEGIN; DECLARE c CURSOR FOR ${sorted(12_000)}; FETCH 1 FROM c; SELECT pg_sleep(60)`;
const endHolding = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; DECLARE%'`;

const problem = isRoot ? await tryDiskImages(tmpdir()) : 'only root can mount';
if (problem !== null) process.stderr.write(`NOT TESTED here: disks for temporary files (${problem})\n`);

let subject: LocalSubject;
const benches: Bench[] = [];

beforeAll(async () => {
  subject = await makeLocalSubject(17);
});

afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.driver.removeProject(bench.ref);
  expect(await mountsUnder(subject.config.home)).toEqual([]);
  await eventually(async () => expect(await loopDevices()).toEqual([]));
  expect(await subject.leftovers()).toEqual([]);
});

afterAll(() => subject.close());

async function started(): Promise<{ bench: Bench; running: ComputeObservation }> {
  const bench = new Bench(subject);
  benches.push(bench);
  await bench.createBranch();
  const running = await bench.start(1, { tempDiskBytes: bound });
  await bench.driver.configure(bench.ref, ownerAndDatabase);
  return { bench, running };
}

/** Files of this home that a loop device holds, including deleted ones. */
async function loopDevices(): Promise<string[]> {
  const devices = (await readdir('/sys/block').catch(() => [])).filter((name) => name.startsWith('loop'));
  const files = devices.map((name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => ''));
  return (await Promise.all(files)).filter((file) => file.startsWith(`${subject.config.home}/`));
}

const linkOf = (bench: Bench) =>
  join(dataDirectory(subject.layout.branch(bench.ref.projectId, bench.ref.branchId)), 'base', 'pgsql_tmp');

async function untilHeld(bench: Bench): Promise<void> {
  await eventually(async () => {
    const sizes = (await readdir(linkOf(bench))).map(async (name) => (await stat(join(linkOf(bench), name))).size);
    expect((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)).toBeGreaterThan(11 * 1024 ** 2);
  });
}

describe.skipIf(problem !== null)('a disk for temporary files', () => {
  test('is full for one compute, which goes on, and not for another', async () => {
    const [one, other] = [await started(), await started()];
    const overrun = one.bench.query(one.running, tooMuch);
    await expect(overrun).rejects.toMatchObject({
      code: '53100',
      message: expect.stringContaining('No space left on device'),
    });
    expect(await other.bench.query(other.running, enough)).toEqual([{ count: '7999' }]);
    expect(await one.bench.query(one.running, enough)).toEqual([{ count: '7999' }]);
    await expect(other.bench.query(other.running, tooMuch)).rejects.toMatchObject({ code: '53100' });
    // Freed space has returned to the machine.
    const image = join(subject.layout.endpoint(one.bench.ref.projectId, one.bench.ref.endpointId), 'disk', 'image');
    await eventually(async () => expect((await stat(image)).blocks * 512).toBeLessThan(2 * 1024 ** 2));
  });

  test('is shared by the sessions of a compute', async () => {
    const { bench, running } = await started();
    const held = expect(bench.query(running, holding)).rejects.toThrow();
    await untilHeld(bench);
    await expect(bench.query(running, spill(12_000))).rejects.toMatchObject({ code: '53100' });
    await bench.query(running, endHolding);
    await held;
    expect(await bench.query(running, spill(12_000))).toEqual([{ count: '11999' }]);
  });

  test('goes with the server, and leaves no trace in the data', async () => {
    const { bench } = await started();
    expect(await mountsUnder(subject.config.home)).toHaveLength(1);
    expect(await loopDevices()).toHaveLength(1);
    await bench.driver.suspend(bench.ref, 2);
    const directory = subject.layout.endpoint(bench.ref.projectId, bench.ref.endpointId);
    expect(await mountsUnder(directory)).toEqual([]);
    expect(await readdir(directory)).not.toContain('disk');
    // Nobody waits until it is unmounted.
    await eventually(async () => expect(await mountsUnder(subject.config.home)).toEqual([]));
    await eventually(async () => expect(await loopDevices()).toEqual([]));
    await expect(stat(linkOf(bench))).rejects.toMatchObject({ code: 'ENOENT' });
    await bench.cloneBranch();
  });

  test('is made anew after the server was killed in the middle of a spill', async () => {
    const { bench, running } = await started();
    const held = expect(bench.query(running, holding)).rejects.toThrow();
    await untilHeld(bench);
    subject.kill(running);
    await held;
    const again = await bench.start(2, { tempDiskBytes: bound });
    expect(await mountsUnder(subject.config.home)).toHaveLength(1);
    expect(await readdir(linkOf(bench))).toEqual([]);
    expect(await bench.query(again, enough)).toEqual([{ count: '7999' }]);
  });

  test('of a server that died with Catnap is cleared away at the next start of Catnap', async () => {
    const [dead, alive] = [await started(), await started()];
    subject.kill(dead.running);
    await eventually(async () => expect(await dead.bench.driver.observe(dead.bench.ref)).toMatchObject({ pid: null }));
    await subject.openHost().prepare(17, () => undefined);
    expect(await mountsUnder(subject.config.home)).toHaveLength(1);
    expect(await alive.bench.query(alive.running, enough)).toEqual([{ count: '7999' }]);
    // The branch is asleep, so it can be copied, whatever the dead server left in it.
    await dead.bench.cloneBranch();
  });

  test('that a killed Catnap was trying out is cleared away at the next start of Catnap', async () => {
    const { work } = subject.layout;
    const [unmounted, mounted] = [join(work, '.disk-killed'), join(work, '.disk-killed-later')];
    for (const folder of [unmounted, mounted]) await mkdir(folder);
    const image = join(mounted, 'image');
    await makeDiskImage({ file: image, bytes: 1_048_576, uid: 0 });
    await mountDiskImage(image, join(mounted, 'disk'));
    await subject.openHost().prepare(17, () => undefined);
    expect(await readdir(work)).toEqual([]);
  });

  test('is put where it belongs, whatever the tenant has planted there', async () => {
    const { bench } = await started();
    await bench.driver.suspend(bench.ref, 2);
    const elsewhere = await mkdtemp(join(subject.layout.work, 'elsewhere-'));
    await writeFile(join(elsewhere, 'kept'), '');
    await symlink(elsewhere, linkOf(bench));
    const running = await bench.start(3, { tempDiskBytes: bound });
    await expect(bench.query(running, tooMuch)).rejects.toMatchObject({ code: '53100' });
    await bench.driver.suspend(bench.ref, 4);
    // Now the directory above it: no disk then, and nothing happens behind the link.
    const base = dirname(linkOf(bench));
    await rename(base, `${base}-real`);
    await symlink(`${base}-real`, base);
    const again = await bench.start(5, { tempDiskBytes: bound });
    expect(await mountsUnder(subject.config.home)).toEqual([]);
    await expect(bench.query(again, tooMuch)).rejects.toMatchObject({ code: '53400' });
    expect(await readdir(elsewhere)).toEqual(['kept']);
    await rm(elsewhere, { recursive: true });
  });

  test('moves with its compute to another branch', async () => {
    const { bench } = await started();
    const branchId = newBranchId();
    await bench.createBranch(branchId);
    const moved = await bench.start(2, { branchId, tempDiskBytes: bound });
    await bench.driver.configure({ ...bench.ref, branchId }, ownerAndDatabase);
    await expect(stat(linkOf(bench))).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(bench.query(moved, tooMuch)).rejects.toMatchObject({ code: '53100' });
    await bench.driver.removeBranch({ ...bench.ref, branchId });
    expect(await mountsUnder(subject.config.home)).toEqual([]);
  });
});

describe.skipIf(isRoot)('without root', () => {
  test('each session is bounded', async () => {
    const { bench, running } = await started();
    await expect(bench.query(running, tooMuch)).rejects.toMatchObject({ code: '53400' });
    await expect(bench.query(running, 'SET temp_file_limit = -1')).rejects.toMatchObject({ code: '42501' });
    expect(await bench.query(running, enough)).toEqual([{ count: '7999' }]);
  });
});
