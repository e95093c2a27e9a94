/**
 * The user that child processes are started as, where they cannot change it by themselves. Once io_uring may be in use,
 * Node refuses `setuid`, since a thread of the kernel would keep the rights (CVE-2024-22017): in Debian's build always,
 * in others with UV_USE_IO_URING=1. A process that is started as another user is none of Node's yet, and may change.
 */
import { fileURLToPath } from 'node:url';
import type { Uids } from '../../lib/config.ts';
import { runProgram } from '../../lib/run-program.ts';

export interface ChildUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Null where children give up their rights by themselves, which lets them load code that this user cannot read, or
 * have none to give up. `isRefused` is for tests.
 */
export async function chooseChildUser(
  uids: Uids | null,
  program: URL,
  isRefused = refusesOtherUsers,
): Promise<ChildUser | null> {
  if (uids === null || !isRefused()) return null;
  const user = { uid: uids.service, gid: uids.service };
  await requirePermission(user, '-x', process.execPath);
  await requirePermission(user, '-r', fileURLToPath(program));
  return user;
}

/** Found out by a change that changes nothing. */
function refusesOtherUsers(): boolean {
  try {
    process.setegid?.(process.getegid?.() ?? 0);
    return false;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE') return true;
    throw error;
  }
}

async function requirePermission(user: ChildUser, permission: '-x' | '-r', file: string): Promise<void> {
  await runProgram('test', [permission, file], user).catch((cause: unknown) => {
    const verb = permission === '-x' ? 'run' : 'read';
    const why = 'this Node lets no process give up its rights while it runs (CVE-2024-22017)';
    const advice = 'let other users pass to it, or start Catnap with a Node of nodejs.org and without UV_USE_IO_URING';
    throw new Error(`uid ${user.uid} cannot ${verb} ${file}, and ${why}: ${advice}`, { cause });
  });
}
