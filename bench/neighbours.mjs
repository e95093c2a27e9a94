/**
 * A compute that uses CPU and memory up to its limits and beyond, beside a neighbour that works: how much the neighbour
 * does then, compared with what it does alone. Alone and together take turns, and the medians are compared.
 *
 *     BENCH_SECONDS=10 BENCH_REPEATS=5 npm run bench -- neighbours
 */
import { availableParallelism } from 'node:os';
import pg from 'pg';
import { makeCompute, readEndpoint } from './autoscale.mjs';
import { startCatnap } from './catnap.mjs';
import { cpuPiece, runLoad } from './load.mjs';
import { findPgbench, preparePgbench, runPgbench } from './pgbench.mjs';
import { summarize } from './stats.mjs';

const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const seconds = Number(process.env.BENCH_SECONDS ?? 10);
const target = 0.85;
const cu = 0.5;
/** More than its memory: two texts of a gigabyte each, in one session. */
const memoryPiece = `select octet_length(repeat(repeat('x', 1000), 1000000)) + octet_length(repeat(repeat('y', 1000), 1000000))`;
const cpuSessions = 4;

export async function benchNeighbours() {
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'fatal' });
  try {
    const [neighbour, greedy] = await Promise.all([makeCompute(catnap, cu, cu), makeCompute(catnap, cu, cu)]);
    if (!(await readEndpoint(catnap, greedy)).limits_enforced)
      throw new Error('sizes are not enforced here; see catnap doctor');
    const { name, run } = await makeWork(neighbour.uri);
    const [alone, together, eaten] = [[], [], { pieces: 0, kills: 0 }];
    let failed = 0;
    const once = async (samples) => {
      const done = await run();
      samples.push(done.perSecond);
      failed += done.failed;
    };
    for (let i = 0; i < repeats; i++) {
      await once(alone);
      const stop = eat(greedy.uri, eaten);
      await once(together);
      await stop();
    }
    print(name, [alone, together].map(summarize), { failed, eaten });
  } finally {
    await catnap.stop();
  }
}

/** pgbench's own transactions, which read and write; without pgbench, statements that use CPU alone. */
async function makeWork(uri) {
  if (findPgbench() === null) {
    return {
      name: 'statements that use CPU (pgbench is not installed)',
      run: () => runLoad(uri, { clients: 2, seconds }),
    };
  }
  await preparePgbench(uri, 10);
  return { name: 'pgbench, 2 clients', run: () => runPgbench(uri, { clients: 2, seconds }) };
}

/**
 * CPU in four sessions, and memory beyond the limit in a fifth: the kernel kills that one, the server restarts, and all
 * sessions connect again.
 */
function eat(connectionString, eaten) {
  let isOver = false;
  const session = async (text) => {
    while (!isOver) {
      const client = new pg.Client({ connectionString });
      client.on('error', () => undefined);
      try {
        await client.connect();
        while (!isOver) {
          await client.query(text);
          eaten.pieces++;
        }
      } catch {
        if (text === memoryPiece) eaten.kills++;
        await new Promise((resolve) => setTimeout(resolve, 100));
      } finally {
        await client.end().catch(() => undefined);
      }
    }
  };
  const sessions = [...Array(cpuSessions).fill(cpuPiece), memoryPiece].map(session);
  return () => {
    isOver = true;
    return Promise.all(sessions);
  };
}

function print(name, [alone, together], { failed, eaten }) {
  const line = (what, { median, min, max, n }) => {
    const cells = [median, min, max].map((x) => x.toFixed(0).padStart(8)).join('');
    console.log(`  ${what.padEnd(34)}${cells}${String(n).padStart(4)}`);
  };
  console.log(`\nA neighbour of ${cu} CU on ${availableParallelism()} cores: ${name}, ${seconds} s each`);
  console.log(`  a second${' '.repeat(26)}  median     min     max   n`);
  line('alone', alone);
  line(`beside one that eats its ${cu} CU`, together);
  console.log(
    `  failed transactions ${failed}; the other one did ${eaten.pieces} pieces, and lost ${eaten.kills} sessions`,
  );
  const ratio = together.median / alone.median;
  console.log(`  ratio ${ratio.toFixed(2)}, target at least ${target}: ${ratio >= target ? 'met' : 'MISSED'}`);
}
