import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeFailingDisk, makeLoopDisk, whyNoLoopDisk } from '../../../../../test/helpers/loop-disk.ts';
import { isTransient } from '../branches/clone.ts';
import { chownTree, copyTree, renameDurably, syncChanges, syncTree } from './tree.ts';

const asRoot = process.getuid?.() === 0;
let directory: string;
let source: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cn-copy-'));
  source = join(directory, 'source');
  await mkdir(join(source, 'a', 'b'), { recursive: true });
  await writeFile(join(source, 'one'), 'first');
  await writeFile(join(source, 'a', 'b', 'two'), 'second');
  await writeFile(join(source, 'a', 'empty'), '');
});

afterEach(() => rm(directory, { recursive: true, force: true }));

describe('copyTree', () => {
  test('copies all, counts files and bytes, and says whether blocks are shared', async () => {
    const target = join(directory, 'target');
    const result = await copyTree(source, target);
    expect(result).toMatchObject({ files: 3 });
    expect(result.bytesCopied + result.bytesShared).toBe(11);
    expect(await readFile(join(target, 'a', 'b', 'two'), 'utf8')).toBe('second');
    expect((await lstat(target)).mode & 0o777).toBe(0o700);
    await syncTree(target);
  });

  test('copies large files and small ones, each once', async () => {
    const names = ['1', '2', '3', '4'];
    for (const [index, name] of names.entries()) {
      await writeFile(join(source, 'a', name), Buffer.alloc(17_000_000, index + 65));
    }
    const target = join(directory, 'target');
    const result = await copyTree(source, target);
    expect(result.files).toBe(7);
    expect(result.bytesCopied + result.bytesShared).toBe(4 * 17_000_000 + 11);
    for (const name of names) {
      const [from, to] = await Promise.all([source, target].map((root) => readFile(join(root, 'a', name))));
      expect(from?.equals(to ?? Buffer.alloc(0))).toBe(true);
    }
    expect(await readFile(join(target, 'a', 'b', 'two'), 'utf8')).toBe('second');
  });

  test('leaves out what it is told to', async () => {
    await copyTree(source, join(directory, 'target'), { skip: (path) => path.startsWith('a/') });
    expect(await readdir(join(directory, 'target', 'a'))).toEqual([]);
  });

  test('refuses a link, wherever it leads', async () => {
    await symlink('/etc/passwd', join(source, 'a', 'link'));
    await expect(copyTree(source, join(directory, 'target'))).rejects.toThrow(/not a plain file/);
  });

  test('of a directory in use forgives files that vanish or shrink, and nothing else', async () => {
    const big = join(source, 'a', 'shrinks');
    for (let n = 0; n < 40; n++) await writeFile(join(source, 'a', `x${n}`), 'x'.repeat(100_000));
    await writeFile(big, Buffer.alloc(64_000_000));
    const copying = copyTree(source, join(directory, 'target'), { live: true });
    await Promise.all([truncate(big, 10), ...Array.from({ length: 40 }, (_, n) => rm(join(source, 'a', `x${n}`)))]);
    await copying;
    expect(await readFile(join(directory, 'target', 'one'), 'utf8')).toBe('first');
    await symlink('nowhere', join(source, 'a', 'link'));
    await expect(copyTree(source, join(directory, 'again'), { live: true })).rejects.toThrow(/not a plain file/);
    await expect(copyTree(join(directory, 'missing'), join(directory, 'third'), { live: true })).rejects.toThrow(
      /ENOENT/,
    );
  });

  test('refuses a target that exists', async () => {
    await mkdir(join(directory, 'target'));
    await expect(copyTree(source, join(directory, 'target'))).rejects.toThrow(/EEXIST/);
  });

  test('opens a readable copy to everybody and keeps what can be run', async () => {
    await chmod(join(source, 'one'), 0o700);
    await symlink('one', join(source, 'link'));
    await copyTree(source, join(directory, 'target'), { readable: true });
    const mode = async (path: string) => (await lstat(join(directory, 'target', path))).mode & 0o777;
    expect([await mode(''), await mode('a'), await mode('one'), await mode('a/empty')]).toEqual([
      0o755, 0o755, 0o755, 0o644,
    ]);
    expect((await lstat(join(directory, 'target', 'link'))).isSymbolicLink()).toBe(true);
  });

  test.runIf(asRoot)('gives the copy to its owner', async () => {
    await copyTree(source, join(directory, 'target'), { owner: 701_234 });
    for (const path of ['', 'a', 'a/b/two']) {
      expect(await lstat(join(directory, 'target', path))).toMatchObject({ uid: 701_234, gid: 701_234 });
    }
  });

  test('of a tenant’s directory, takes only files that are the tenant’s', async () => {
    const own = process.getuid?.() ?? 0;
    await copyTree(source, join(directory, 'target'), { sourceOwner: own });
    expect(await readFile(join(directory, 'target', 'one'), 'utf8')).toBe('first');
    const foreign = copyTree(source, join(directory, 'other'), { sourceOwner: own + 1 });
    await expect(foreign).rejects.toThrow(/not a plain file of uid/);
  });
});

