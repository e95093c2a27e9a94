/** Ten thousand pooled clients, each connected and running a query, and what an idle one costs the proxy. */
import { readFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { loadSource } from '../scripts/load-source.mjs';
import { findProxies } from './processes.mjs';

const count = Number(process.env.BENCH_MANY ?? 10_000);
/** Of the source: what a client of the protocol needs. */
const modules = [
  'proxy/protocol/message-stream',
  'proxy/protocol/messages',
  'proxy/protocol/scram',
  'proxy/protocol/wire',
  'lib/scram-verifier',
];
/** Clients that connect at the same time. */
const lanes = 200;

export async function benchManyClients({ port, login, endpointId, runtime, parentPid }) {
  const source = await loadSource(modules);
  const { MessageStream } = source['proxy/protocol/message-stream'];
  const messages = source['proxy/protocol/messages'];
  const scram = source['proxy/protocol/scram'];
  const { cstring, encodeMessage } = source['proxy/protocol/wire'];
  const { deriveKeys } = source['lib/scram-verifier'];
  const pids = await findProxies(parentPid);
  const keys = new Map();

  /** The keys are derived once: deriving them is the client's cost, not the proxy's. */
  async function proofKeys(salt, iterations) {
    if (!keys.has(salt)) keys.set(salt, deriveKeys(login.password, Buffer.from(salt, 'base64'), iterations));
    return keys.get(salt);
  }

  async function openClient(tls) {
    let socket = connectTcp(port, '127.0.0.1');
    if (tls) {
      socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
      await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
      socket = connectTls({ socket, rejectUnauthorized: false });
      await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    }
    const stream = new MessageStream(socket, 1_000_000);
    const startup = { user: login.user, database: login.database, options: `endpoint=${endpointId}-pooler` };
    stream.write(messages.startupMessage(Object.entries(startup)));
    await stream.readMessage();
    const exchange = scram.startClientExchange();
    stream.write(messages.saslInitialResponse(scram.scramMechanism, exchange.first));
    const serverFirst = messages.parseAuthentication((await stream.readMessage()).body).data;
    const [, salt, iterations] = /s=([^,]+),i=(\d+)/.exec(serverFirst);
    const proof = scram.proveToServer(exchange, serverFirst, await proofKeys(salt, Number(iterations)), {
      salt: Buffer.from(salt, 'base64'),
      iterations: Number(iterations),
    });
    stream.write(messages.saslResponse(proof.final));
    await untilReady(stream);
    return stream;
  }

  async function untilReady(stream) {
    for (;;) {
      const { type, body } = await stream.readMessage();
      if (type === 'E') throw new Error(messages.parseErrorResponse(body).message);
      if (type === 'Z') return;
    }
  }

  console.log(`\n${count} pooled clients, each connected and running a query (runtime: ${runtime})`);
  // Memory that is free after the first round stays with the process, so both rounds count from here.
  const before = await residentKb(pids);
  for (const tls of [false, true]) {
    const clients = [];
    const openedAt = performance.now();
    await inLanes(count, async () => clients.push(await openClient(tls)));
    const connectMs = performance.now() - openedAt;
    const askedAt = performance.now();
    await Promise.all(
      clients.map((client) => {
        client.write(encodeMessage('Q', cstring('select 1')));
        return untilReady(client);
      }),
    );
    const queryMs = performance.now() - askedAt;
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const kb = ((await residentKb(pids)) - before) / count;
    const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
    console.log(
      `  ${tls ? 'TLS  ' : 'plain'}  connected in ${seconds(connectMs)}, one query each in ${seconds(queryMs)},` +
        ` ${kb.toFixed(1)} KB for an idle client (target ${tls ? 45 : 20})`,
    );
    for (const client of clients) client.stream.destroy();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
  }
}

async function inLanes(total, work) {
  let left = total;
  const lane = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Of all proxy processes together. */
async function residentKb(pids) {
  const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')));
  return texts.reduce((sum, text) => sum + Number(/VmRSS:\s+(\d+)/.exec(text)[1]), 0);
}
