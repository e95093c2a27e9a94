/** Connect to a sleeping compute until the first row, beside a bare start of the same Postgres. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { addPasswordLogin, prepareBare, proved, startBare } from './bare-postgres.mjs';
import { makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = Number(process.env.BENCH_WAKES ?? 30);
/** Stages are read from a log that itself takes a few milliseconds, so they are measured in separate wakes. */
const stageRepeats = Math.min(repeats, 12);
/** After a compute has gone idle, what Catnap still does about it. */
const settleMs = 1_000;
const bareName = 'bare: start, SELECT 1 (trusted)';
const provedName = 'bare: start, password, SELECT 1';
const directName = 'direct: login at its socket, SELECT 1';

export async function benchWake() {
  await compareWakes();
  await printStages();
}

/** At the usual log level, as an operator runs it. */
async function compareWakes() {
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'info' });
  try {
    const { build, directory, sockets } = await prepareBare(catnap.home);
    await addPasswordLogin(build, directory, sockets);
    const { connection, suspend } = await makeCompute(catnap);
    const direct = await atSocket(catnap.home, connection.connectionString);
    const [bare, withPassword, asleep, awake, directly] = [[], [], [], [], []];
    for (let i = 0; i < repeats; i++) {
      let stop;
      bare.push(await timed(async () => (stop = await startBare(build, directory, sockets))));
      await stop();
      withPassword.push(await timed(async () => (stop = await startBare(build, directory, sockets, proved))));
      await stop();
      await suspend();
      await pause(settleMs);
      asleep.push(await timed(() => selectOne(connection)));
      await pause(300);
      awake.push(await timed(() => selectOne(connection)));
      directly.push(await timed(() => selectOne(direct)));
    }
    printTable(
      'A sleeping compute: connect until the first row (ms)',
      [
        [bareName, bare],
        [provedName, withPassword],
        ['Catnap: the compute sleeps', asleep],
      ],
      bareName,
    );
    printTable(
      'An awake compute: connect until the first row (ms)',
      [
        [directName, directly],
        ['Catnap: the compute is awake', awake],
      ],
      directName,
    );
    keep({
      what: 'wake: connect to a sleeping compute until the first row',
      unit: 'ms',
      ours: asleep,
      peer: bare,
      beside: 'a bare start',
      atMost: 1.5,
    });
    const worst = asleep.map((ms, turn) => ms / bare[turn]).sort((a, b) => a - b);
    keep({ what: 'wake: slowest of a hundred, in bare starts', unit: '×', ours: [at(worst, 0.99)], atMost: 4 });
    keep({
      what: 'connect to an awake compute until the first row',
      unit: 'ms',
      ours: awake,
      peer: directly,
      beside: 'a login at its socket',
      atMost: 1.5,
    });
  } finally {
    await catnap.stop();
  }
}

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

async function printStages() {
  const stages = collectStages();
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'debug' }, stages.onLog);
  try {
    const { connection, suspend } = await makeCompute(catnap);
    for (let i = 0; i < stageRepeats; i++) {
      await suspend();
      await pause(settleMs);
      stages.begin();
      await stages.end(await timed(() => selectOne(connection)));
      await pause(300);
    }
    printTable('Stages of a wake, from the log of each step (ms)', stages.rows());
  } finally {
    await catnap.stop();
  }
}

/** The same login without Catnap in between: the socket of the one compute that is awake. */
async function atSocket(home, uri) {
  const { username, password, pathname } = new URL(uri);
  const folders = await readdir(join(home, 's'));
  const tenants = folders.filter((name) => name.length === 8 && existsSync(join(home, 's', name, '.s.PGSQL.5432')));
  const login = { user: username, password: decodeURIComponent(password), database: pathname.slice(1) };
  return { host: join(home, 's', tenants[0]), ...login };
}

const pause = (ms = 5) => new Promise((resolve) => setTimeout(resolve, ms));

/** Collects the stages of each wake from Catnap's own log, in order. */
function collectStages() {
  const names = ['lookup', 'authenticate', 'queue', 'fence', 'spawn', 'ready', 'open route', 'login', 'first row'];
  const values = new Map(names.map((name) => [name, []]));
  let lines = null;
  return {
    onLog: (line) => lines?.push(line),
    begin: () => {
      lines = [];
    },
    end: async (totalMs) => {
      const find = (msg, step) => lines.find((line) => line.msg === msg && (step === undefined || line.step === step));
      while (!find('a step was run', 'open_route') || !find('a session began')) await pause();
      const { authenticationMs, connectMs } = find('a session began');
      const { ms: lookup } = find('a login was looked up');
      const { ms: wake } = find('a compute is awake');
      const step = (name) => find('a step was run', name).ms;
      const steps = { fence: step('fence'), spawn: step('spawn'), ready: step('await_ready') };
      const opening = step('open_route');
      const before = steps.fence + steps.spawn + steps.ready;
      const queue = find('a compute is awake').queuedMs + Math.max(0, find('an operation was claimed').waitedMs);
      const measured = {
        lookup,
        authenticate: authenticationMs - lookup,
        queue,
        ...steps,
        // Until the proxy has been notified; recording each step is part of this.
        'open route': Math.max(opening, wake - queue - before),
        login: connectMs - wake,
        'first row': totalMs - authenticationMs - connectMs,
      };
      lines = null;
      for (const name of names) values.get(name).push(measured[name]);
    },
    rows: () => names.map((name) => [name, values.get(name)]),
  };
}
