/**
 * Runs psql on a connection string. The password goes through a file that only we can read: on the command line every
 * user of the machine would see it.
 */
import { type SpawnOptions, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliFailure } from './failure.ts';

/** `program` and `stdio` are for tests. */
export interface PsqlOptions {
  readonly environment?: SpawnOptions['env'];
  readonly program?: string;
  readonly stdio?: SpawnOptions['stdio'];
}

/** Resolves with psql's exit code. */
export async function runPsql(uri: string, extra: readonly string[], options: PsqlOptions = {}): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-psql-'));
  // Ctrl-C is for psql, which cancels a query with it; we stay to clean up.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    const passwordFile = join(directory, 'password');
    await writeFile(passwordFile, passwordLine(uri), { mode: 0o600 });
    return await run(options.program ?? 'psql', [withPasswordFile(uri, passwordFile), ...extra], options, uri);
  } finally {
    process.off('SIGINT', ignore);
    await rm(directory, { recursive: true, force: true });
  }
}

function run(program: string, args: readonly string[], options: PsqlOptions, uri: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: options.stdio ?? 'inherit', env: options.environment });
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') return reject(error);
      const advice = 'install it (Debian: apt install postgresql-client), or use any Postgres client with';
      reject(new CliFailure(`psql is not installed; ${advice} ${uri}`));
    });
    child.on('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

/** Any host, port, database and user: the file serves this one connection. */
function passwordLine(uri: string): string {
  const password = decodeURIComponent(new URL(uri).password);
  return `*:*:*:*:${password.replace(/[\\:]/g, '\\$&')}\n`;
}

function withPasswordFile(uri: string, passwordFile: string): string {
  const url = new URL(uri);
  url.password = '';
  return `${url.href}${url.search === '' ? '?' : '&'}passfile=${encodeURIComponent(passwordFile)}`;
}
