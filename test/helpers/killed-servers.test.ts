import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../src/lib/run-program.ts';
import { forgetKilledServers, listSharedMemory, removeSharedMemory } from './killed-servers.ts';

const isLinux = process.platform === 'linux';

test.runIf(isLinux)('the segment that a pid file names is removed, and no other', async () => {
  const makeSegment = async () => /\d+/.exec(await runProgram('ipcmk', ['-M', '64']))?.[0] ?? '';
  const [killed, other] = [await makeSegment(), await makeSegment()];
  const folder = await mkdtemp(join(tmpdir(), 'cn-killed-'));
  try {
    await mkdir(join(folder, 'branch', 'pgdata'), { recursive: true });
    const lines = ['1', folder, '0', '5432', folder, '', `  5432001 ${killed}`, 'ready'];
    await writeFile(join(folder, 'branch', 'pgdata', 'postmaster.pid'), lines.join('\n'));
    await forgetKilledServers(folder);
    const left = (await runProgram('ipcs', ['-m'])).split('\n').map((line) => line.split(/\s+/)[1]);
    expect(left).not.toContain(killed);
    expect(left).toContain(other);
  } finally {
    await runProgram('ipcrm', ['-m', other]);
    await rm(folder, { recursive: true, force: true });
  }
});

test.runIf(isLinux)('segments that were there before, or that somebody has, stay', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cn-segments-'));
  const nameOf = (number: number) => `PostgreSQL.${process.pid}${number}`;
  const [before, left, used] = [nameOf(1), nameOf(2), nameOf(3)];
  await writeFile(join(folder, before), '');
  const known = await listSharedMemory(folder);
  await writeFile(join(folder, left), '');
  // A program that runs is mapped by its process, as a segment is.
  await copyFile('/bin/sleep', join(folder, used));
  const holder = spawn(join(folder, used), ['600'], { stdio: 'ignore' });
  try {
    await once(holder, 'spawn');
    await removeSharedMemory(known, folder, async () => new Set([process.getuid?.() ?? 0]));
    expect(await listSharedMemory(folder), 'one of a living server may be open nowhere').toContain(left);
    await removeSharedMemory(known, folder, async () => new Set());
    expect((await listSharedMemory(folder)).sort()).toEqual([before, used].sort());
  } finally {
    holder.kill();
    await rm(folder, { recursive: true, force: true });
  }
});
