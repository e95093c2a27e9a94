/**
 * The server's own regression files, by `psql`, in the order of their schedule and in one database, as `pg_regress`
 * runs them, but one at a time. What counts is that the output is that of the plain server, so a file whose statements
 * are refused (no superuser, no library of C functions) counts as well. What names an object, a process or a place of
 * one cluster is the same word for both.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { run } from './run.mjs';

const fileMsMax = 60_000;
const database = 'regression';

export async function regression(source, server) {
  const folder = join(source, 'src/test/regress');
  const results = mkdtempSync(join(tmpdir(), 'catnap-regression-'));
  await makeDatabase(server);
  const env = {
    PGDATABASE: database,
    PGTZ: 'PST8PDT',
    PGDATESTYLE: 'Postgres, MDY',
    PG_ABS_SRCDIR: folder,
    PG_ABS_BUILDDIR: results,
    PG_LIBDIR: folder,
    PG_DLSUFFIX: '.so',
  };
  const outputs = new Map();
  for (const name of scheduled(folder)) {
    const psql = ['psql', '-X', '-a', '-q', '-v', 'HIDE_TABLEAM=on', '-v', 'HIDE_TOAST_COMPRESSION=on'];
    // By a shell, so that errors stand behind the statements that they belong to.
    const args = ['-c', 'exec "$@" 2>&1', 'sh', ...psql, '-f', join(folder, 'sql', `${name}.sql`)];
    const { output } = await run('sh', args, { server, cwd: results, env, ms: fileMsMax });
    outputs.set(name, withoutPlace(output, server, results));
  }
  rmSync(results, { recursive: true, force: true });
  return outputs;
}

function scheduled(folder) {
  const lines = readFileSync(join(folder, 'parallel_schedule'), 'utf8').matchAll(/^test: (.+)$/gm);
  return [...lines].flatMap(([, names]) => names.trim().split(/\s+/));
}

async function makeDatabase({ host, port, user, password, database: own }) {
  const sql = postgres({ host, port, user, password, database: own, max: 1 });
  try {
    await sql.unsafe(`create database ${database} template template0 encoding 'UTF8' locale 'C'`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function withoutPlace(output, server, results) {
  return output
    .replaceAll(results, 'RESULTS')
    .replaceAll(String(server.port), 'PORT')
    .replaceAll(/\bpg_(temp|toast|toast_temp)_\d+/g, 'pg_$1_N')
    .replaceAll(/\bRI_ConstraintTrigger_([ac])_\d+/g, 'RI_ConstraintTrigger_$1_N')
    .replaceAll(/(Query Identifier"?: )-?\d+ */g, '$1N')
    .replaceAll(/^ *QUERY PLAN *\n-+$/gm, 'QUERY PLAN');
}
