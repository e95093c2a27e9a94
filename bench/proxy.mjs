/**
 * `pgbench -S` and connections per second: directly to the server, through PgBouncer, and through Catnap; plain beside
 * plain, TLS beside TLS. The targets take turns, so that a busy moment of the machine affects all of them, and a ratio
 * is the median of the ratios within each turn. Beside it is the processor time of the pooler or proxy itself for one
 * transaction, which other work on the machine changes little; with many clients their logins are in it.
 *
 *     BENCH_SECONDS=5 BENCH_REPEATS=5 BENCH_CLIENTS=1,8,32,1000 npm run bench -- proxy
 *     BENCH_PARTS=sessions,transactions,connects,many BENCH_TLS=plain,tls npm run bench -- proxy
 *     BENCH_RUNTIMES=node,bun BENCH_PGBOUNCER=/path/to/another/pgbouncer npm run bench -- proxy
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { startCatnap } from './catnap.mjs';
import { benchManyClients } from './many-clients.mjs';
import { keep } from './measures.mjs';
import { bouncerVersion, findProgram, programs } from './pgbouncer.mjs';
import { cpuSecondsOf } from './processes.mjs';
import { makeServer, withBouncer } from './proxy-targets.mjs';
import { summarize } from './stats.mjs';

const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const clientCounts = (process.env.BENCH_CLIENTS ?? '1,8,32,1000').split(',').map(Number);
const parts = (process.env.BENCH_PARTS ?? 'sessions,transactions,connects,many').split(',');
const titles = (process.env.BENCH_TLS ?? 'plain,tls').split(',');
/** One Catnap for each; the last one is what is kept. */
const runtimes = (process.env.BENCH_RUNTIMES ?? process.env.CATNAP_PROXY_RUNTIME ?? 'auto').split(',');
/** More sessions than this would keep the server busy with themselves; only a pool gets more clients. */
const sessionsMax = 90;
/** What each of many clients asks for a second of measurement; a thousand of them take about two for it. */
const manyPerSecond = 33;

export async function benchProxy() {
  const missing = ['pgbench', 'pgbouncer'].filter((name) => findProgram(name) === null);
  if (missing.length > 0) {
    console.error(`bench: proxy needs ${missing.join(' and ')}; on Debian: apt install postgresql-15 pgbouncer`);
    console.error('       (PgBouncer 1.21 or newer also pools prepared statements)');
    process.exitCode = 1;
    return;
  }
  const started = [];
  try {
    const ours = [];
    for (const runtime of runtimes) {
      const catnap = await startCatnap({ CATNAP_PROXY_RUNTIME: runtime });
      started.push(catnap);
      ours.push(await makeServer(catnap, runtimes.length > 1 ? `, ${runtime}` : ''));
    }
    // Equal servers, so that neither side holds connections that the other one needs.
    const theirs = await makeServer(started[0]);
    for (const { direct } of [theirs, ...ours]) await pgbench(direct, ['-i', '-q', '-s', '10']);
    for (const title of titles) await benchWays(theirs, ours, title === 'tls');
    if (parts.includes('many')) {
      for (const [index, server] of ours.entries()) {
        await benchManyClients({ ...server, runtime: runtimes[index], parentPid: started[index].pid });
      }
    }
  } finally {
    for (const catnap of started) await catnap.stop();
  }
}

async function benchWays(theirs, ours, tls) {
  const title = tls ? 'TLS' : 'plain';
  const bare = tls ? [] : [theirs.direct];
  const modes = [
    ['sessions', 'session', bare, ours.map((server) => server.sessions(tls))],
    ['transactions', 'transaction', bare, ours.map((server) => server.pooled(tls))],
  ];
  for (const [part, mode, before, targets] of modes) {
    if (!parts.includes(part)) continue;
    await withBouncer(theirs, mode, tls, (peer) =>
      compare(`${part}, ${title}`, [...before, peer, ...targets], peer, clientCounts),
    );
  }
  if (!parts.includes('connects')) return;
  for (const [, mode, before, targets] of modes) {
    await withBouncer(theirs, mode, tls, (peer) => compareConnects(title, [...before, peer, ...targets], peer));
  }
}

