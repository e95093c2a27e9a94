/**
 * A burst of CPU on a compute that may grow, beside computes of its smallest and its largest size: how soon it grows,
 * how much it then does, whether a connection drops, and how long it takes to shrink, which
 * `CATNAP_SCALE_DOWN_SECONDS` makes shorter.
 *
 *     BENCH_SECONDS=20 npm run bench -- autoscale
 */
import { availableParallelism } from 'node:os';
import { startCatnap } from './catnap.mjs';
import { runLoad } from './load.mjs';

const minCu = 0.25;
const maxCu = Math.min(2, availableParallelism());
const burstSeconds = Number(process.env.BENCH_SECONDS ?? 20);
const calmSecondsMax = 180;
const clients = 4;

export async function benchAutoscale() {
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'fatal' });
  try {
    const small = await fixed(catnap, minCu);
    const large = await fixed(catnap, maxCu);
    const range = await makeCompute(catnap, minCu, maxCu);
    if (!(await readEndpoint(catnap, range)).limits_enforced)
      throw new Error('sizes are not enforced here; see catnap doctor');
    const perSecond = [];
    const [burst, up] = await Promise.all([
      runLoad(range.uri, { clients, seconds: burstSeconds, onSecond: (n) => perSecond.push(n) }),
      watchUntil(catnap, range, maxCu, burstSeconds),
    ]);
    const down = await watchUntil(catnap, range, minCu, calmSecondsMax);
    const changes = (await catnap.api('GET', `${range.path}/metrics`)).size_changes;
    print({ small, large, burst, perSecond, up, down, changes });
  } finally {
    await catnap.stop();
  }
}

function print({ small, large, burst, perSecond, up, down, changes }) {
  const show = (step) => (step === undefined ? 'never' : `${(step.ms / 1_000).toFixed(1)} s`);
  const last = perSecond.slice(-5);
  const atEnd = last.reduce((a, b) => a + b, 0) / last.length;
  const line = (what, value) => console.log(`  ${what.padEnd(30)}${value}`);
  console.log(`\nA burst of ${burstSeconds} s on ${minCu}–${maxCu} CU, ${clients} clients, statements a second`);
  line(`fixed ${minCu} CU`, small.toFixed(0));
  line(`fixed ${maxCu} CU`, large.toFixed(0));
  line('range, first second', `${perSecond[0] ?? 0}`);
  line('range, last five seconds', `${atEnd.toFixed(0)}   ${(atEnd / large).toFixed(2)} of fixed ${maxCu} CU`);
  const isQuick = up[1]?.ms <= 2_000;
  line('first step up after', `${show(up[1])}   target within 2 s: ${isQuick ? 'met' : 'MISSED'}`);
  line('largest size after', show(up.find(({ cu }) => cu === maxCu)));
  line('failed statements, or drops', burst.failed);
  line('first step down after', show(down[1]));
  line('smallest size again after', show(down.find(({ cu }) => cu === minCu)));
  for (const { from_cu: from, to_cu: to, reason } of changes) console.log(`    ${from} → ${to}  ${reason}`);
}

export async function makeCompute(catnap, min, max) {
  const settings = { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max, suspend_timeout_seconds: -1 };
  const made = await catnap.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  const uri = made.connection_uris[0].connection_uri;
  const path = `/projects/${made.project.id}/endpoints/${made.endpoints[0].id}`;
  await runLoad(uri, { clients: 1, seconds: 0.1 });
  // Until the grace period of the start is over, and the limits apply.
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  return { uri, path };
}

async function fixed(catnap, cu) {
  const compute = await makeCompute(catnap, cu, cu);
  const { perSecond } = await runLoad(compute.uri, { clients, seconds: Math.min(10, burstSeconds) });
  await catnap.api('POST', `${compute.path}/suspend`);
  return perSecond;
}

export const readEndpoint = async (catnap, { path }) => (await catnap.api('GET', path)).endpoint;

/** The sizes of the compute from now on, until it has the given one. Not polled more often, as that uses CPU. */
async function watchUntil(catnap, compute, wanted, secondsMax) {
  const from = performance.now();
  const steps = [];
  while (steps.at(-1)?.cu !== wanted && performance.now() - from < secondsMax * 1_000) {
    const { current_cu: cu } = await readEndpoint(catnap, compute);
    if (cu !== steps.at(-1)?.cu) steps.push({ cu, ms: performance.now() - from });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return steps;
}
