/**
 * `npm run bench -- NAME`: builds, runs one benchmark or all of them, and prints one table each. `--write` leaves the
 * figures in docs/performance, `--gate` says what moved since those and fails where something got worse, and `--busy`
 * measures beside other work on every core.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { benchApi } from './api.mjs';
import { benchAutoscale } from './autoscale.mjs';
import { benchBranch } from './branch.mjs';
import { besideOtherWork } from './busy.mjs';
import { benchConsole } from './console.mjs';
import { benchCreate } from './create.mjs';
import { benchCrowd } from './crowd.mjs';
import { benchDrill } from './drill.mjs';
import { benchHistory } from './history.mjs';
import { benchIdle } from './idle.mjs';
import { benchKubernetes } from './kubernetes.mjs';
import { compareWithLedger, takeKept, writeLedger } from './measures.mjs';
import { benchMoments } from './moments.mjs';
import { benchNeighbours } from './neighbours.mjs';
import { benchProxy } from './proxy.mjs';
import { benchRecovery } from './recovery.mjs';
import { benchScale } from './scale.mjs';
import { benchServerless } from './serverless.mjs';
import { benchSuspend } from './suspend.mjs';
import { benchTesting } from './testing.mjs';
import { benchUsersSync } from './users-sync.mjs';
import { benchWake } from './wake.mjs';

const benchmarks = {
  api: benchApi,
  autoscale: benchAutoscale,
  neighbours: benchNeighbours,
  branch: benchBranch,
  console: benchConsole,
  create: benchCreate,
  crowd: benchCrowd,
  drill: benchDrill,
  history: benchHistory,
  idle: benchIdle,
  kubernetes: benchKubernetes,
  moments: benchMoments,
  proxy: benchProxy,
  recovery: benchRecovery,
  scale: benchScale,
  serverless: benchServerless,
  suspend: benchSuspend,
  testing: benchTesting,
  'users-sync': benchUsersSync,
  wake: benchWake,
};

const root = fileURLToPath(new URL('..', import.meta.url));
const flags = ['--write', '--gate', '--busy'];
const asked = process.argv.slice(2);
const wanted = asked.filter((word) => !flags.includes(word));
const unknown = wanted.find((name) => !(name in benchmarks));
if (unknown !== undefined) {
  console.error(
    `bench: there is no ${unknown}; choose from ${Object.keys(benchmarks).join(', ')} and ${flags.join(', ')}`,
  );
  process.exit(2);
}
if (spawnSync(process.execPath, [`${root}scripts/build.mjs`], { stdio: 'inherit' }).status !== 0) process.exit(1);
for (const [name, run] of Object.entries(benchmarks)) {
  if (wanted.length === 0 || wanted.includes(name)) await measure(name, run);
}

async function measure(name, run) {
  const isBusy = asked.includes('--busy');
  const loadBefore = loadavg()[0];
  await (isBusy ? besideOtherWork(run) : run());
  const measures = takeKept();
  if (measures.length === 0) return;
  if (asked.includes('--gate') && compareWithLedger(name, measures, isBusy)) process.exitCode = 1;
  if (asked.includes('--write')) writeLedger(name, measures, { isBusy, loadBefore });
}
