import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { tryDiskImages } from './image.ts';
import { mountsUnder, unmountUnder } from './mounts.ts';
import { pointName, SpareDisks } from './spares.ts';

const bytes = 16 * 1024 ** 2;
const tenant = 70_001;
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
});
