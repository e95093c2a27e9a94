/**
 * A burst of CPU on a compute that may grow, beside computes of each end's fixed size: how soon it grows, what it then
 * does, whether a connection drops, and how long it takes to come back.
 */
import { availableParallelism } from 'node:os';
import { startCatnap } from './catnap.mjs';
import { runLoad } from './load.mjs';

const minCu = 0.25;
const maxCu = Math.min(2, availableParallelism());
const burstSeconds = Number(process.env.BENCH_SECONDS ?? 20);
const calmSecondsMax = 180;

export async function benchAutoscale() {
  const catnap = await startCatnap({ CATNAP_LOG_LEVEL: 'fatal' });
  try {
    const small = await fixed(catnap, minCu);
    const large = await fixed(catnap, maxCu);
    const range = await makeCompute(catnap, minCu, maxCu);
    if (!(await look(catnap, range)).limits_enforced) throw new Error('sizes are not enforced here; see catnap doctor');
    const steps = [];
    const perSecond = [];
    const watching = watch(catnap, range, steps);
    const burst = await runLoad(range.uri, { clients: 4, seconds: burstSeconds, onSecond: (n) => perSecond.push(n) });
    const atEnd = perSecond.slice(-5).reduce((a, b) => a + b, 0) / Math.min(5, perSecond.length);
    const calmFrom = performance.now();
    const back = await until(async () => (await look(catnap, range)).current_cu === minCu, calmSecondsMax * 1_000);
    watching.stop();
    const at = (cu) => steps.find((step) => step.cu >= cu)?.ms;
    const show = (ms) => (ms === undefined ? 'never' : `${(ms / 1_000).toFixed(1)} s`);
    console.log(`\nA burst of ${burstSeconds} s on ${minCu}–${maxCu} CU, 4 clients, statements a second`);
    console.log(`  fixed ${minCu} CU                 ${small.toFixed(0)}`);
    console.log(`  fixed ${maxCu} CU                    ${large.toFixed(0)}`);
    console.log(`  range, first second           ${perSecond[0] ?? 0}`);
    console.log(
      `  range, last five seconds      ${atEnd.toFixed(0)}   ${(atEnd / large).toFixed(2)} of fixed ${maxCu} CU`,
    );
    console.log(`  first step up after           ${show(at(minCu + 0.01))}`);
    console.log(`  largest size after            ${show(at(maxCu))}`);
    console.log(`  failed statements             ${burst.failed}`);
    console.log(`  smallest size again after     ${back ? show(performance.now() - calmFrom) : 'never'}`);
  } finally {
    await catnap.stop();
  }
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
  const { perSecond } = await runLoad(compute.uri, { clients: 4, seconds: Math.min(10, burstSeconds) });
  await catnap.api('POST', `${compute.path}/suspend`);
  return perSecond;
}

export const look = async (catnap, { path }) => (await catnap.api('GET', path)).endpoint;

function watch(catnap, compute, steps) {
  const from = performance.now();
  let isOver = false;
  const loop = async () => {
    while (!isOver) {
      const { current_cu: cu } = await look(catnap, compute);
      if (cu !== steps.at(-1)?.cu) steps.push({ cu, ms: performance.now() - from });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  void loop();
  return {
    stop: () => {
      isOver = true;
    },
  };
}

async function until(check, patienceMs) {
  const giveUpAt = performance.now() + patienceMs;
  while (performance.now() < giveUpAt) {
    if (await check()) return true;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return false;
}
