/**
 * One-row selects by clients that have no Postgres connection of their own: SQL over HTTP and the serverless driver's
 * WebSocket, beside a pool of `pg` in a bare Fastify route on the same server. The targets take turns, so that a busy
 * moment of the machine affects all of them, and a ratio is the median of the ratios within each turn.
 *
 *     BENCH_SECONDS=3 BENCH_REPEATS=5 BENCH_CLIENTS=1,8 npm run bench -- serverless
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from '@neondatabase/serverless';
import { WebSocket } from 'ws';
import { startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { makeServer } from './proxy-targets.mjs';
import { summarize } from './stats.mjs';

const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const clientCounts = (process.env.BENCH_CLIENTS ?? '1,8').split(',').map(Number);
const query = 'select $1::int as n';
/** Before the first turn: connections are opened, and code is compiled. */
const warmUpSeconds = 1;

export async function benchServerless() {
  const catnap = await startCatnap();
  const peer = { close: () => {} };
  try {
    const { socket, login, uri } = await makeServer(catnap);
    const child = fork(fileURLToPath(new URL('fastify-peer.mjs', import.meta.url)), [
      JSON.stringify({ host: socket, ...login }),
    ]);
    peer.close = () => child.disconnect();
    const [port] = await once(child, 'message');
    const targets = [
      ['pg pool in Fastify', () => overHttp(port, {})],
      ['Catnap /sql', () => overHttp(catnap.httpPort, { 'neon-connection-string': uri })],
      ['Catnap WebSocket', () => overWebSocket(catnap.httpPort, uri)],
    ];
    for (const clients of clientCounts) await compare(targets, clients);
  } finally {
    peer.close();
    await catnap.stop();
  }
}

async function overHttp(port, headers) {
  const ask = async (n) => {
    const response = await fetch(`http://127.0.0.1:${port}/sql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query, params: [n] }),
    });
    return (await response.json()).rows[0].n;
  };
  return { ask, close: () => {} };
}

async function overWebSocket(port, uri) {
  const client = new Client(uri);
  Object.assign(client.neonConfig, {
    webSocketConstructor: WebSocket,
    wsProxy: `127.0.0.1:${port}/v2`,
    useSecureWebSocket: false,
  });
  await client.connect();
  return { ask: async (n) => (await client.query(query, [n])).rows[0].n, close: () => client.end() };
}

async function compare(targets, clients) {
  const open = await Promise.all(
    targets.map(async ([name, connect]) => ({
      name,
      sessions: await Promise.all(Array.from({ length: clients }, connect)),
      rates: [],
    })),
  );
  for (const { sessions } of open) await measure(sessions, warmUpSeconds);
  for (let turn = 0; turn < repeats; turn++) {
    for (const { sessions, rates } of open) rates.push(await measure(sessions, seconds));
  }
  for (const { sessions } of open) await Promise.all(sessions.map(({ close }) => close()));
  const [peer, ...ways] = open;
  for (const { name, rates } of ways) {
    keep({
      what: `${name.replace('Catnap ', '')}, one-row selects`,
      at: clients,
      of: 'at once',
      unit: '/s',
      ours: rates,
      peer: peer.rates,
      beside: peer.name,
      atLeast: 0.7,
    });
  }
  print(`one-row selects a second, ${clients} at once (${seconds} s, n=${repeats})`, open);
}

/** Selects a second; each session asks again as soon as it has its row. */
async function measure(sessions, forSeconds) {
  const startedAt = performance.now();
  let done = 0;
  const run = async ({ ask }) => {
    while (performance.now() < startedAt + forSeconds * 1_000) {
      const asked = done;
      const answer = Number(await ask(asked));
      if (answer !== asked) throw new Error(`a select returned ${answer} for ${asked}`);
      done += 1;
    }
  };
  await Promise.all(sessions.map(run));
  return (done * 1_000) / (performance.now() - startedAt);
}

function print(title, [peer, ...others]) {
  const columns = ['median', 'min', 'max'].map((word) => word.padStart(9)).join('');
  console.log(`\n${title}\n  ${'where'.padEnd(24)}${columns}   ratio`);
  for (const { name, rates } of [peer, ...others]) {
    const { median, min, max } = summarize(rates);
    const cells = [median, min, max].map((rate) => rate.toFixed(0).padStart(9)).join('');
    const ratio = summarize(rates.map((rate, turn) => rate / peer.rates[turn])).median;
    console.log(`  ${name.padEnd(24)}${cells}   ${ratio.toFixed(2)}`);
  }
}
