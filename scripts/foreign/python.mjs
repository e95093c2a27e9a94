/** Suites that pytest runs, with the libpq of the machine. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, triesMax } from './run.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const suiteMsMax = 1_800_000;
/** Those that talk to a server, each once: most have a copy for asyncio that does the same. */
const psycopgModules = `adapt column concurrency connection connection_info copy cursor cursor_client cursor_common
  cursor_raw cursor_server errors notify pipeline prepared query tpc transaction typeinfo`;

/** In pure Python. */
export async function psycopg(source, server) {
  const { host, port, user, password, database } = server;
  const dsn = `host=${host} port=${port} user=${user} password=${password} dbname=${database}`;
  const modules = psycopgModules.split(/\s+/).map((name) => `tests/test_${name}.py`);
  const marks = 'not slow and not timing and not flakey and not subprocess and not mypy and not proxy and not pool';
  const env = { PYTHONPATH: join(source, 'psycopg'), PSYCOPG_IMPL: 'python' };
  const options = ['-m', marks, '--test-dsn', dsn];
  return await pytest(modules, options, { server, cwd: source, env });
}

/** The tests of what any pooler does, against a stand-in for the bouncer that they start themselves. */
export async function pgbouncer(source, server) {
  const copy = mkdtempSync(join(tmpdir(), 'catnap-suite-'));
  try {
    const tests = ['test_prepared.py', 'test_cancel.py', 'test_copy.py'];
    for (const name of ['__init__.py', ...tests]) cpSync(join(source, 'test', name), join(copy, 'test', name));
    cpSync(join(here, 'pgbouncer-conftest.py'), join(copy, 'test/conftest.py'));
    cpSync(join(here, 'pgbouncer-utils.py'), join(copy, 'test/utils.py'));
    return await pytest(
      tests.map((name) => `test/${name}`),
      [],
      { server, cwd: copy, env: {} },
    );
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Runs what has failed again. The outcomes are in the file that the plugin writes. */
async function pytest(wantedFirst, options, { server, cwd, env }) {
  const folder = mkdtempSync(join(tmpdir(), 'catnap-pytest-'));
  const all = ['-q', '--tb=short', '-p', 'catnap_plugin', '-o', `cache_dir=${folder}`, ...options];
  const path = [here, env.PYTHONPATH].filter(Boolean).join(':');
  const program = process.env.CATNAP_PYTHON ?? 'python3';
  const outcomes = new Map();
  let wanted = wantedFirst;
  for (let tries = 0; tries < triesMax && wanted.length > 0; tries++) {
    const file = join(folder, `outcomes-${tries}`);
    const { output } = await run(program, ['-m', 'pytest', ...all, ...wanted], {
      server,
      cwd,
      env: { ...env, PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1', CATNAP_OUTCOMES: file },
      ms: suiteMsMax,
    });
    if (!existsSync(file)) throw new Error(output.slice(-3_000));
    for (const [, outcome, name] of readFileSync(file, 'utf8').matchAll(/^(passed|failed)\t(.+)$/gm)) {
      outcomes.set(name, outcome);
    }
    wanted = [...outcomes.keys()].filter((name) => outcomes.get(name) === 'failed');
  }
  rmSync(folder, { recursive: true, force: true });
  return outcomes;
}
