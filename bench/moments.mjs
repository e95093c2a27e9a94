/**
 * Any moment of a branch: writers log what was acknowledged when, while the compute is suspended, restarted, resized and
 * killed, and Catnap's own processes too; then branches are made at moments drawn from that log, by time and by LSN.
 * Each must hold every row that was acknowledged before its moment, and none that was begun after it.
 * BENCH_MOMENTS_MINUTES (10) and BENCH_MOMENTS_BRANCHES (30) choose less.
 */

import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { startCatnap } from './catnap.mjs';
import { printTable } from './stats.mjs';

const minutes = Number(process.env.BENCH_MOMENTS_MINUTES ?? 10);
const branches = Number(process.env.BENCH_MOMENTS_BRANCHES ?? 30);
const writerCount = 3;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchMoments() {
  const catnap = await startCatnap();
  try {
    const made = await catnap.api('POST', '/projects', { project: { name: 'moments' } });
    const uri = made.connection_uris[0].connection_uri;
    await query(uri, 'create table log (writer int, n int, primary key (writer, n))');
    const state = { isOver: false, rows: [], moments: [], errors: 0 };
    const writers = Array.from({ length: writerCount }, (_, writer) => write(uri, writer, state));
    const faults = await disturb(catnap, made, Date.now() + minutes * 60_000);
    state.isOver = true;
    await Promise.all(writers);
    console.log(
      `\nMoments: ${state.rows.length} rows acknowledged in ${minutes} minutes, ${state.errors} lost connections`,
    );
    console.log(
      `  faults: ${Object.entries(faults)
        .map(([name, n]) => `${n} × ${name}`)
        .join(', ')}`,
    );
    await checkAll(catnap, made, uri, state);
  } finally {
    await catnap.stop();
  }
}

/** A row counts as acknowledged with the reply to its insert; then the moment after it is read. */
async function write(uri, writer, state) {
  let [n, begunAt] = [0, null];
  while (!state.isOver) {
    const client = new pg.Client({ connectionString: uri, query_timeout: 30_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      while (!state.isOver) {
        // A row whose reply was lost may be there all the same: it counts from its first attempt on.
        begunAt ??= Date.now();
        await client.query('insert into log values ($1, $2) on conflict do nothing', [writer, n]);
        state.rows.push({ writer, n, begunAt, ackedAt: Date.now() });
        begunAt = null;
        n++;
        if (n % 20 === 0) await readMoment(client, state);
        await pause(5);
      }
    } catch {
      state.errors++;
      await pause(50);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

async function readMoment(client, state) {
  const before = Date.now();
  const { rows } = await client.query(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
            pg_current_wal_lsn()::text as lsn`,
  );
  state.moments.push({ ...rows[0], before, after: Date.now() });
}

async function disturb(catnap, made, until) {
  const path = `/projects/${made.project.id}/endpoints/${made.endpoints[0].id}`;
  const post = (what) => catnap.api('POST', `${path}/${what}`).catch(() => undefined);
  const kinds = {
    suspend: () => post('suspend'),
    restart: () => post('restart'),
    resize: () =>
      catnap
        .api('PATCH', path, { endpoint: { autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: randomInt(1, 3) } })
        .catch(() => undefined),
    'kill -9 of the server': () => kill((words) => words.includes('-D') && words.includes(made.branch.id)),
    'kill -9 of the worker': () => kill((words) => words.includes('child.js worker')),
    'kill -9 of the proxy': () => kill((words) => words.includes('child.js proxy')),
  };
  const counts = {};
  while (Date.now() < until) {
    await pause(randomInt(4_000, 12_000));
    const names = Object.keys(kinds);
    const name = names[randomInt(names.length)];
    if ((await kinds[name]()) !== false) counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;

  function kill(isWanted) {
    const descendants = processesUnder(catnap.pid, made.branch.id);
    for (const { pid, words } of descendants) {
      if (!isWanted(words)) continue;
      try {
        return process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
        return false;
      }
    }
    return false;
  }
}

/** Catnap's children, and the server of the branch, which is nobody's child. */
function processesUnder(parent, branchId) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
        const ppid = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1]);
        const isOurs = ppid === parent || (words.includes(` -D `) && words.includes(branchId));
        return isOurs ? [{ pid: Number(name), words }] : [];
      } catch {
        return [];
      }
    });
}

async function checkAll(catnap, made, uri, state) {
  const path = `/projects/${made.project.id}/branches`;
  const took = [];
  let [missing, surplus] = [0, 0];
  for (let turn = 0; turn < branches; turn++) {
    const moment = state.moments[randomInt(state.moments.length)];
    const parent = turn % 2 === 0 ? { parent_timestamp: moment.at } : { parent_lsn: moment.lsn };
    const startedAt = performance.now();
    const { branch, endpoints } = await catnap.api('POST', path, {
      branch: { parent_id: made.branch.id, ...parent },
      endpoints: [{ type: 'read_write' }],
    });
    const there = await query(uri.replaceAll(made.endpoints[0].id, endpoints[0].id), 'select writer, n from log');
    took.push(performance.now() - startedAt);
    const found = new Set(there.map(({ writer, n }) => `${writer} ${n}`));
    const has = ({ writer, n }) => found.has(`${writer} ${n}`);
    const gone = state.rows.filter((row) => row.ackedAt < moment.before && !has(row));
    const early = state.rows.filter((row) => row.begunAt > moment.after && has(row));
    [missing, surplus] = [missing + gone.length, surplus + early.length];
    if (gone.length + early.length > 0) {
      console.log(
        `  WRONG at ${JSON.stringify(moment)}: missing ${JSON.stringify(gone.slice(0, 3))}, too early ${JSON.stringify(early.slice(0, 3))}`,
      );
    }
    await catnap.api('DELETE', `${path}/${branch.id}`);
  }
  printTable(`${branches} branches at moments, half by time, half by LSN (ms)`, [['until its rows are read', took]]);
  console.log(`  rows missing: ${missing}; rows from after the moment: ${surplus}`);
  if (missing + surplus > 0) process.exitCode = 1;
}

async function query(uri, text) {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
