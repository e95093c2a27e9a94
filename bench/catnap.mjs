/** A Catnap of its own for a benchmark: built, in a temporary home, on free ports. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

const entry = fileURLToPath(new URL('../dist/bin.js', import.meta.url));

/** For a benchmark that prepares its home itself, and removes it. */
export async function makeHome() {
  const home = await mkdtemp(join(tmpdir(), 'cnb-'));
  await chmod(home, 0o711);
  return home;
}

/** Any other command of the same Catnap. */
export function runCatnap(home, args) {
  const run = spawnSync(process.execPath, [entry, ...args], { env: { ...process.env, CATNAP_HOME: home } });
  if (run.status !== 0) throw new Error(`catnap ${args.join(' ')}: ${run.stderr}`);
  return String(run.stdout);
}

/** `onLog` is called with each line of its log. */
export async function startCatnap(env = {}, onLog = null) {
  const home = env.CATNAP_HOME ?? (await makeHome());
  const httpPort = env.CATNAP_HTTP_PORT ?? (await freePort());
  const pgPort = env.CATNAP_PG_PORT ?? (await freePort());
  const child = spawn(process.execPath, [entry, 'up', '--stop-computes'], {
    env: {
      ...process.env,
      CATNAP_HOME: home,
      CATNAP_HTTP_PORT: httpPort,
      CATNAP_PG_PORT: pgPort,
      CATNAP_LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  await new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      if (line.includes('Create a project')) resolve();
      if (onLog && line.startsWith('{')) onLog(JSON.parse(line));
    });
    child.once('exit', (code) => reject(new Error(`Catnap ended with exit code ${code}`)));
  });
  const key = (await readFile(join(home, 'api-key'), 'utf8')).trim();
  return {
    home,
    key,
    httpPort,
    pid: child.pid,
    api: (method, path, body) => callApi(`http://127.0.0.1:${httpPort}/api/v2${path}`, key, method, body),
    stop: async () => {
      child.kill('SIGINT');
      await once(child, 'exit');
      if (env.CATNAP_HOME === undefined) await rm(home, { recursive: true, force: true });
    },
  };
}

/** What benchmarks of data run on: the filesystem of the temporary directory, and an XFS image, which shares blocks. */
export const places = ['plain', 'xfs'];

/** Runs `work` with a Catnap in a new home on one of the places; `gigabytes` is the size of the image. */
export async function withCatnapOn(place, gigabytes, work) {
  const home = await makeHome();
  let catnap;
  try {
    if (place === 'xfs') runCatnap(home, ['storage', 'create', '--size', `${gigabytes}G`, '--yes']);
    catnap = await startCatnap({ CATNAP_HOME: home });
    return await work(catnap);
  } catch (error) {
    // What follows may fail for the same reason, and would hide it.
    console.error(error);
    throw error;
  } finally {
    await catnap?.stop();
    if (existsSync(join(home, 'storage'))) spawnSync('umount', [join(home, 'storage')]);
    await rm(home, { recursive: true, force: true });
  }
}

const pause = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

/** A compute that has answered once, and how to put it to sleep: `suspend` returns when it is idle. */
export async function makeCompute(catnap) {
  const made = await catnap.api('POST', '/projects', { project: {} });
  const connection = { connectionString: made.connection_uris[0].connection_uri };
  const path = `/projects/${made.project.id}/endpoints/${made.endpoints[0].id}`;
  await selectOne(connection);
  const suspend = async () => {
    await catnap.api('POST', `${path}/suspend`);
    while ((await catnap.api('GET', path)).endpoint.current_state !== 'idle') await pause();
  };
  return { connection, suspend, path, projectId: made.project.id, branchId: made.branch.id };
}

async function callApi(url, key, method, body) {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const reply = await response.json();
  if (!response.ok) throw new Error(`${method} ${url}: ${reply.message}`);
  return reply;
}

export const selectOne = (connection) => ask(connection, 'select 1');

export async function ask(connection, statement) {
  const client = new pg.Client(connection);
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(statement);
  } finally {
    await client.end().catch(() => undefined);
  }
}

export async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return String(port);
}
