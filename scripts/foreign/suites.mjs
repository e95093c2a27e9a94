/**
 * How each foreign suite is run against one server. A runner resolves with the outcome of every test by name, `passed`
 * or `failed`; what a suite skips is left out. Many of these tests have a few seconds for what they do, so one that
 * fails is run again: only what fails three times counts as failed, on every server alike.
 */
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';

const here = fileURLToPath(new URL('.', import.meta.url));
const triesMax = 3;
const fileMsMax = 60_000;
const suiteMsMax = 1_800_000;

export const suites = { 'node-postgres': nodePostgres, 'postgres.js': postgresJs, psycopg, regression };

/** The version that a source says it is. */
export function versionOf(source) {
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

/** In pure Python, with the libpq and the pytest of the machine. */
async function psycopg(source, server) {
  const { host, port, user, password, database } = server;
  const dsn = `host=${host} port=${port} user=${user} password=${password} dbname=${database}`;
  const modules = (process.env.CATNAP_PSYCOPG_TESTS ?? 'tests').split(' ');
  const marks = 'not slow and not timing and not flakey and not subprocess and not mypy and not proxy and not pool';
  const cache = mkdtempSync(join(tmpdir(), 'catnap-pytest-'));
  const options = ['-q', '-rA', '--tb=line', '-o', `cache_dir=${cache}`, '-m', marks, '--test-dsn', dsn];
  const env = { PYTHONPATH: join(source, 'psycopg'), PSYCOPG_IMPL: 'python', PYTHONDONTWRITEBYTECODE: '1' };
  const program = process.env.CATNAP_PYTHON ?? 'python3';
  const outcomes = new Map();
  let wanted = modules;
  for (let tries = 0; tries < triesMax && wanted.length > 0; tries++) {
    const args = ['-m', 'pytest', ...options, ...wanted];
    const { output } = await run(program, args, { server, cwd: source, env, ms: suiteMsMax });
    for (const [, word, name] of output.matchAll(/^(PASSED|FAILED|ERROR) (\S+)/gm)) {
      outcomes.set(name, word === 'PASSED' ? 'passed' : 'failed');
    }
    if (outcomes.size === 0) throw new Error(output.slice(-3_000));
    wanted = [...outcomes.keys()].filter((name) => outcomes.get(name) === 'failed');
  }
  rmSync(cache, { recursive: true, force: true });
  return outcomes;
}

/** The server's own files by `psql`; what counts is that the output is that of the plain server. */
async function regression(source, server) {
  const folder = join(source, 'src/test/regress/sql');
  const outputs = new Map();
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    const args = ['-X', '-a', '-q', '-v', 'HIDE_TABLEAM=on', '-f', join(folder, file)];
    const { output } = await run('psql', args, { server, cwd: folder, ms: fileMsMax });
    outputs.set(file, output);
  }
  return outputs;
}

/** The output has both streams. A program that takes too long is ended, and has the code -1. */
function run(program, args, { server, cwd, env = {}, ms }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        TZ: 'GMT',
        PGHOST: server.host,
        PGPORT: String(server.port),
        PGUSER: server.user,
        PGPASSWORD: server.password,
        PGDATABASE: server.database,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), ms);
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => (output += error.message));
    child.on('close', (code) => {
      clearTimeout(timer);
      const { CATNAP_SUITE_LOG: log } = process.env;
      if (log) appendFileSync(`${log}.${server.kind}`, `--- ${program} ${args.join(' ')}\n${output}\n--- ${code}\n`);
      resolve({ code: code ?? -1, output });
    });
  });
}
