/**
 * A compute that eats CPU and memory to its limits, beside a neighbour that works: what the neighbour does then, against
 * what it does alone. Alone and together take turns, and the medians are compared.
 */
import { availableParallelism } from 'node:os';
import { makeCompute } from './autoscale.mjs';
import { startCatnap } from './catnap.mjs';
import { runLoad } from './load.mjs';
import { summarize } from './stats.mjs';

const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const seconds = Number(process.env.BENCH_SECONDS ?? 10);
const target = 0.85;

export async function benchNeighbours() {
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'fatal' });
  try {
    const neighbour = await makeCompute(catnap, 0.5, 0.5);
    const greedy = await makeCompute(catnap, 0.5, 0.5);
    const [alone, together] = [[], []];
    for (let i = 0; i < repeats; i++) {
      alone.push((await runLoad(neighbour.uri, { clients: 2, seconds })).perSecond);
      const eating = eat(greedy, seconds + 1);
      together.push((await runLoad(neighbour.uri, { clients: 2, seconds })).perSecond);
      await eating;
    }
    const [a, t] = [summarize(alone), summarize(together)];
    const line = (what, { median, min, max, n }) =>
      console.log(
        `  ${what.padEnd(34)}${[median, min, max].map((x) => x.toFixed(0).padStart(8)).join('')}${String(n).padStart(4)}`,
      );
    console.log(`\nA neighbour of 0.5 CU, statements a second (median, min, max, n), ${availableParallelism()} cores`);
    line('alone', a);
    line('beside one that eats its 0.5 CU', t);
    const ratio = t.median / a.median;
    console.log(`  ratio ${ratio.toFixed(2)}, target at least ${target}: ${ratio >= target ? 'met' : 'missed'}`);
  } finally {
    await catnap.stop();
  }
}

/** CPU in four sessions, and memory beyond the limit in a fifth: the kernel ends that one, and it comes again. */
async function eat({ uri }, duration) {
  const memory = `select length(repeat('x', 900000000)), length(repeat('y', 900000000)), pg_sleep(0.2)`;
  await Promise.allSettled([
    runLoad(uri, { clients: 4, seconds: duration }),
    runLoad(uri, { clients: 1, seconds: duration, text: memory }),
  ]);
}
