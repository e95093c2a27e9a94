/** A data home for one test file: a short path, because unix sockets live in it, and removed afterwards. */
import { appendFile, chmod, mkdir, mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Cgroups } from '../../src/compute/local/host/cgroups/compute-groups.ts';
import { unmountUnder } from '../../src/compute/local/host/disks/mounts.ts';
import { type Config, readConfig } from '../../src/lib/config.ts';
import { runProgram } from '../../src/lib/run-program.ts';
import { eventually } from './eventually.ts';
import { forgetKilledServers } from './killed-servers.ts';

export interface TempHome {
  readonly path: string;
  /** Defaults for this home, whoever runs the tests. */
  readonly config: Config;
  remove(): Promise<void>;
}

/**
 * `share` names a home whose binaries and templates are used in place: `inject('sharedBuildsHome')` saves each test
 * file a copy of 60 MB and an initdb. `ownBuilds` is for a test that changes them. `under` is a folder on the
 * filesystem that the home is to be on.
 */
export async function makeTempHome(
  options: { share?: string; ownBuilds?: boolean; under?: string | undefined } = {},
): Promise<TempHome> {
  // Beside the one that it shares with, because what is shared is moved from one to the other.
  const beside = options.share === undefined ? tmpdir() : dirname(options.share);
  const path = await mkdtemp(join(options.under ?? beside, 'cn-'));
  if (process.getuid?.() === 0) await chmod(path, 0o711);
  if (options.share !== undefined) {
    // Templates are moved into place from the home's own filesystem.
    const shared = options.under === undefined ? ['builds', 'templates'] : ['builds'];
    for (const folder of options.ownBuilds ? [] : shared) {
      await mkdir(join(options.share, folder), { recursive: true });
      await symlink(join(options.share, folder), join(path, folder));
    }
    // For the guard of postgres-global.ts, should the run be killed.
    await appendFile(join(options.share, 'homes'), `${path}\n`);
  }
  return {
    path,
    // The same on every machine, whatever extensions it has.
    config: readConfig({ CATNAP_HOME: path, CATNAP_EXTENSIONS_17: 'off', CATNAP_EXTENSIONS_18: 'off' }),
    remove: async () => {
      // Servers that a test killed have left their disks.
      await forgetKilledServers(path);
      await unmountUnder(path);
      await removeGroups(path);
      // By a program: for the thousands of files of its servers node takes ten times as long. Again, because a server
      // that is about to end may still write.
      await eventually(() => runProgram('rm', ['-rf', path]), { deadlineMs: 10_000 });
    },
  };
}

/** Nor have they left their control groups, which they leave a moment after their end. */
async function removeGroups(home: string): Promise<void> {
  const groups = new Cgroups(
    { home, uids: null },
    () => undefined,
    async () => null,
  );
  const noneLeft = async () => {
    if ((await groups.removeStale()) > 0) throw new Error('there are control groups left');
  };
  // What is still there then is removed by the next one that cleans up.
  await eventually(noneLeft, { deadlineMs: 2_000 }).catch(() => undefined);
}
