import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeLoopDisk, whyNoLoopDisk } from '../../../../../test/helpers/loop-disk.ts';
import { syncTree } from '../copy/tree.ts';
import { makeLinkedBase } from './bases.ts';
import { historyPaths, readBases } from './files.ts';

const at = '2026-01-02T03:04:05.678Z';
const facts = { timeline: 1, start: '0/1000000', lsn: '0/1000028', at, bytes: 0, bytesShared: 0, isLive: false };
const group = 701_234;

describe.each(['ext4', 'xfs'] as const)('a linked base image on %s', async (filesystem) => {
  test.skipIf((await whyNoLoopDisk(filesystem)) !== null)(
    'is all there after a power cut, and can be read by its group',
    async () => {
      const disk = await makeLoopDisk(filesystem, 400 * 1024 ** 2);
      try {
        const data = join(disk.path, 'template');
        const names = Array.from({ length: 300 }, (_, n) => join(n % 2 ? 'base/1' : 'global', String(n)));
        for (const folder of ['global', 'base/1', 'pg_notify']) await mkdir(join(data, folder), { recursive: true });
        for (const name of names) await writeFile(join(data, name), name, { mode: 0o600 });
        // Of a running server: its folder is kept, and the file is not.
        await writeFile(join(data, 'pg_notify', '0000'), '');
        await syncTree(data);
        for (const turn of ['first', 'second']) {
          const history = join(disk.path, turn);
          await mkdir(join(history, 'bases'), { recursive: true });
          const { name } = await makeLinkedBase(historyPaths(history), { data, firstSecret: turn, facts, group });
          await disk.afterPowerCut(async (path) => {
            const paths = historyPaths(join(path, turn));
            expect(await readBases(paths)).toEqual([{ name, ...facts, isLinked: true }]);
            const base = join(paths.bases, name);
            expect(await readFile(join(base, 'first-secret'), 'utf8')).toBe(turn);
            for (const each of names) {
              expect(await readFile(join(base, 'pgdata', each), 'utf8')).toBe(each);
              const { mode, gid } = await lstat(join(base, 'pgdata', each));
              expect([mode & 0o777, gid]).toEqual([0o640, group]);
            }
            expect((await lstat(join(base, 'pgdata', 'pg_notify'))).isDirectory()).toBe(true);
            await expect(lstat(join(base, 'pgdata', 'pg_notify', '0000'))).rejects.toThrow('ENOENT');
          });
        }
      } finally {
        await disk.remove();
      }
    },
    60_000,
  );
});
