/** Checks the Postgres programs and, where one is configured, the external system database. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createLayout } from '../../compute/local/host/home/layout.ts';
import { ensureBuild, locateEmbedded } from '../../compute/local/host/postgres/builds.ts';
import { connect } from '../../db/client.ts';
import type { Config } from '../../lib/config.ts';
import { errorText } from '../../lib/errors.ts';
import { runProgram } from '../../lib/run-program.ts';
import { type Check, fail, ok, warn } from './check.ts';

const serverVersionMin = 140_000;

export async function checkBinaries(major: number, config: Pick<Config, 'pgBin'>): Promise<Check> {
  const name = `Postgres ${major}`;
  const given = config.pgBin[major];
  try {
    const version = given === undefined ? await embeddedVersion(major) : await programVersion(given);
    if (version.startsWith(`${major}.`)) return ok(name, `${version}, ${given ?? 'embedded'}`);
    return fail(name, `the binaries are of version ${version}`, `point CATNAP_PG_BIN_${major} at those of ${major}`);
  } catch (error) {
    const advice =
      given === undefined
        ? `run npm ci again, or set CATNAP_PG_BIN_${major} to a directory that holds postgres and initdb`
        : `CATNAP_PG_BIN_${major} must be a directory that holds postgres and initdb`;
    return fail(name, errorText(error), advice);
  }
}

/**
 * Packages installed with `npm --ignore-scripts` lack links to their libraries. Catnap makes those itself in its own
 * copy, so a copy is made and tried before the package is called broken.
 */
async function embeddedVersion(major: number): Promise<string> {
  const bin = join(locateEmbedded(major), 'bin');
  try {
    return await programVersion(bin);
  } catch {
    const directory = await mkdtemp(join(tmpdir(), 'catnap-doctor-'));
    try {
      const build = await ensureBuild(major, { pgBin: {} }, createLayout(directory));
      return await programVersion(build.bin);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
}

async function programVersion(bin: string): Promise<string> {
  await runProgram(join(bin, 'initdb'), ['--version']);
  const text = await runProgram(join(bin, 'postgres'), ['--version']);
  return /\d+\.\S+/.exec(text)?.[0] ?? text.trim();
}

export async function checkPsql(program = 'psql'): Promise<Check> {
  try {
    const { stdout } = await promisify(execFile)(program, ['--version']);
    return ok('psql', stdout.trim());
  } catch {
    const advice = '`catnap psql` needs it; on Debian: apt install postgresql-client';
    return warn('psql', 'not installed', advice);
  }
}

export async function checkSystemDatabase(url: string | undefined): Promise<Check> {
  const name = 'system database';
  if (url === undefined) return ok(name, 'embedded, under the data home');
  const sql = connect({ url }, 1, 'catnap-doctor');
  try {
    const [server] = await sql<{ number: number; version: string; writable: boolean }[]>`
      select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
        has_database_privilege(current_database(), 'create') as writable`;
    if (server === undefined || server.number < serverVersionMin) {
      return fail(name, `Postgres ${server?.version}`, 'CATNAP_DATABASE_URL must lead to Postgres 14 or newer');
    }
    if (!server.writable) {
      return fail(name, 'the login may not create a schema', 'grant create on the database to the login of the URL');
    }
    return ok(name, `external, Postgres ${server.version}`);
  } catch (error) {
    return fail(name, errorText(error), 'see that CATNAP_DATABASE_URL is right and the server answers');
  } finally {
    await sql.end({ timeout: 1 });
  }
}
