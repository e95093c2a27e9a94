/**
 * From the request to put a compute to sleep until it is idle, beside a checkpoint and a fast stop of a bare server
 * with the same binaries. Before each, the same rows are written to both.
 */
import { prepareBare, startBare, trusted } from './bare-postgres.mjs';
import { ask, makeCompute, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';

const repeats = Number(process.env.BENCH_SUSPENDS ?? 20);
const writes = 'create table if not exists rows (n int); insert into rows select generate_series(1, 10000)';
const bareName = 'bare: CHECKPOINT, fast stop';

export async function benchSuspend() {
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
