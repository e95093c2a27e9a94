/**
 * Where the homes of a run are. Tests make hundreds of databases and throw them away, and on a disk half of the
 * machine's work is to write them down; so they are in memory where there is plenty of it, and on the disk elsewhere.
 * CATNAP_TEST_HOMES names another folder.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const inMemory = '/dev/shm';
/** Twice what a run has at its most. */
const bytesWanted = 8 * 1024 ** 3;

export function chooseHomesFolder(): string {
  const named = process.env.CATNAP_TEST_HOMES;
  if (named) return named;
  return hasRoom(inMemory) && runsPrograms(inMemory) ? inMemory : tmpdir();
}

/** Within the limits of a container too. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return Math.min(bavail * bsize, process.availableMemory()) >= bytesWanted;
  } catch {
    return false;
  }
}

/** Containers often mount it so that nothing in it can be run, and the homes have the servers' programs. */
function runsPrograms(folder: string): boolean {
  let own: string | undefined;
  try {
    own = mkdtempSync(join(folder, 'cn-'));
    const program = join(own, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
    return spawnSync(program).status === 0;
  } catch {
    return false;
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true });
  }
}
