/**
 * `catnap doctor`: checks the machine and reports what Catnap would find there. It changes nothing permanently: what it
 * tries out is in temporary files. The checks are in the files beside this one, by subject.
 */
import type { Config } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { type Check, fail } from './check.ts';
import { checkFreeDisk, checkHome, checkReflinks, checkTemporaryDisk } from './home.ts';
import {
  checkCgroups,
  checkLibc,
  checkNode,
  checkOpenFiles,
  checkProxyRuntime,
  checkSharedMemory,
  checkUids,
} from './machine.ts';
import { checkPorts } from './ports.ts';
import { checkBinaries, checkPsql, checkSystemDatabase } from './postgres.ts';
import { findRunning } from './running.ts';
import { checkSettings } from './settings.ts';

export type NamedCheck = readonly [name: string, check: () => Promise<Check | readonly Check[]>];

export async function runChecks(config: Config): Promise<Check[]> {
  const running = await findRunning(config);
  return runEach([
    ['Node', async () => checkNode(process.versions.node)],
    ['platform', () => checkLibc()],
    ['proxy', () => checkProxyRuntime(config.proxyRuntime)],
    ...config.pgVersions.map((major): NamedCheck => [`Postgres ${major}`, () => checkBinaries(major, config)]),
    ['data home', () => checkHome(config)],
    ['free disk', () => checkFreeDisk(config.home)],
    ['reflinks', () => checkReflinks(config.home)],
    ['temporary disk', () => checkTemporaryDisk(config)],
    ['settings', async () => checkSettings(config)],
    ['ports', () => checkPorts(config, running)],
    ['uids', () => checkUids(config.uids)],
    ['cgroups', () => checkCgroups(config, running)],
    ['shared memory', () => checkSharedMemory()],
    ['open files', () => checkOpenFiles()],
    ['system database', () => checkSystemDatabase(config.databaseUrl)],
    ['psql', () => checkPsql()],
  ]);
}

export async function runEach(checks: readonly NamedCheck[]): Promise<Check[]> {
  const results = await Promise.all(checks.map(run));
  return results.flat();
}

/** A check that throws is a finding too, and must not hide the others. */
async function run([name, check]: NamedCheck): Promise<Check | readonly Check[]> {
  try {
    return await check();
  } catch (error) {
    return fail(name, `could not be checked: ${errorText(error)}`, 'look into this first; it may point at the cause');
  }
}
