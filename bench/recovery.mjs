/** How long the API, a direct and a pooled client are without an answer after a process was killed, by kind. */
import { rm } from 'node:fs/promises';
import { freePort, makeHome, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { listProcesses } from './processes.mjs';
import { summarize } from './stats.mjs';

const repeats = Number(process.env.BENCH_RECOVERIES ?? 5);
const kinds = (process.env.BENCH_RECOVERY_KINDS ?? 'worker,api,proxy,tenant,system database,parent,everything').split(
  ',',
);
/** A try that hangs is not an answer: the next one may find what was started meanwhile. */
const tryMs = 2_000;
const giveUpMs = 120_000;
const probes = ['API', 'direct', 'pooled'];
const apiMsMax = 2_000;
const allMsMax = 10_000;

export async function benchRecovery() {
  const place = {
    CATNAP_HOME: await makeHome(),
    CATNAP_HTTP_PORT: await freePort(),
    CATNAP_PG_PORT: await freePort(),
    CATNAP_LOG_LEVEL: 'fatal',
    CATNAP_PROXIES: '1',
  };
  const run = { catnap: await startCatnap(place), place };
  try {
    const made = await run.catnap.api('POST', '/projects', { project: {} });
    const uri = made.connection_uris[0].connection_uri;
    run.endpointId = made.endpoints[0].id;
    run.uris = { direct: uri, pooled: uri.replace(run.endpointId, `${run.endpointId}-pooler`) };
    await untilAll(run);
    const found = await measure(run);
    print(found);
    for (const [kind, samples] of found) {
      for (const probe of probes) {
        const ours = samples.map((sample) => sample[probe]);
        const atMost = probe === 'API' ? apiMsMax : allMsMax;
        keep({ what: `${probe} after kill -9 of ${kind}`, unit: 'ms', ours, atMost });
      }
    }
  } finally {
    await run.catnap.stop();
    await rm(place.CATNAP_HOME, { recursive: true, force: true });
  }
}

async function measure(run) {
  const found = new Map(kinds.map((kind) => [kind, []]));
  // In turn, so that a machine that gets busier does so for all of them.
  for (let i = 0; i < repeats; i++) {
    for (const [kind, samples] of found) {
      const startAgain = await kill(run, kind);
      const killedAt = performance.now();
      const starting = startAgain === null ? null : startAgain();
      samples.push(await untilAll(run, killedAt));
      if (starting !== null) run.catnap = await starting;
      // What the kill has left undone is not part of the next one.
      await untilAll(run);
    }
  }
  return found;
}

/** Returns how to start Catnap again, where that is up to an operator. */
async function kill(run, kind) {
  const { catnap, place } = run;
  const processes = await listProcesses();
  const children = processes.filter(({ parent }) => parent === catnap.pid);
  const nameIn = (words) => words[words.findIndex((word) => word.endsWith('/child.js')) + 1];
  const child = (name) => children.filter(({ words }) => nameIn(words) === name);
  const servers = processes.filter(
    ({ words }) => words[0]?.endsWith('/postgres') && words.some((word) => word.startsWith(`${place.CATNAP_HOME}/`)),
  );
  const ofSystem = servers.filter(({ words }) => words.some((word) => word.includes('/system/')));
  const ofTenants = servers.filter((server) => !ofSystem.includes(server));
  const victims = {
    worker: child('worker'),
    api: child('api'),
    proxy: child('proxy'),
    tenant: ofTenants,
    'system database': ofSystem,
    parent: [{ pid: catnap.pid }],
    everything: [{ pid: catnap.pid }, ...children, ...servers],
  }[kind];
  if (!victims?.length) throw new Error(`there is no process of the kind ${kind}`);
  for (const { pid } of victims) killIfThere(pid);
  return kind === 'parent' || kind === 'everything' ? () => startWhenItCan(place) : null;
}

/** A process that a server has just forked looks like the server, and may have ended meanwhile. */
function killIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** As a service manager does: again, if the first start comes too early. */
async function startWhenItCan(place) {
  for (;;) {
    try {
      return await startCatnap(place);
    } catch {
      await pause(100);
    }
  }
}

/** How long each probe was without an answer. */
async function untilAll(run, since = performance.now()) {
  const ask = {
    API: () => run.catnap.api('GET', '/projects'),
    direct: () => selectOne({ connectionString: run.uris.direct, connectionTimeoutMillis: tryMs }),
    pooled: () => selectOne({ connectionString: run.uris.pooled, connectionTimeoutMillis: tryMs }),
  };
  const until = async (probe) => {
    while (performance.now() - since < giveUpMs) {
      const isAnswered = await Promise.race([
        ask[probe]().then(
          () => true,
          () => false,
        ),
        pause(tryMs).then(() => false),
      ]);
      if (isAnswered) return performance.now() - since;
      await pause(20);
    }
    throw new Error(`${probe} did not answer within ${giveUpMs / 1000} s`);
  };
  return Object.fromEntries(await Promise.all(probes.map(async (probe) => [probe, await until(probe)])));
}

function print(found) {
  console.log(`\nUntil each answers again after kill -9 (s, median and most of ${repeats})`);
  console.log(`  ${'killed'.padEnd(20)}${probes.map((probe) => probe.padStart(16)).join('')}`);
  for (const [kind, samples] of found) {
    const cells = probes.map((probe) => {
      const { median, max } = summarize(samples.map((sample) => sample[probe] / 1000));
      return `${median.toFixed(2)} / ${max.toFixed(2)}`.padStart(16);
    });
    console.log(`  ${kind.padEnd(20)}${cells.join('')}`);
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
