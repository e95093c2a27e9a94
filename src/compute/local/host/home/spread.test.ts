import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeLoopDisk, whyNoLoopDisk } from '../../../../../test/helpers/loop-disk.ts';
import { spreadSubdirectories } from './spread.ts';

const count = 12;

/** How far apart the numbers of its new subdirectories are; those of neighbours on the disk follow each other. */
async function distance(folder: string): Promise<number> {
  const numbers: number[] = [];
  for (let n = 0; n < count; n++) {
    await mkdir(join(folder, `${n}`));
    numbers.push((await stat(join(folder, `${n}`))).ino);
  }
  return Math.max(...numbers) - Math.min(...numbers);
}

test.skipIf((await whyNoLoopDisk('ext4')) !== null)(
  'subdirectories begin at different places of the disk',
  async () => {
    const disk = await makeLoopDisk('ext4', 1024 ** 3);
    try {
      const [close, spread] = [join(disk.path, 'close'), join(disk.path, 'spread')];
      await mkdir(close);
      await mkdir(spread);
      await spreadSubdirectories(spread);
      expect(await distance(close)).toBeLessThan(10 * count);
      expect(await distance(spread)).toBeGreaterThan(100 * count);
    } finally {
      await disk.remove();
    }
  },
);

test('a filesystem without such places is left as it is', async () => {
  await expect(spreadSubdirectories('/proc/self')).resolves.toBeUndefined();
});
