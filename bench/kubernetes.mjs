/**
 * Computes on the Kubernetes cluster that KUBECONFIG names: create, nap, wake from a nap and from deep sleep, branch
 * and resize, through Catnap's API and proxy, each beside the bare operator doing the same in the same turn
 * (`bare-cluster.mjs`). The kubeconfig must be readable by Catnap's processes, which are not root's, and the namespace
 * should hold nothing else. BENCH_KUBERNETES_NAPS (10), BENCH_KUBERNETES_DEEP (5) and BENCH_KUBERNETES_COPIES (3) choose
 * how often.
 *
 * A nap begins BENCH_KUBERNETES_REST_SECONDS (30) after the wake before it, because the operator carries out no fence
 * in the first 25 seconds.
 */
import { openBareCluster, until } from './bare-cluster.mjs';
import { makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';

const count = (name, usual) => Number(process.env[`BENCH_KUBERNETES_${name}`] ?? usual);
const [naps, deepSleeps, copies] = [count('NAPS', 10), count('DEEP', 5), count('COPIES', 3)];
const restMs = count('REST_SECONDS', 30) * 1_000;
const calmMs = 3_000;
const needs = 'set KUBECONFIG to a cluster with CloudNativePG, and CATNAP_KUBERNETES_IMAGE_17 to an image for it';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const bareName = 'the bare operator, at the pod';
const sizeOf = (cu) => ({ autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu });

export async function benchKubernetes() {
  const { KUBECONFIG, CATNAP_KUBERNETES_IMAGE_17: image } = process.env;
  if (!KUBECONFIG || !image) {
    console.log(`\nKubernetes: not measured here: ${needs}`);
    return;
  }
  // Deep sleep comes when the benchmark wants it.
  const settings = {
    CATNAP_DRIVER: 'kubernetes',
    CATNAP_KUBERNETES_CONFIG: KUBECONFIG,
    CATNAP_KUBERNETES_DEEP_SLEEP_SECONDS: '0',
  };
  const catnap = await startCatnap(settings);
  const bare = await openBareCluster({ ...process.env, ...settings, CATNAP_HOME: catnap.home });
  const projects = [];
  try {
    await measureCreate(catnap, bare, projects);
    const [compute] = projects;
    const ref = bare.newRef();
    await bare.create(ref);
    await measureNaps({ compute, bare, ref });
    await measureDeepSleep({ compute, bare, ref });
    await measureResize({ catnap, compute, bare, ref });
    await measureBranch({ catnap, compute, bare, ref });
  } finally {
    for (const { projectId } of projects) await removeProject(catnap, bare, projectId);
    await bare.close();
    await catnap.stop();
  }
}

async function measureCreate(catnap, bare, projects) {
  const [theirs, ours] = [[], []];
  for (let turn = 0; turn < copies; turn++) {
    theirs.push(await timed(() => bare.create(bare.newRef())));
    ours.push(await timed(async () => projects.push(await makeCompute(catnap))));
  }
  report('create, until the first row', { theirs, ours });
}

async function measureNaps({ compute, bare, ref }) {
  const [into, outOf] = [
    { theirs: [], ours: [] },
    { theirs: [], ours: [] },
  ];
  for (let turn = 0; turn < naps; turn++) {
    await pause(restMs);
    await inTurn(turn, into, { theirs: () => bare.nap(ref), ours: compute.suspend });
    await pause(calmMs);
    await inTurn(turn, outOf, { theirs: () => bare.wake(ref), ours: () => selectOne(compute.connection) });
  }
  report('nap, until no server is left', into);
  report('wake from a nap, until the first row', outOf, 400);
}

/** The other one goes first in the next turn: a wake is followed by a second or two of the operator's own work. */
async function inTurn(turn, times, { theirs, ours }) {
  const both = [
    [times.theirs, theirs],
    [times.ours, ours],
  ];
  for (const [list, work] of turn % 2 === 0 ? both : both.reverse()) {
    list.push(await timed(work));
    await pause(calmMs);
  }
}

async function measureDeepSleep({ compute, bare, ref }) {
  const wakes = { theirs: [], ours: [] };
  for (let turn = 0; turn < deepSleeps; turn++) {
    await pause(restMs);
    await compute.suspend();
    await bare.deepen(compute.branchId);
    await bare.hibernate(ref);
    await pause(calmMs);
    await inTurn(turn, wakes, { theirs: () => bare.wake(ref), ours: () => selectOne(compute.connection) });
  }
  report('wake from deep sleep, until the first row', wakes, 5_000);
}

/** Up and down again. */
async function measureResize({ catnap, compute, bare, ref }) {
  const sizes = { theirs: [], ours: [] };
  const resize = async (cu) => {
    await catnap.api('PATCH', compute.path, { endpoint: sizeOf(cu) });
    const cores = (text) => (text.endsWith('m') ? Number(text.slice(0, -1)) / 1_000 : Number(text));
    await until('a size', async () => cores((await bare.limitsOf(compute.branchId)).cpu) === cu);
  };
  await selectOne(compute.connection);
  for (let turn = 0; turn < copies; turn++) {
    for (const cu of [0.5, 1]) {
      sizes.theirs.push(await timed(() => bare.resize(ref, cu)));
      sizes.ours.push(await timed(() => resize(cu)));
      await untilCalm(catnap, compute.projectId);
    }
  }
  report('resize, until it is in force', sizes);
}

/** Of a parent that naps: storage that copies file by file needs one that writes nothing meanwhile. */
async function measureBranch({ catnap, compute, bare, ref }) {
  const branches = { theirs: [], ours: [] };
  await pause(restMs);
  await bare.nap(ref);
  await compute.suspend();
  for (let turn = 0; turn < copies; turn++) {
    branches.theirs.push(await timed(() => bare.branch(ref, bare.newRef())));
    const branch = { branch: { parent_id: compute.branchId }, endpoints: [{ type: 'read_write' }] };
    const make = async () => {
      const made = await catnap.api('POST', `/projects/${compute.projectId}/branches`, branch);
      await selectOne({ connectionString: made.connection_uris[0].connection_uri });
    };
    branches.ours.push(await timed(make));
  }
  report('branch, until the first row', branches);
}

/** The goal is of the median, in milliseconds. */
function report(what, { theirs, ours }, goalMs) {
  const title = `${what[0].toUpperCase()}${what.slice(1)} (ms)`;
  const rows = [
    [bareName, theirs],
    ['Catnap', ours],
  ];
  printTable(`Kubernetes. ${title}`, rows, bareName);
  keep({ what, unit: 'ms', ours, peer: theirs, beside: bareName });
  if (goalMs !== undefined) keep({ what: `${what}, in ms`, unit: 'ms', ours, atMost: goalMs });
}

/** For good, and from the cluster. */
async function removeProject(catnap, bare, projectId) {
  await catnap.api('DELETE', `/projects/${projectId}`);
  await catnap.api('POST', `/projects/${projectId}/purge`);
  await until('removal of a project', () => bare.hasNothingOf(projectId));
}

const untilCalm = (catnap, projectId) =>
  until('the end of operations', async () => {
    const { operations } = await catnap.api('GET', `/projects/${projectId}/operations`);
    return operations.every(({ status }) => !['scheduling', 'running', 'failed'].includes(status));
  });
