/** What a clone costs on each kind of filesystem, and what remains of one that ran out of space. */
import { appendFile, mkdtemp, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { type DiskKind, type LoopDisk, makeLoopDisk, whyNoLoopDisk } from '../../../../../test/helpers/loop-disk.ts';
import { newBranchId, newEndpointId } from '../../../../lib/ids.ts';
import { Bench, ownerAndDatabase } from '../../../contract/bench.ts';
import type { ComputeObservation } from '../../../interface/driver.ts';
import { inDiskWords } from '../copy/room.ts';
import { copyTree } from '../copy/tree.ts';
import { measureExtents } from '../disks/extents.ts';
import { dataDirectory } from '../home/layout.ts';

const mebibyte = 1024 ** 2;
const kinds: readonly DiskKind[] = ['xfs', 'btrfs', 'ext4'];
const problems = new Map<DiskKind, string | null>();
for (const kind of kinds) problems.set(kind, await whyNoLoopDisk(kind));

/** About 60 MB of rows that do not compress. */
const fill = `CREATE TABLE t (n int, x text); ALTER TABLE t ALTER x SET STORAGE EXTERNAL;
  INSERT INTO t SELECT n, repeat(md5(n::text), 250) FROM generate_series(1, 6000) n`;

for (const kind of kinds) {
  describe.skipIf(problems.get(kind) !== null)(`on ${kind}`, () => {
    let disk: LoopDisk;
    let subject: LocalSubject;
    let bench: Bench;
    let sourceServer: ComputeObservation;

    beforeAll(async () => {
      disk = await makeLoopDisk(kind, 600 * mebibyte);
      subject = await makeLocalSubject(17, disk.path);
      bench = new Bench(subject);
      sourceServer = await bench.started();
      await bench.driver.configure(bench.ref, ownerAndDatabase);
      await bench.query(sourceServer, 'CREATE TABLE kept (n int)');
      await bench.query(sourceServer, fill);
    });

    afterAll(async () => {
      try {
        await bench.driver.removeProject(bench.ref);
        expect(await subject.leftovers()).toEqual([]);
        await subject.close();
      } finally {
        await disk.remove();
      }
    });

    const shares = kind !== 'ext4';
    const clone = (branchId = newBranchId()) => bench.cloneBranch(branchId);
    const remove = (branchId: ReturnType<typeof newBranchId>) => bench.driver.removeBranch({ ...bench.ref, branchId });

    async function expectCost(made: () => Promise<ReturnType<typeof newBranchId>>): Promise<void> {
      const before = await disk.usedBytes();
      const branchId = await made();
      const cost = (await disk.usedBytes()) - before;
      if (shares) expect(cost).toBeLessThan(5 * mebibyte);
      else expect(cost).toBeGreaterThan(50 * mebibyte);
      await remove(branchId);
      // Deleted files may need a moment to give their blocks back.
      await expect.poll(async () => (await disk.usedBytes()) - before).toBeLessThan(2 * mebibyte);
    }

    test('a clone of a running server says how it was made, and the filesystem says the same', async () => {
      const branchId = newBranchId();
      const receipt = await clone(branchId);
      expect(receipt.method).toBe(shares ? 'reflink' : 'copy');
      expect(receipt.bytes).toBeGreaterThan(60 * mebibyte);
      expect(receipt.bytesShared).toBe(shares ? receipt.bytes : 0);
      const data = dataDirectory(subject.layout.branch(bench.ref.projectId, branchId));
      const extents = await measureExtents(data);
      expect(extents?.bytes).toBeGreaterThan(60 * mebibyte);
      if (shares) expect((extents?.bytes ?? 0) - (extents?.sharedBytes ?? 0)).toBeLessThan(5 * mebibyte);
      else expect(extents?.sharedBytes).toBe(0);
      await remove(branchId);
    });

    test('a clone of a sleeping one too, without the WAL that nobody needs, and it serves', async () => {
      await bench.driver.suspend(bench.ref, 1);
      const wal = join(dataDirectory(subject.layout.branch(bench.ref.projectId, bench.ref.branchId)), 'pg_wal');
      expect((await readdir(wal)).filter((name) => name.length === 24).length).toBeGreaterThan(2);
      await expectCost(async () => {
        const branchId = newBranchId();
        const receipt = await clone(branchId);
        expect(receipt.bytesShared).toBe(shares ? receipt.bytes : 0);
        const copied = join(dataDirectory(subject.layout.branch(bench.ref.projectId, branchId)), 'pg_wal');
        expect((await readdir(copied)).filter((name) => name.length === 24)).toHaveLength(1);
        return branchId;
      });
      const child = { branchId: newBranchId(), endpointId: newEndpointId() };
      await clone(child.branchId);
      const running = await bench.start(1, child);
      expect(await bench.query(running, 'SELECT count(*)::int AS n, min(length(x)) AS x FROM t')).toEqual([
        { n: 6000, x: 8000 },
      ]);
      await bench.driver.removeCompute({ ...bench.ref, ...child });
      await remove(child.branchId);
      sourceServer = await bench.start(2);
    });

    /** Where a copy takes no space at first, leaves less free space than the share that is reserved for servers. */
    async function fillUp(ballast: string): Promise<void> {
      const { bavail, bsize } = await statfs(disk.path);
      await appendFile(ballast, Buffer.alloc(Math.max(0, bavail * bsize - (shares ? 26 : 60) * mebibyte)));
    }

    // How much btrfs can still hold is unknown until it is full.
    test.skipIf(kind === 'btrfs')(
      'a clone that finds no room says so, leaves nothing, and the source goes on',
      async () => {
        const ballast = join(disk.path, 'ballast');
        const branches = subject.layout.branches(bench.ref.projectId);
        const before = await readdir(branches);
        await fillUp(ballast);
        const full = { kind: 'disk_full', message: expect.stringMatching(/^the disk is full: .* nothing was copied$/) };
        await expect(clone()).rejects.toMatchObject(full);
        await bench.driver.suspend(bench.ref, 2);
        await fillUp(ballast);
        await expect(clone()).rejects.toMatchObject(full);
        sourceServer = await bench.start(3);
        await bench.query(sourceServer, 'INSERT INTO kept VALUES (1)');
        expect(await readdir(branches)).toEqual(before);
        await rm(ballast);
        const branchId = newBranchId();
        expect(await clone(branchId)).toMatchObject({ method: shares ? 'reflink' : 'copy' });
        await remove(branchId);
      },
    );
  });
}

describe.skipIf(problems.get('ext4') !== null)('a disk that fills up during the copy', () => {
  test('is told in words, and what was thrown is kept as the cause', async () => {
    const disk = await makeLoopDisk('ext4', 4 * mebibyte);
    const source = await mkdtemp(join(tmpdir(), 'cn-many-'));
    try {
      // Small files take whole blocks: more than the sum of their sizes.
      for (let n = 0; n < 2_000; n++) await writeFile(join(source, String(n)), 'x');
      const copying = copyTree(source, join(disk.path, 'target'));
      await expect(inDiskWords(copying)).rejects.toMatchObject({
        kind: 'disk_full',
        message: expect.stringMatching(/^the disk is full/),
        cause: { code: 'ENOSPC' },
      });
    } finally {
      await rm(source, { recursive: true });
      await disk.remove();
    }
  });
});