/** PgBouncer before 1.21 has no prepared statements in transaction mode. */
function cannot(target, protocol, clients) {
  if (clients > sessionsMax && !target.isPool) return 'n/a: more clients than the server takes';
  return protocol === 'prepared' && target.lacksPrepared ? 'n/a: PgBouncer before 1.21' : null;
}

async function compare(title, targets, peer, counts) {
  console.log(`\npgbench -S, transactions a second: ${title} (${seconds} s, n=${repeats}, ratio to ${peer.name})`);
  header();
  for (const clients of counts) {
    for (const protocol of ['simple', 'prepared']) {
      const areMany = clients > 32;
      const threads = areMany ? Math.min(2, availableParallelism()) : 1;
      const words = ['-n', '-S', '-M', protocol, '-c', clients, '-j', threads];
      const reason = (target) => cannot(target, protocol, clients);
      // pgbench's time runs while it connects, which takes many clients longer than the measurement itself.
      const amount = areMany ? ['-t', seconds * manyPerSecond] : ['-T', seconds];
      const samples = await measure(`${protocol}, ${clients}`, targets, peer, [...words, ...amount], reason);
      keepRates(`${title}, ${protocol}`, samples, peer, { at: clients, of: 'clients' });
    }
  }
}

async function compareConnects(title, targets, peer) {
  console.log(`\npgbench -S -C, connections a second: ${title} (${seconds} s, n=${repeats}, ratio to ${peer.name})`);
  header();
  const words = ['-n', '-S', '-C', '-c', 4, '-j', 1, '-T', seconds];
  const samples = await measure('connect, 4', targets, peer, words, () => null);
  keepRates(`connections, ${peer.isPool ? 'pooled' : 'direct'}, ${title}`, samples, peer, {});
}

async function measure(what, targets, peer, words, reason) {
  const samples = new Map(targets.map((target) => [target, []]));
  const costs = new Map(targets.map((target) => [target, []]));
  for (let turn = 0; turn < repeats; turn++) {
    for (const target of targets) {
      if (reason(target) !== null) continue;
      const before = await cpuSecondsOf(target.pids);
      const output = await pgbench(target, words);
      samples.get(target).push(tpsOf(output));
      costs.get(target).push(((await cpuSecondsOf(target.pids)) - before) / transactionsOf(output));
    }
  }
  printRows(what, samples, costs, peer, reason);
  return samples;
}

/** The last target is ours. */
function keepRates(what, samples, peer, where) {
  const ours = [...samples.values()].at(-1);
  const beside = `${peer.name} ${bouncerVersion()}`;
  const atLeast = what.includes('TLS') ? 0.9 : 0.95;
  if (ours.length > 0) keep({ what, unit: '/s', ours, peer: samples.get(peer), beside, atLeast, ...where });
}

const header = () =>
  console.log(
    `  ${'what'.padEnd(18)}${'where'.padEnd(24)}${'median'.padStart(9)}${'min'.padStart(9)}${'max'.padStart(9)}` +
      '   ratio  its CPU',
  );

function printRows(what, samples, costs, peer, reason) {
  const base = samples.get(peer);
  for (const [target, found] of samples) {
    const start = `  ${what.padEnd(18)}${target.name.padEnd(24)}`;
    if (found.length === 0) {
      console.log(`${start}  ${reason(target)}`);
      continue;
    }
    const { median, min, max } = summarize(found);
    const cells = [median, min, max].map((tps) => tps.toFixed(0).padStart(9)).join('');
    const ratios = base.map((tps, turn) => found[turn] / tps);
    const ratio = ratios.length === 0 ? 'n/a' : summarize(ratios).median.toFixed(2);
    const micros = (summarize(costs.get(target)).median * 1e6).toFixed(0);
    console.log(`${start}${cells}   ${ratio.padEnd(5)}${target.pids.length === 0 ? '' : `${micros.padStart(6)} µs`}`);
  }
}

const transactionsOf = (output) => Number(/actually processed: (\d+)/.exec(output)?.[1] ?? 0);
const tpsOf = (output) => Number(/tps = ([\d.]+)/.exec(output)?.[1] ?? 0);

function pgbench(target, words) {
  return new Promise((resolve, reject) => {
    const child = spawn(findProgram('pgbench'), words.map(String), { env: { ...programs, ...target.env } });
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (complaint += chunk));
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`pgbench ${words.join(' ')} at ${target.name}: ${complaint.trim()}`));
    });
  });
}
