/**
 * A burst of CPU on a compute that may grow, beside computes of each end's fixed size: how soon it grows, what it then
 * does, whether a connection drops, and how long it takes to come back, which `CATNAP_SCALE_DOWN_SECONDS` makes shorter.
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
    if (!(await look(catnap, range)).limits_enforced) throw new Error('sizes are not enforced here; see catnap doctor');
    const perSecond = [];
    const beganAt = Date.now();
    const burst = await runLoad(range.uri, { clients, seconds: burstSeconds, onSecond: (n) => perSecond.push(n) });
    const calmFrom = Date.now();
    const back = await until(async () => (await look(catnap, range)).current_cu === minCu, calmSecondsMax * 1_000);
    const changes = (await catnap.api('GET', `${range.path}/metrics`)).size_changes;
    print({ small, large, burst, perSecond, beganAt, calmFrom, back, changes });
  } finally {
    await catnap.stop();
  }
}

/** Times are those that the history of the compute tells. */
function print({ small, large, burst, perSecond, beganAt, calmFrom, back, changes }) {
  const since = (from, isIt) => {
    const found = changes.find(isIt);
    return found === undefined ? 'never' : `${((Date.parse(found.at) - from) / 1_000).toFixed(1)} s`;
  };
  const last = perSecond.slice(-5);
  const atEnd = last.reduce((a, b) => a + b, 0) / last.length;
  const line = (what, value) => console.log(`  ${what.padEnd(30)}${value}`);
  console.log(`\nA burst of ${burstSeconds} s on ${minCu}–${maxCu} CU, ${clients} clients, statements a second`);
  line(`fixed ${minCu} CU`, small.toFixed(0));
  line(`fixed ${maxCu} CU`, large.toFixed(0));
  line('range, first second', `${perSecond[0] ?? 0}`);
  line('range, last five seconds', `${atEnd.toFixed(0)}   ${(atEnd / large).toFixed(2)} of fixed ${maxCu} CU`);
  const first = since(beganAt, (change) => change.to_cu > minCu);
  line('first step up after', `${first}   target within 2 s: ${Number.parseFloat(first) <= 2 ? 'met' : 'MISSED'}`);
  line(
    'largest size after',
    since(beganAt, (change) => change.to_cu === maxCu),
  );
  line('failed statements, or drops', burst.failed);
  line('first step down after', back ? since(calmFrom, (change) => change.to_cu < change.from_cu) : 'never');
  line('smallest size again after', back ? since(calmFrom, (change) => change.to_cu === minCu) : 'never');
  for (const { from_cu: from, to_cu: to, reason } of changes) console.log(`    ${from} → ${to}  ${reason}`);
}

export async function makeCompute(catnap, min, max) {
  const settings = { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max, suspend_timeout_seconds: -1 };
  const made = await catnap.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  const uri = made.connection_uris[0].connection_uri;
  const path = `/projects/${made.project.id}/endpoints/${made.endpoints[0].id}`;
  await runLoad(uri, { clients: 1, seconds: 0.1 });
  // The grace of its start is over, and its limits hold.
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  return { uri, path };
}

async function fixed(catnap, cu) {
  const compute = await makeCompute(catnap, cu, cu);
  const { perSecond } = await runLoad(compute.uri, { clients, seconds: Math.min(10, burstSeconds) });
  await catnap.api('POST', `${compute.path}/suspend`);
  return perSecond;
}

export const look = async (catnap, { path }) => (await catnap.api('GET', path)).endpoint;

async function until(check, patienceMs) {
  const giveUpAt = performance.now() + patienceMs;
  while (performance.now() < giveUpAt) {
    if (await check()) return true;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return false;
}
