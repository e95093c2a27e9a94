/** A `pg_dump` of this machine: beside the configured server binaries, or on the PATH and new enough. */
import { execFile } from 'node:child_process';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Login } from '../server/admin-session.ts';
import type { DumpLimits } from './wasm-dump.ts';

export interface ProgramFolders {
  /** Directory of a configured Postgres of that major. */
  readonly binDirectory?: string | undefined;
  /** Directories as in the variable PATH. */
  readonly programPath: string;
}

const versionMsMax = 5_000;

/** A pg_dump can read servers up to its own major. Null when there is none. */
export async function findPgDump(pgVersion: number, folders: ProgramFolders): Promise<string | null> {
  const all = [folders.binDirectory ?? [], folders.programPath.split(delimiter)].flat();
  const candidates = all.filter(isAbsolute).map((folder) => join(folder, 'pg_dump'));
  for (const candidate of candidates) {
    if ((await majorOf(candidate)) >= pgVersion) return candidate;
  }
  return null;
}

async function majorOf(program: string): Promise<number> {
  const said = await run(program, ['--version'], {}, { timeoutMs: versionMsMax, bytesMax: 1_000 }).catch(() => '');
  return Number(/ (\d+)/.exec(said)?.[1] ?? 0);
}

/** The database's name is passed in the environment: as an argument it could be read as a whole connection string. */
export function dumpByProgram(
  program: string,
  { socketPath, login, options }: { socketPath: string; login: Login; options: string },
  limits: DumpLimits,
): Promise<string> {
  const environment = {
    PGHOST: dirname(socketPath),
    PGPORT: '5432',
    PGUSER: login.username,
    PGPASSWORD: login.password,
    PGDATABASE: login.database,
    PGOPTIONS: options,
    PGAPPNAME: 'catnap',
    PGSSLMODE: 'disable',
    LC_ALL: 'C',
  };
  return run(program, ['--schema-only', '--no-password'], environment, limits);
}

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { timeoutMs, bytesMax }: DumpLimits,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const settings = { env, timeout: timeoutMs, maxBuffer: bytesMax, cwd: '/' };
    execFile(program, [...args], settings, (error, stdout, stderr) => {
      if (error) reject(new Error(stderr.trim() || error.message, { cause: error }));
      else resolve(stdout);
    });
  });
}
