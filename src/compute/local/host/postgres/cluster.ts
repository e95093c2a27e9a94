/**
 * Creates a Postgres cluster in a directory of its own, for the system database and for the template. `initdb` and the
 * single-user mode need a uid that has a passwd entry, which a running server does not; so they run as an ordinary user
 * and the result is given to its owner. No password passes through a file or an argument: roles get theirs as
 * verifiers, over a pipe.
 */
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type ProgramOptions, runProgram } from '../../../../lib/run-program.ts';
import { chownTree, syncTree } from '../copy/tree.ts';
import { newClusterPrefix } from '../home/layout.ts';
import type { Build } from './builds.ts';

export interface ClusterSpec {
  readonly build: Build;
  readonly superuser: string;
  /** The owner of the cluster, or null when Catnap does not run as root. */
  readonly uid: number | null;
  /** Run in the database `postgres`, one after the other, each in its own transaction. */
  readonly statements: readonly string[];
}

/** Calls `use` with the finished, durable data directory, which `use` renames into place; nothing else remains. */
export async function withNewCluster<T>(
  spec: ClusterSpec,
  workFolder: string,
  use: (dataDirectory: string) => Promise<T>,
): Promise<T> {
  const work = await mkdtemp(join(workFolder, `${newClusterPrefix}${process.pid}-`));
  const dataDirectory = join(work, 'pgdata');
  try {
    await mkdir(dataDirectory, { mode: 0o700 });
    if (spec.uid === null) requireAccount();
    const user = spec.uid === null ? null : await ordinaryUser();
    if (user) {
      await chmod(work, 0o711);
      await chown(dataDirectory, user.uid, user.gid);
    }
    await runProgram(join(spec.build.bin, 'initdb'), initdbArguments(spec, dataDirectory), user ?? {});
    await runStatements(spec, dataDirectory, user ?? {});
    if (spec.uid !== null) await chownTree(dataDirectory, spec.uid);
    await syncTree(work);
    return await use(dataDirectory);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function initdbArguments({ build, superuser }: ClusterSpec, dataDirectory: string): string[] {
  // The builtin provider's collation is part of Postgres, so no change of libc or ICU can break a text index.
  const locale =
    build.major >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'] : ['--locale=C'];
  return [
    '--pgdata',
    dataDirectory,
    '--username',
    superuser,
    '--encoding',
    'UTF8',
    ...locale,
    // The file that initdb writes admits no login; every server is started with one of ours.
    '--auth=reject',
    '--data-checksums',
    '--no-sync',
    '--no-instructions',
  ];
}

async function runStatements(spec: ClusterSpec, dataDirectory: string, user: ProgramOptions): Promise<void> {
  const args = ['--single', '-j', '-D', dataDirectory, '-c', 'exit_on_error=on', '-c', 'log_checkpoints=off'];
  const input = spec.statements.map((statement) => `${statement};\n\n`).join('');
  await runProgram(join(spec.build.bin, 'postgres'), [...args, 'postgres'], { ...user, input });
}

/** As `initdb` will, which only says that it could not look up a user. A container may be given any uid. */
export function requireAccount(lookUp: () => unknown = userInfo): void {
  try {
    lookUp();
  } catch (cause) {
    const words = 'has no entry in /etc/passwd, and initdb needs one: start Catnap as a user that the machine knows';
    throw new Error(`uid ${process.getuid?.()} ${words} (in a container, one of its image)`, { cause });
  }
}

/** `nobody` if it exists, otherwise any account that is not root. */
async function ordinaryUser(): Promise<{ uid: number; gid: number }> {
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const users = lines
    .map(([name, , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter((user) => user.uid > 0 && Number.isInteger(user.uid) && Number.isInteger(user.gid));
  const chosen = users.find((user) => user.name === 'nobody') ?? users[0];
  if (!chosen) throw new Error('initdb needs an account other than root in /etc/passwd; there is none');
  return { uid: chosen.uid, gid: chosen.gid };
}
