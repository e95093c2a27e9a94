/**
 * vitest's globalSetup: one system database for the whole run, in a home of its own. Test files take their database
 * from it with `inject('systemDatabase')`, share its binaries with `inject('sharedBuildsHome')`, and begin with a copy
 * of it as it was at first if they start a Catnap of their own.
 */
import 'vitest';
import { spawn } from 'node:child_process';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/db/migrate.ts';
import { createLogger, type Logger } from '../../src/lib/log.ts';
import {
  type SystemDatabase,
  type SystemDatabaseConnection,
  startSystemDatabase,
} from '../../src/machine/system-database.ts';
import { loadAllMigrations } from '../../src/processes/migrations.ts';
import { chooseHomesFolder } from './homes-folder.ts';
import { listSharedMemory, removeSharedMemory } from './killed-servers.ts';
import { keepSystem } from './prepared-system.ts';
import { makeTempHome, type TempHome } from './temp-home.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    systemDatabase: SystemDatabaseConnection;
    sharedBuildsHome: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const home = await makeTempHome({ under: chooseHomesFolder() });
  const guard = guardAgainstKill(home.path);
  const segments = await listSharedMemory();
  const log = createLogger({ level: 'error', process: 'tests' });
  try {
    const system = await startPrepared(home, log);
    project.provide('systemDatabase', system.connection);
    project.provide('sharedBuildsHome', home.path);
    return async () => {
      await system.stop();
      guard.end();
      await home.remove();
      await removeSharedMemory(segments);
    };
  } catch (error) {
    guard.end();
    await home.remove();
    throw error;
  }
}

/** Stops once in between: a copy of a server that runs would be torn. */
async function startPrepared(home: TempHome, log: Logger): Promise<SystemDatabase> {
  const first = await startSystemDatabase(home.config, log);
  await migrate(first.connection, await loadAllMigrations());
  await first.stop();
  await keepSystem(home.path);
  // Nothing in this database outlives the run, so nothing needs to reach the disk. Its role may not say so by SQL.
  await appendFile(join(first.dataDirectory, 'postgresql.auto.conf'), 'fsync = off\nfull_page_writes = off\n');
  return startSystemDatabase(home.config, log);
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
