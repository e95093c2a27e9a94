/**
 * How each foreign suite is run against one server. A runner resolves with the outcome of every test by name, `passed`
 * or `failed`; what a suite skips is left out. Many of these tests have a few seconds for what they do, so one that
 * fails is run again: only what fails three times counts as failed, on every server alike.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { pgbouncer, psycopg } from './python.mjs';
import { regression } from './regression.mjs';
import { run, triesMax } from './run.mjs';
import { pgjdbc, pgx } from './smoke.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const fileMsMax = 60_000;
const suiteMsMax = 1_800_000;

export const suites = {
  'node-postgres': { runSuite: nodePostgres },
  'postgres.js': { runSuite: postgresJs },
  psycopg: { runSuite: psycopg },
  pgbouncer: { runSuite: pgbouncer },
  pgx: { runSuite: pgx },
  pgjdbc: { runSuite: pgjdbc },
  regression: { runSuite: regression },
};

/** The version that a source says it is. */
export function versionOf(source) {
  const [, ofJar] = /-([\d.]+)\.jar$/.exec(source) ?? [];
  if (ofJar !== undefined) return ofJar;
  for (const path of ['packages/pg/package.json', 'package.json']) {
    if (existsSync(join(source, path))) return JSON.parse(readFileSync(join(source, path), 'utf8')).version;
  }
  for (const path of ['psycopg/pyproject.toml', 'meson.build']) {
    if (!existsSync(join(source, path))) continue;
    const [, version] = /version\s*[:=]\s*['"]([^'"]+)['"]/.exec(readFileSync(join(source, path), 'utf8')) ?? [];
    if (version !== undefined) return version;
  }
  return 'unknown';
}

/** Each file is one test, as its Makefile has it. Its packages must be installed beside it. */
async function nodePostgres(source, server) {
  const folder = join(source, 'packages/pg');
  const integration = join(folder, 'test/integration');
  const files = readdirSync(integration, { recursive: true }).filter((path) => path.endsWith('-tests.js'));
  const outcomes = new Map();
  for (const file of files.sort()) {
    let outcome = 'failed';
    for (let tries = 0; tries < triesMax && outcome === 'failed'; tries++) {
      const { code } = await run(process.execPath, [join(integration, file)], { server, cwd: folder, ms: fileMsMax });
      if (code === 0) outcome = 'passed';
    }
    outcomes.set(file, outcome);
  }
  return outcomes;
}

/** Its own harness stops at the first failure, and its set-up wants a superuser: both are replaced in the copy. */
async function postgresJs(source, server) {
  const copy = mkdtempSync(join(tmpdir(), 'catnap-suite-'));
  try {
    cpSync(source, copy, { recursive: true });
    for (const name of ['test.js', 'bootstrap.js'])
      cpSync(join(here, `postgres-js-${name}`), join(copy, 'tests', name));
    // A second for a login is not enough on a busy machine.
    const tests = join(copy, 'tests/index.js');
    writeFileSync(tests, readFileSync(tests, 'utf8').replace('connect_timeout: 1,', 'connect_timeout: 10,'));
    await makeLogins(server, 'postgres_js_test', ['postgres_js_test_md5', 'postgres_js_test_scram']);
    const { output } = await run(process.execPath, ['tests/index.js'], { server, cwd: copy, ms: suiteMsMax });
    return new Map(
      output
        .split('\n')
        .filter((line) => /^(passed|failed)\t/.test(line))
        .map((line) => line.split('\t'))
        .map(([outcome, name]) => [name, outcome]),
    );
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** The owner of a database of the same name with the server's password, and logins whose password is their name. */
async function makeLogins(server, owner, others) {
  const sql = postgres({ ...loginOf(server), max: 1, onnotice: () => {}, prepare: false });
  try {
    await sql.unsafe(`create role ${owner} login password '${server.password}'`);
    await sql.unsafe(`grant ${owner} to current_user`);
    for (const name of others) await sql.unsafe(`create role ${name} login password '${name}'`);
    await sql.unsafe(`create database ${owner} owner ${owner} template template0`);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

const loginOf = ({ host, port, user, password, database }) => ({ host, port, user, password, database });
