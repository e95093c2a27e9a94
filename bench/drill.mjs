/**
 * The drill: an installation under load, its home deleted, restored from its store. Prints the recovery point (how long
 * before the loss the newest row was committed that is still there) and the recovery time.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { freePort, makeHome, runCatnap, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';

const entry = fileURLToPath(new URL('../dist/bin.js', import.meta.url));
const count = Number(process.env.BENCH_DRILL_PROJECTS ?? 20);
const loadMs = Number(process.env.BENCH_DRILL_SECONDS ?? 60) * 1_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchDrill() {
  const store = await mkdtemp(join(tmpdir(), 'cnb-store-'));
  await chmod(store, 0o777);
  const home = await makeHome();
  // The restored installation must be found at the same address.
  const ports = { CATNAP_PG_PORT: String(await freePort()), CATNAP_HTTP_PORT: String(await freePort()) };
  const env = { CATNAP_HOME: home, CATNAP_BACKUP_URL: `file://${store}`, ...ports };
  let catnap = await startCatnap(env);
  try {
    const projects = [];
    for (let n = 0; n < count; n++) {
      const { project, connection_uris } = await catnap.api('POST', '/projects', { project: { name: `drill ${n}` } });
      projects.push({ id: project.id, uri: connection_uris[0].connection_uri, written: [] });
    }
    const writers = projects.map(write);
    await pause(loadMs);
    await untilStored(catnap, count + 1);
    const key = runCatnap(home, ['backup', 'key']).trim();
    process.kill(catnap.pid, 'SIGKILL');
    for (const pid of await pidsIn(home)) process.kill(pid, 'SIGKILL');
    const lostAt = Date.now();
    await Promise.all(writers);
    await unmountIn(home);
    await rm(home, { recursive: true, force: true, maxRetries: 10 });

    const startedAt = Date.now();
    await restore(store, home, key);
    const restoredAt = Date.now();
    catnap = await startCatnap(env);
    let firstAt = 0;
    const lags = [];
    for (const project of projects) {
      const last = Number(await ask(project.uri, 'select max(n) from written'));
      const rows = Number(await ask(project.uri, 'select count(*) from written'));
      if (rows !== last) throw new Error(`${project.id} has ${rows} rows of ${last}`);
      firstAt ||= Date.now();
      lags.push(lostAt - project.written[last - 1]);
    }
    const everyAt = Date.now();
    const inSeconds = (ms) => ms / 1_000;
    const of = 'projects';
    // What docs/backup.md promises.
    keep({ what: 'recovery point', unit: 's', ours: lags.map(inSeconds), atMost: 60, at: count, of });
    keep({ what: 'restored', unit: 's', ours: [inSeconds(restoredAt - startedAt)], at: count, of });
    keep({ what: 'every project has answered', unit: 's', ours: [inSeconds(everyAt - startedAt)], at: count, of });
    const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;
    console.table({
      projects: count,
      'rows written': projects.reduce((sum, { written }) => sum + written.length, 0),
      'recovery point, worst': seconds(Math.max(...lags)),
      'recovery point, median': seconds(lags.sort((a, b) => a - b)[lags.length >> 1]),
      'restored after': seconds(restoredAt - startedAt),
      'first project answers after': seconds(firstAt - startedAt),
      'every project answers after': seconds(everyAt - startedAt),
    });
  } finally {
    await catnap.stop().catch(() => undefined);
    await unmountIn(home);
    await rm(store, { recursive: true, force: true });
    await rm(home, { recursive: true, force: true });
  }
}

/** One number after the other, each committed, until the server is gone. */
async function write({ uri, written }) {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('create table written (n int)');
    for (let n = 1; ; n++) {
      await client.query('insert into written values ($1)', [n]);
      written.push(Date.now());
      await pause(20);
    }
  } catch {
    // The machine is lost.
  }
}

async function untilStored(catnap, wanted) {
  for (let tries = 0; tries < 600; tries++) {
    const { histories } = await catnap.api('GET', '/backup');
    if (histories.filter(({ stored_until }) => stored_until !== null).length >= wanted) return;
    await pause(500);
  }
  throw new Error('the store does not have every project');
}

async function restore(store, home, key) {
  const child = spawn(process.execPath, [entry, 'restore', '--from', `file://${store}`], {
    env: { ...process.env, CATNAP_HOME: home, CATNAP_BACKUP_KEY: key },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  if (code !== 0) throw new Error(`catnap restore ended with exit code ${code}`);
}

async function pidsIn(home) {
  const found = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (words.includes(`${home}/`)) found.push(Number(pid));
  }
  return found;
}

/** As root, each compute that was awake has left the disk of its temporary files. */
async function unmountIn(home) {
  const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const path of mounts.filter((one) => one.startsWith(`${home}/`)).reverse()) spawnSync('umount', ['-l', path]);
}

async function ask(uri, text) {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    const [row] = (await client.query(text)).rows;
    return Object.values(row)[0];
  } finally {
    await client.end();
  }
}
