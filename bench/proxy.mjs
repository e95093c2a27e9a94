/**
 * `pgbench -S` and connections per second: straight to the server, through PgBouncer, and through Catnap; plain beside
 * plain, TLS beside TLS. Repeats take turns, so that a busy moment of the machine hits everybody, and a ratio is the
 * median of those within each turn.
 *
 *     BENCH_SECONDS=5 BENCH_REPEATS=3 BENCH_CLIENTS=1,8,32,1000 npm run bench -- proxy
 *     BENCH_PARTS=sessions,transactions,connects,many BENCH_TLS=plain,tls npm run bench -- proxy
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { startCatnap } from './catnap.mjs';
import { benchManyClients } from './many-clients.mjs';
import { findProgram, programs } from './pgbouncer.mjs';
import { makeServer, withBouncer } from './proxy-places.mjs';
import { summarize } from './stats.mjs';

const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const repeats = Number(process.env.BENCH_REPEATS ?? 3);
const clientCounts = (process.env.BENCH_CLIENTS ?? '1,8,32,1000').split(',').map(Number);
const parts = (process.env.BENCH_PARTS ?? 'sessions,transactions,connects,many').split(',');
const titles = (process.env.BENCH_TLS ?? 'plain,tls').split(',');
/** Beyond this a server would be busy with its sessions; only a pool is asked for more. */
const sessionsMax = 90;

export async function benchProxy() {
  const missing = ['pgbench', 'pgbouncer'].filter((name) => findProgram(name) === null);
  if (missing.length > 0) {
    console.error(`bench: proxy needs ${missing.join(' and ')}; on Debian: apt install postgresql-15 pgbouncer`);
    console.error('       (PgBouncer 1.21 or newer also pools prepared statements)');
    process.exitCode = 1;
    return;
  }
  const catnap = await startCatnap();
  try {
    // Two equal servers, so that neither side holds connections that the other wants.
    const theirs = await makeServer(catnap);
    const ours = await makeServer(catnap);
    for (const { direct } of [theirs, ours]) await pgbench(direct, ['-i', '-q', '-s', '10']);
    for (const title of titles) await benchWays(theirs, ours, title === 'tls');
    if (parts.includes('many')) await benchManyClients({ ...ours, parentPid: catnap.pid });
  } finally {
    await catnap.stop();
  }
}

async function benchWays(theirs, ours, tls) {
  const title = tls ? 'TLS' : 'plain';
  const straight = tls ? [] : [theirs.direct];
  const modes = [
    ['sessions', 'session', straight, ours.sessions(tls)],
    ['transactions', 'transaction', straight, ours.pooled(tls)],
  ];
  for (const [part, mode, before, place] of modes) {
    if (!parts.includes(part)) continue;
    await withBouncer(theirs, mode, tls, (peer) =>
      compare(`${part}, ${title}`, [...before, peer, place], peer, clientCounts),
    );
  }
  if (!parts.includes('connects')) return;
  for (const [, mode, before, place] of modes) {
    await withBouncer(theirs, mode, tls, (peer) => compareConnects(title, [...before, peer, place], peer));
  }
}

/** PgBouncer before 1.21 has no prepared statements in transaction mode. */
function cannot(place, protocol, clients) {
  if (clients > sessionsMax && !place.isPool) return 'n/a: more clients than the server takes';
  return protocol === 'prepared' && place.lacksPrepared ? 'n/a: PgBouncer before 1.21' : null;
}

async function compare(title, places, peer, counts) {
  console.log(`\npgbench -S, transactions a second: ${title} (${seconds} s, n=${repeats}, ratio to ${peer.name})`);
  header();
  for (const clients of counts) {
    for (const protocol of ['simple', 'prepared']) {
      const threads = clients > 32 ? Math.min(2, availableParallelism()) : 1;
      // pgbench's time runs while it connects, at some hundreds a second with SCRAM.
      const duration = seconds + Math.round(clients / 100);
      const words = ['-n', '-S', '-M', protocol, '-c', clients, '-j', threads, '-T', duration];
      await measure(`${protocol}, ${clients}`, places, peer, words, (place) => cannot(place, protocol, clients));
    }
  }
}

async function compareConnects(title, places, peer) {
  console.log(`\npgbench -S -C, connections a second: ${title} (${seconds} s, n=${repeats}, ratio to ${peer.name})`);
  header();
  await measure('connect, 4', places, peer, ['-n', '-S', '-C', '-c', 4, '-j', 1, '-T', seconds], () => null);
}

async function measure(what, places, peer, words, reason) {
  const samples = new Map(places.map((place) => [place, []]));
  for (let turn = 0; turn < repeats; turn++) {
    for (const place of places) {
      if (reason(place) === null) samples.get(place).push(tpsOf(await pgbench(place, words)));
    }
  }
  printRows(what, samples, peer, reason);
}

const header = () =>
  console.log(
    `  ${'what'.padEnd(18)}${'where'.padEnd(24)}${'median'.padStart(9)}${'min'.padStart(9)}${'max'.padStart(9)}   ratio`,
  );

function printRows(what, samples, peer, reason) {
  const base = samples.get(peer);
  for (const [place, found] of samples) {
    const start = `  ${what.padEnd(18)}${place.name.padEnd(24)}`;
    if (found.length === 0) {
      console.log(`${start}  ${reason(place)}`);
      continue;
    }
    const { median, min, max } = summarize(found);
    const cells = [median, min, max].map((tps) => tps.toFixed(0).padStart(9)).join('');
    const ratios = base.map((tps, turn) => found[turn] / tps);
    console.log(`${start}${cells}   ${ratios.length === 0 ? 'n/a' : summarize(ratios).median.toFixed(2)}`);
  }
}

const tpsOf = (output) => Number(/tps = ([\d.]+)/.exec(output)?.[1] ?? 0);

function pgbench(place, words) {
  return new Promise((resolve, reject) => {
    const child = spawn(findProgram('pgbench'), words.map(String), { env: { ...programs, ...place.env } });
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (complaint += chunk));
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`pgbench ${words.join(' ')} at ${place.name}: ${complaint.trim().split('\n').at(-1)}`));
    });
  });
}