test('a clone leaves out what belongs to a running server', () => {
  for (const path of ['postmaster.pid', 'postmaster.opts', 'pg_replslot/x', 'pg_notify/0000', 'pg_stat_tmp/a/b']) {
    expect(isTransient(path)).toBe(true);
  }
  for (const path of ['pg_replslot', 'PG_VERSION', 'base/1/1259', 'pg_wal/000000010000000000000001']) {
    expect(isTransient(path)).toBe(false);
  }
});

test.runIf(asRoot)('chownTree gives away every entry, and a link itself instead of what it leads to', async () => {
  await symlink(join(directory, 'outside'), join(source, 'a', 'link'));
  await writeFile(join(directory, 'outside'), '');
  for (let i = 0; i < 300; i++) await writeFile(join(source, 'a', `file-${i}`), '');
  await chownTree(source, 70_001);
  const paths = (await readdir(source, { recursive: true })).map((name) => join(source, name));
  const owners = await Promise.all([source, ...paths].map(async (path) => (await lstat(path)).uid));
  expect(owners).toHaveLength(307);
  expect(new Set(owners)).toEqual(new Set([70_001]));
  expect((await lstat(join(directory, 'outside'))).uid).toBe(0);
});

test.skipIf((await whyNoLoopDisk('xfs')) !== null)(
  'clones that syncChanges has made durable are all there after a power cut',
  async () => {
    const disk = await makeLoopDisk('xfs', 400 * 1024 ** 2);
    try {
      const [from, unfinished] = [join(disk.path, 'source'), join(disk.path, 'unfinished')];
      await mkdir(join(from, 'a'), { recursive: true });
      const content = (n: number) => `${n}`.repeat(20_000);
      for (let n = 0; n < 300; n++) await writeFile(join(from, n % 2 ? 'a' : '', `${n}`), content(n));
      await mkdir(unfinished);
      // The last of it was never synced: a clone writes it out.
      const { bytesCopied } = await copyTree(from, join(unfinished, 'data'), { owner: asRoot ? 701_234 : null });
      expect(bytesCopied).toBe(0);
      await writeFile(join(unfinished, 'record'), 'complete');
      const isThere = (path: string) => lstat(path).then(Boolean, () => false);
      expect(await disk.afterPowerCut((path) => isThere(join(path, 'unfinished')))).toBe(false);
      await syncChanges(unfinished, [join(unfinished, 'record')]);
      await renameDurably(unfinished, join(disk.path, 'finished'));
      await disk.afterPowerCut(async (path) => {
        const found = join(path, 'finished');
        expect(await readFile(join(found, 'record'), 'utf8')).toBe('complete');
        for (let n = 0; n < 300; n++) {
          const file = join(found, 'data', n % 2 ? 'a' : '', `${n}`);
          expect(await readFile(file, 'utf8')).toBe(content(n));
          expect((await lstat(file)).uid).toBe(701_234);
        }
      });
    } finally {
      await disk.remove();
    }
  },
  60_000,
);

test('syncChanges takes a tree of which only a few files were written', async () => {
  await syncChanges(source, [join(source, 'one')]);
  expect(await readFile(join(source, 'one'), 'utf8')).toBe('first');
});

test.skipIf((await whyNoLoopDisk('ext4')) !== null)(
  'a tree that did not reach the disk is refused, and one beside it that did is not',
  async () => {
    const disk = await makeFailingDisk();
    try {
      const [lost, kept] = [join(disk.path, 'lost'), join(disk.path, 'kept')];
      for (const tree of [lost, kept]) await mkdir(tree);
      await writeFile(join(kept, 'file'), 'small');
      await syncTree(kept);
      await writeFile(join(lost, 'file'), Buffer.alloc(64 * 1024 ** 2, 1));
      await expect(syncTree(lost)).rejects.toMatchObject({ code: 'EIO' });
      await syncTree(kept);
      expect(await readFile(join(kept, 'file'), 'utf8')).toBe('small');
    } finally {
      await disk.remove();
    }
  },
);
