/** What is mounted where, as the kernel lists it, and how to unmount it. Linux only: elsewhere the list is empty. */
import { readFile, realpath } from 'node:fs/promises';
import { runProgram } from '../../../../lib/run-program.ts';

/** Mount points in the order of mounting; the kernel writes blanks and backslashes in octal. */
export function parseMountPoints(mountInfo: string): string[] {
  return mountInfo
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((point) => point !== undefined)
    .map((point) => point.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8))));
}

/** Mount points at or under a directory; one that has two mounts is listed twice. */
export async function mountsUnder(directory: string): Promise<string[]> {
  const mountInfo = await readFile('/proc/self/mountinfo').catch(() => null);
  const real = mountInfo && (await realpath(directory).catch(() => null));
  if (!mountInfo || !real) return [];
  // The kernel writes bytes; latin1 keeps each of them, so that octal codes and names in UTF-8 come out the same way.
  const points = parseMountPoints(mountInfo.toString('latin1')).map((point) =>
    Buffer.from(point, 'latin1').toString('utf8'),
  );
  return points.filter((point) => point === real || point.startsWith(`${real}/`));
}

/** A disk that is still in use disappears from the tree at once, and is released by its last user. */
export async function unmount(point: string): Promise<void> {
  await runProgram('umount', [point]).catch(() => runProgram('umount', ['--lazy', point]));
}

/** Unmounts the last mount first, since it may be on top of another. */
export async function unmountUnder(directory: string): Promise<void> {
  for (const point of (await mountsUnder(directory)).reverse()) await unmount(point);
}
