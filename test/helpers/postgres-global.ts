/**
 * vitest's globalSetup: one system database for the whole run, in a home of its own. Test files take their database
 * from it with `inject('systemDatabase')` and share its binaries with `inject('sharedBuildsHome')`.
 */
import 'vitest';
import { spawn } from 'node:child_process';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createLogger } from '../../src/lib/log.ts';
import { type SystemDatabaseConnection, startSystemDatabase } from '../../src/machine/system-database.ts';
import { makeTempHome } from './temp-home.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    systemDatabase: SystemDatabaseConnection;
    sharedBuildsHome: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const home = await makeTempHome();
  const guard = guardAgainstKill(home.path);
  const log = createLogger({ level: 'error', process: 'tests' });
  try {
    const system = await startSystemDatabase(home.config, log);
    await tradeSafetyForSpeed(home.path);
    project.provide('systemDatabase', system.connection);
    project.provide('sharedBuildsHome', home.path);
    return async () => {
      await system.stop();
      guard.end();
      await home.remove();
    };
  } catch (error) {
    guard.end();
    await home.remove();
    throw error;
  }
}

/** Nothing in this database outlives the run, so nothing needs to reach the disk. Its role may not say so by SQL. */
async function tradeSafetyForSpeed(home: string): Promise<void> {
  const dataDirectory = join(home, 'system', 'pgdata');
  await appendFile(join(dataDirectory, 'postgresql.auto.conf'), 'fsync = off\nfull_page_writes = off\n');
  const [pid] = (await readFile(join(dataDirectory, 'postmaster.pid'), 'utf8')).split('\n');
  process.kill(Number(pid), 'SIGHUP');
}

/**
 * Servers outlive Catnap on purpose, and so they would outlive a test run that is killed. This waits for the run to
 * end without its teardown, then ends every server that runs from the run's binaries and removes the homes.
 */
function guardAgainstKill(home: string): { end(): void } {
  if (process.platform !== 'linux') return { end: () => undefined };
  const script = `
    while kill -0 "$1" 2>/dev/null; do sleep 2; done
    for process in /proc/[0-9]*; do
      case "$(readlink "$process/exe")" in "$2"/*) kill -QUIT "\${process#/proc/}" ;; esac
    done
    sleep 2
    while read -r other; do
      grep -o " $other/[^ ]*" /proc/self/mountinfo | while read -r disk; do umount -l "$disk"; done
      rm -rf "$other"
    done < "$2/homes"
    rm -rf "$2"`;
  const guard = spawn('sh', ['-c', script, 'guard', String(process.pid), home], {
    detached: true,
    stdio: 'ignore',
  });
  guard.unref();
  const { pid } = guard;
  // The whole group: the shell and the sleep that it waits for.
  return { end: () => pid !== undefined && process.kill(-pid) };
}
