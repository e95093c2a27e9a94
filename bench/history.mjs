/**
 * A table is dropped by mistake: from the call that restores the branch to the second before until the table answers at
 * the old connection string, for data of several sizes and log of several lengths since the last base image; beside
 * `pgbackrest restore --type=time` of the same data in the same run. Then what it costs to keep a history: pgbench with
 * one and without, wakes and suspends with one and without, and bytes kept for bytes written. As root.
 * BENCH_HISTORY_ON (xfs,plain), BENCH_HISTORY_POINTS (size:log in MB:turns; 10G and logs of 5000 MB take minutes a
 * turn) and BENCH_HISTORY_TURNS of the cost (5) choose; BENCH_PGBACKREST names a pgBackRest of one's own.
 */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { findBuild } from './bare-postgres.mjs';
import { ask, selectOne, withCatnapOn } from './catnap.mjs';
import { keep } from './measures.mjs';
import { findPgBackRest, startPeer } from './pgbackrest.mjs';
import { findPgbench, preparePgbench, runPgbench } from './pgbench.mjs';
import { printTable, timed } from './stats.mjs';

const listOf = (name, usual) => (process.env[name] ?? usual).split(',').filter((word) => word !== '');
const places = listOf('BENCH_HISTORY_ON', 'xfs,plain');
const points = listOf('BENCH_HISTORY_POINTS', '100M:1:3,100M:100:3,100M:1000:3,1G:1:3,1G:100:3,1G:1000:3')
  .map((point) => point.split(':'))
  .map(([size, megabytes, repeats]) => ({ size, megabytes: Number(megabytes), repeats: Number(repeats) }));
const sizes = [...new Set(points.map(({ size }) => size))];
const turns = Number(process.env.BENCH_HISTORY_TURNS ?? 5);
const scales = { '100M': 5, '1G': 66, '10G': 660 };
/** Sparse; every turn leaves a branch with its log behind, in the history too. */
const imageGb = { '100M': 24, '1G': 40, '10G': 70 };
const peerName = 'pgbackrest restore --type=time, and start';
const count = 'select count(*) from precious';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchHistory() {
  if (process.getuid() !== 0) return console.log('\nHistory: not measured here: only root can mount an XFS image');
  if (findPgbench() === null) return console.log('\nHistory: not measured here: pgbench is not installed');
  if (findPgBackRest() === null) console.log('\nHistory: pgBackRest is not installed; measured without a peer');
  for (const place of places) {
    for (const size of sizes) await inNewHome(place, size, (context) => measureRestores(place, size, context));
    if (turns > 0) await inNewHome(place, '100M', (context) => measureCost(place, context));
  }
}

function inNewHome(place, size, work) {
  return withCatnapOn(place, imageGb[size], async (catnap) => {
    const made = await catnap.api('POST', '/projects', {
      project: {
        default_endpoint_settings: {
          autoscaling_limit_min_cu: 2,
          autoscaling_limit_max_cu: 2,
          suspend_timeout_seconds: -1,
        },
      },
    });
    const uri = made.connection_uris[0].connection_uri;
    await preparePgbench(uri, scales[size]);
    await work({ catnap, home: catnap.home, uri, made });
  });
}

async function measureRestores(place, size, context) {
  const { home, uri } = context;
  const root = place === 'xfs' ? join(home, 'storage') : home;
  const build = await findBuild(home, 17, root);
  for (const { megabytes, repeats } of points.filter((point) => point.size === size)) {
    const ours = [];
    const theirs = [];
    for (let turn = 0; turn < repeats; turn++) {
      ours.push(await restoreOurs(context, megabytes, turn));
      if (findPgBackRest() !== null) theirs.push(await restoreTheirs(build, join(root, 'peer'), size, megabytes));
    }
    const title = `DROP TABLE undone, ${size} of data, ${megabytes} MB of log, ${place} (ms)`;
    const rows = [['Catnap: until the table answers', ours]];
    printTable(
      title,
      theirs.length > 0 ? [[peerName, theirs], ...rows] : rows,
      theirs.length > 0 ? peerName : undefined,
    );
    keep({
      what: `DROP TABLE undone, ${size} of data, ${place}`,
      at: megabytes,
      of: 'MB of log',
      unit: 'ms',
      ours,
      peer: theirs,
      beside: peerName,
      atMost: place === 'xfs' ? 1 : 1.2,
    });
  }
  await ask({ connectionString: uri }, 'select 1');
}

async function restoreOurs({ catnap, uri, made }, megabytes, turn) {
  const path = `/projects/${made.project.id}`;
  await ask({ connectionString: uri }, 'drop table if exists precious, filler');
  // A sleep makes the base image, as a backup does for the peer.
  await settled(catnap, made, await catnap.api('POST', `${path}/endpoints/${endpointOf(made)}/suspend`));
  await selectOne({ connectionString: uri });
  await untilKept(catnap, made);
  const moment = await loseTable({ connectionString: uri }, megabytes);
  const startedAt = performance.now();
  await catnap.api('POST', `${path}/branches/${made.branch.id}/restore`, {
    source_branch_id: made.branch.id,
    source_timestamp: moment,
    preserve_under_name: `before-${megabytes}-${turn}-${Date.now()}`,
  });
  await untilAnswered(uri);
  return performance.now() - startedAt;
}

const endpointOf = (made) => made.endpoints[0].id;

async function settled(catnap, made, { operations }) {
  for (const { id } of operations) {
    for (;;) {
      const { operation } = await catnap.api('GET', `/projects/${made.project.id}/operations/${id}`);
      if (operation.status === 'finished') break;
      await pause(20);
    }
  }
}

