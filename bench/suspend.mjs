/**
 * From the request to put a compute to sleep until it is idle, beside a checkpoint and a fast stop of a bare server
 * with the same binaries. Before each, the same rows are written to both.
 */
import { prepareBare, startBare, trusted } from './bare-postgres.mjs';
import { ask, makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = Number(process.env.BENCH_SUSPENDS ?? 20);
const stageRepeats = 10;
const writes = 'create table if not exists rows (n int); insert into rows select generate_series(1, 10000)';
const bareName = 'bare: CHECKPOINT, fast stop';

export async function benchSuspend() {
  await compare();
  await printStages();
}

async function compare() {
  const catnap = await startCatnap();
  try {
    const { build, directory, sockets } = await prepareBare(catnap.home);
    const { connection, suspend } = await makeCompute(catnap);
    const [bare, ours] = [[], []];
    for (let i = 0; i < repeats; i++) {
      const stop = await startBare(build, directory, sockets);
      const socket = { host: sockets, ...trusted };
      await ask(socket, writes);
      bare.push(
        await timed(async () => {
          await ask(socket, 'checkpoint');
          await stop();
        }),
      );
      await ask(connection, writes);
      ours.push(await timed(suspend));
    }
    const rows = [
      [bareName, bare],
      ['Catnap: until the compute is idle', ours],
    ];
    printTable('Put a compute to sleep (ms)', rows, bareName);
    keep({ what: 'suspend', unit: 'ms', ours, peer: bare, beside: 'a checkpoint and a fast stop', atMost: 2 });
  } finally {
    await catnap.stop();
  }
}

/** Where the time goes, from the log of each step. */
async function printStages() {
  let lines = [];
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'debug' }, (line) => lines.push(line));
  const stages = { 'request, until it is claimed': [], 'read what it holds': [], stop: [], 'record, until seen': [] };
  try {
    const { connection, suspend } = await makeCompute(catnap);
    for (let i = 0; i < stageRepeats; i++) {
      await ask(connection, writes);
      lines = [];
      const startedAt = Date.now();
      const totalMs = await timed(suspend);
      const find = (msg, more = {}) => lines.find((line) => line.msg === msg && matches(line, more));
      const stepOf = (step) => find('a step was run', { job: 'suspend_compute', step });
      while (stepOf('stop') === undefined) await pause();
      const claimed = find('an operation was claimed', { job: 'suspend_compute' }).time - startedAt;
      const [read, stop] = [stepOf('save_catalog').ms, stepOf('stop').ms];
      const each = [claimed, read, stop, totalMs - claimed - read - stop];
      Object.values(stages).forEach((samples, place) => {
        samples.push(each[place]);
      });
      await selectOne(connection);
    }
    printTable('Stages of a suspend, from the log of each step (ms)', Object.entries(stages));
  } finally {
    await catnap.stop();
  }
}

const matches = (line, more) => Object.entries(more).every(([name, value]) => line[name] === value);
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
