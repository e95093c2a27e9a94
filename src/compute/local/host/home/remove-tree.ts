/**
 * Removes a tree of many files, in a program of its own: Node's way took 140 ms of this process's time for a fresh
 * cluster, and whatever else needed one of its threads had to wait. The program follows no links either.
 */
import { rm } from 'node:fs/promises';
import { runProgram } from '../../../../lib/run-program.ts';

export async function removeTree(directory: string): Promise<void> {
  await runProgram('rm', ['-rf', '--', directory]).catch(() => rm(directory, { recursive: true, force: true }));
}