/** A restored branch begins a new history, seconds after it was restored. */
async function untilKept(catnap, made) {
  for (;;) {
    const { history } = await catnap.api('GET', `/projects/${made.project.id}/branches/${made.branch.id}/history`);
    if (history.until_lsn !== undefined) return;
    await pause(200);
  }
}

/** Until the restore is under way the old data answers, without the table. */
async function untilAnswered(uri) {
  for (;;) {
    try {
      return await ask({ connectionString: uri }, count);
    } catch {
      await pause(10);
    }
  }
}

async function restoreTheirs(build, folder, size, megabytes) {
  await rm(folder, { recursive: true, force: true });
  const peer = await startPeer(build, folder);
  try {
    const { host, user, database } = peer.login;
    await preparePgbench(`postgresql:///${database}?host=${encodeURIComponent(host)}&user=${user}`, scales[size]);
    await peer.backup();
    // It counts in seconds, and finds no backup for a moment within the second in which that ended.
    await pause(2_000);
    const moment = await loseTable(peer.login, megabytes);
    await ask(peer.login, 'select pg_switch_wal()');
    return await peer.restore(moment, count);
  } finally {
    await peer.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Writes so much log, and drops a table a second after the moment that it returns. */
async function loseTable(connection, megabytes) {
  const client = new pg.Client(connection);
  await client.connect();
  await client.query('create table precious as select generate_series(1, 1000) as n');
  await client.query('create table filler (id bigint generated always as identity primary key, text text)');
  const { rows } = await client.query('select pg_current_wal_lsn() as lsn');
  for (;;) {
    const text = 'select repeat(md5(random()::text), 30) from generate_series(1, 900)';
    await client.query(`insert into filler (text) ${text}`);
    const { rows: now } = await client.query('select pg_current_wal_lsn() - $1 as bytes', [rows[0].lsn]);
    if (Number(now[0].bytes) >= megabytes * 1e6) break;
  }
  const { rows: moment } = await client.query(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' as at`,
  );
  await pause(1_000);
  await client.query('drop table precious');
  await client.end();
  return moment[0].at.replace(' ', 'T').replace('+00', 'Z');
}

async function measureCost(place, { catnap, uri, made, home }) {
  const path = `/projects/${made.project.id}`;
  const retain = (seconds) => catnap.api('PATCH', path, { project: { history_retention_seconds: seconds } });
  const tps = { on: [], off: [] };
  const naps = { on: { wake: [], suspend: [] }, off: { wake: [], suspend: [] } };
  for (let turn = 0; turn < turns; turn++) {
    for (const [name, seconds] of [
      ['on', 86_400],
      ['off', 0],
    ]) {
      await retain(seconds);
      const { perSecond } = await runPgbench(uri, { clients: 4, seconds: 10, words: ['-N'] });
      tps[name].push(perSecond);
      naps[name].suspend.push(
        await timed(async () =>
          settled(catnap, made, await catnap.api('POST', `${path}/endpoints/${endpointOf(made)}/suspend`)),
        ),
      );
      // The rest of the log is copied behind the back of a stop; who wakes a compute has usually let it sleep.
      await pause(2_000);
      naps[name].wake.push(await timed(() => selectOne({ connectionString: uri })));
    }
  }
  printTable(
    `pgbench -N -c 4, transactions a second, ${place}`,
    [
      ['without history', tps.off],
      ['with', tps.on],
    ],
    'without history',
  );
  const beside = 'without history';
  keep({
    what: `pgbench -N -c 4 with history, ${place}`,
    unit: 'transactions/s',
    ours: tps.on,
    peer: tps.off,
    beside,
    atLeast: 0.9,
  });
  for (const what of ['wake', 'suspend']) {
    keep({
      what: `${what} after pgbench with history, ${place}`,
      unit: 'ms',
      ours: naps.on[what],
      peer: naps.off[what],
      beside,
      atMost: 1.05,
    });
    printTable(
      `${what} after pgbench, ${place} (ms)`,
      [
        ['without history', naps.off[what]],
        ['with', naps.on[what]],
      ],
      'without history',
    );
  }
  await retain(86_400);
  await measureBytes(place, { catnap, uri, made, home });
}

/** What is kept of log that was written since the last base image, when all of it has arrived in the history. */
async function measureBytes(place, { catnap, uri, made, home }) {
  await untilKept(catnap, made);
  const folder = join(place === 'xfs' ? join(home, 'storage') : home, 'history', made.project.id);
  const sizeOf = () => Number(String(spawnSync('du', ['-sB1', folder]).stdout).split('\t')[0]);
  const [before, from] = [sizeOf(), await logPosition(uri)];
  await runPgbench(uri, { clients: 4, seconds: 30, words: ['-N'] });
  const until = await logPosition(uri);
  for (;;) {
    const { history } = await catnap.api('GET', `/projects/${made.project.id}/branches/${made.branch.id}/history`);
    if (positionOf(history.until_lsn) >= until) break;
    await pause(200);
  }
  const [kept, written] = [sizeOf() - before, until - from];
  const gb = (bytes) => (bytes / 1e9).toFixed(2);
  console.log(`\n  ${gb(written)} GB of log written in 30 s of pgbench -N, ${gb(kept)} GB more on the disk`);
  console.log(`  ${(kept / written).toFixed(2)} GB kept for each GB of log written (${place})`);
  keep({ what: `kept for each GB of log written, ${place}`, unit: 'GB', ours: [kept / written] });
}

function positionOf(lsn) {
  const [high, low] = lsn.split('/').map((half) => Number.parseInt(half, 16));
  return high * 2 ** 32 + low;
}

async function logPosition(uri) {
  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  const { rows } = await client.query(`select (pg_current_wal_lsn() - '0/0')::bigint as bytes`);
  await client.end();
  return Number(rows[0].bytes);
}
