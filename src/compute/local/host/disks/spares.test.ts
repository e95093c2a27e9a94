import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { makeDiskImage, mountDiskImage, tryDiskImages } from './image.ts';
import { mountsUnder, unmountUnder } from './mounts.ts';
import { imageName, pointName, SpareDisks } from './spares.ts';

const bytes = 16 * 1024 ** 2;
const tenant = 70_001;
const hour = 3_600_000;
const problem = process.getuid?.() === 0 ? await tryDiskImages(tmpdir()) : 'only root can mount';

let folder: string;
let work: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-spare-disks-'));
  work = join(folder, 'work');
  await mkdir(work);
});
afterAll(async () => {
  await unmountUnder(folder);
  await rm(folder, { recursive: true });
});

describe.skipIf(problem !== null)('disks made ahead of time', () => {
  test('the first start has none, the next one of its size takes one that is mounted, and the end leaves none', async () => {
    const spares = new SpareDisks(work, 2, 50);
    expect(spares.take(join(folder, 'first'), tenant, bytes)).toBe(false);
    await eventually(async () => expect(await mountsUnder(work)).toHaveLength(2));
    expect((await mountsUnder(work)).every((point) => spares.owns(point))).toBe(true);
    expect(spares.take(join(folder, 'other'), tenant, 2 * bytes)).toBe(false);
    const taken = join(folder, 'second');
    await eventually(() => expect(spares.take(taken, tenant, bytes)).toBe(true));
    expect(await mountsUnder(folder)).toContain(join(taken, pointName));
    const { uid, mode } = await stat(join(taken, pointName));
    expect([uid, mode & 0o777]).toEqual([tenant, 0o700]);
    expect(await readdir(join(taken, pointName))).toEqual([]);
    expect((await stat(taken)).mode & 0o777).toBe(0o711);
    await spares.close();
    expect(await mountsUnder(folder)).toEqual([join(taken, pointName)]);
    expect(await readdir(work)).toEqual([]);
  });

  test('a start of another size has the old ones replaced', async () => {
    const spares = new SpareDisks(work, 1, 50);
    spares.take(join(folder, 'none'), tenant, bytes);
    await eventually(async () => expect(await mountsUnder(work)).toHaveLength(1));
    expect(spares.take(join(folder, 'large'), tenant, 4 * bytes)).toBe(false);
    await eventually(() => expect(spares.take(join(folder, 'large'), tenant, 4 * bytes)).toBe(true), {
      everyMs: 200,
    });
    await spares.close();
  });

  test('the disk of a sleeping compute is kept empty for its tenant alone, and so many for so long', async () => {
    const limits = { mostKept: 2, keptMs: hour };
    // None is made ahead of time within this test.
    const spares = new SpareDisks(work, 1, hour, limits);
    const made = async (name: string, uid: number) => {
      const at = join(folder, name);
      await mkdir(at, { mode: 0o711 });
      await makeDiskImage({ file: join(at, imageName), bytes, uid });
      await mountDiskImage(join(at, imageName), join(at, pointName));
      return at;
    };
    const used = await made('used', tenant);
    await writeFile(join(used, pointName, 'left'), '');
    expect(spares.keep(used), 'one with files in it').toBe(false);
    await rm(join(used, pointName, 'left'));
    expect(spares.keep(used)).toBe(true);
    expect(await mountsUnder(used)).toEqual([]);
    const again = join(folder, 'again');
    expect(spares.take(again, tenant + 1, bytes), 'for somebody else').toBe(false);
    expect(spares.take(again, tenant, bytes)).toBe(true);
    expect(await readdir(join(again, pointName))).toEqual([]);
    expect(spares.keep(again)).toBe(true);

    for (const other of [1, 2]) expect(spares.keep(await made(`other-${other}`, tenant + other))).toBe(true);
    await eventually(async () => expect(await mountsUnder(work)).toHaveLength(2));
    expect(spares.take(again, tenant, bytes), 'the oldest has gone').toBe(false);
    await spares.forget(tenant + 1);
    expect(await mountsUnder(work)).toHaveLength(1);
    await spares.close();
    expect(await mountsUnder(work)).toEqual([]);

    const brief = new SpareDisks(work, 1, hour, { ...limits, keptMs: 50 });
    expect(brief.keep(await made('brief', tenant))).toBe(true);
    await eventually(async () => expect(await mountsUnder(work)).toEqual([]));
    await brief.close();
  });
});
