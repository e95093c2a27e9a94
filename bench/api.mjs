/**
 * Requests to the API beside a bare Fastify with the same statements on the same system database, one after the other
 * and eight at once. The two take turns, and a ratio is the median of the ratios of the turns.
 *
 *     BENCH_SECONDS=3 BENCH_REPEATS=5 BENCH_CLIENTS=1,8 npm run bench -- api
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable } from './stats.mjs';
import { addProjects, withSystemSql } from './system-rows.mjs';

const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const clientCounts = (process.env.BENCH_CLIENTS ?? '1,8').split(',').map(Number);
const listed = 20;
/** A role is made, applied by the worker and deleted again; only the two replies count. */
const rolesATurn = 10;
const peerName = 'bare Fastify, same SQL';

/** Without it a peer that cannot start would be waited for until somebody looks. */
async function refuseEnd(child) {
  const [code] = await once(child, 'exit');
  throw new Error(`the peer ended with exit code ${code}`);
}

export async function benchApi() {
  const catnap = await startCatnap();
  const child = fork(fileURLToPath(new URL('api-peer.mjs', import.meta.url)), [catnap.home]);
  try {
    const key = (await readFile(join(catnap.home, 'api-key'), 'utf8')).trim();
    const made = await catnap.api('POST', '/projects', { project: {} });
    const project = { projectId: made.project.id, branchId: made.branch.id };
    await withSystemSql(catnap.home, (sql) => addProjects(sql, project, listed));
    const [peerPort] = await Promise.race([once(child, 'message'), refuseEnd(child)]);
    const ours = caller(catnap.httpPort, key);
    const peer = caller(peerPort, key);
    const path = `/projects/${project.projectId}`;
    for (const clients of clientCounts) {
      await compareReads('get a compute', `${path}/endpoints/${made.endpoints[0].id}`, { ours, peer, clients });
      await compareReads(`list ${listed} projects`, `/projects?limit=${listed}`, { ours, peer, clients });
    }
    await compareRoles(`${path}/branches/${project.branchId}/roles`, { ours, peer, catnap });
  } finally {
    child.disconnect();
    await catnap.stop();
  }
}

function caller(port, key) {
  const agent = new Agent({ keepAlive: true });
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const headers = { authorization: `Bearer ${key}`, ...type };
      const sent = request({ port, host: '127.0.0.1', agent, method, path: `/api/v2${path}`, headers }, (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        reply.on('end', () => (reply.statusCode < 300 ? resolve(text) : reject(new Error(`${path}: ${text}`))));
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

async function compareReads(what, path, { ours, peer, clients }) {
  const rates = { ours: [], peer: [] };
  for (const call of [ours, peer]) await measureReads(call, path, clients, 1);
  for (let turn = 0; turn < repeats; turn++) {
    rates.peer.push(await measureReads(peer, path, clients, seconds));
    rates.ours.push(await measureReads(ours, path, clients, seconds));
  }
  keep({ what, at: clients, of: 'at once', unit: '/s', ...rates, beside: peerName, atLeast: 0.6 });
  const rows = [
    [peerName, rates.peer],
    ['Catnap', rates.ours],
  ];
  printTable(`${what}, ${clients} at once: requests a second`, rows, peerName);
}

async function measureReads(call, path, clients, forSeconds) {
  const startedAt = performance.now();
  let done = 0;
  const ask = async () => {
    while (performance.now() < startedAt + forSeconds * 1_000) {
      await call('GET', path);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, ask));
  return (done * 1_000) / (performance.now() - startedAt);
}

async function compareRoles(path, { ours, peer, catnap }) {
  const rates = { ours: [], peer: [] };
  for (let turn = 0; turn < repeats; turn++) {
    rates.peer.push(await measureRoles(peer, path, catnap));
    rates.ours.push(await measureRoles(ours, path, catnap));
  }
  keep({ what: 'create and delete a role', unit: '/s', ...rates, beside: peerName, atLeast: 0.6 });
  const rows = [
    [peerName, rates.peer],
    ['Catnap', rates.ours],
  ];
  printTable('create and delete a role: pairs of replies a second', rows, peerName);
}

async function measureRoles(call, path, catnap) {
  let spentMs = 0;
  const timed = async (work) => {
    const startedAt = performance.now();
    await work();
    spentMs += performance.now() - startedAt;
    await untilQuiet(catnap, path);
  };
  for (let i = 0; i < rolesATurn; i++) {
    await timed(() => call('POST', path, { role: { name: `bench_${i}` } }));
    await timed(() => call('DELETE', `${path}/bench_${i}`));
  }
  return (rolesATurn * 1_000) / spentMs;
}

async function untilQuiet(catnap, path) {
  const [project] = path.split('/branches');
  const isOver = ({ status }) => ['finished', 'failed', 'cancelled', 'skipped', 'error'].includes(status);
  while (!(await catnap.api('GET', `${project}/operations?limit=5`)).operations.every(isOver)) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
