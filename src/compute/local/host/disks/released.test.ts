import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLayout, type Layout } from '../home/layout.ts';
import { makeDiskImage, mountDiskImage, tryDiskImages } from './image.ts';
import { mountsUnder, unmountUnder } from './mounts.ts';
import { ReleasedDisks } from './released.ts';
import { imageName, pointName } from './spares.ts';

const problem = process.getuid?.() === 0 ? await tryDiskImages(tmpdir()) : 'only root can mount';
const problems: unknown[] = [];

let layout: Layout;
let folder: string;
beforeEach(async () => {
  layout = createLayout(await mkdtemp(join(tmpdir(), 'cn-released-')));
  folder = join(layout.home, 'disk');
  await mkdir(layout.trash);
});
afterEach(async () => {
  await unmountUnder(layout.home);
  await rm(layout.home, { recursive: true });
  expect(problems.splice(0)).toEqual([]);
});

const release = () => new ReleasedDisks(layout, (error) => problems.push(error));

test('a folder that is not there is not taken', async () => {
  const released = release();
  expect(released.take(folder)).toBe(false);
  await released.whenGone();
  expect(await readdir(layout.trash)).toEqual([]);
});

describe.skipIf(problem !== null)('the disk of a compute that fell asleep', () => {
  test('is out of the way at once, and unmounted and removed after that', async () => {
    await mkdir(folder);
    await makeDiskImage({ file: join(folder, imageName), bytes: 16 * 1024 ** 2, uid: 0 });
    await mountDiskImage(join(folder, imageName), join(folder, pointName));
    const released = release();
    expect(released.take(folder)).toBe(true);
    // With nothing awaited since: the next start of the compute may make its own disk here.
    expect(existsSync(folder)).toBe(false);
    const [moved] = await mountsUnder(layout.trash);
    expect(moved).toBeDefined();
    expect(released.owns(moved ?? '')).toBe(true);
    await released.whenGone();
    expect(await mountsUnder(layout.home)).toEqual([]);
    expect(await readdir(layout.trash)).toEqual([]);
  });
});
