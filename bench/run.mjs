/** `npm run bench -- NAME`: builds, runs one benchmark or all of them, and prints one table each. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { benchAutoscale } from './autoscale.mjs';
import { benchBranch } from './branch.mjs';
import { benchCreate } from './create.mjs';
import { benchDrill } from './drill.mjs';
import { benchHistory } from './history.mjs';
import { benchIdle } from './idle.mjs';
import { benchMoments } from './moments.mjs';
import { benchNeighbours } from './neighbours.mjs';
import { benchProxy } from './proxy.mjs';
import { benchRecovery } from './recovery.mjs';
import { benchServerless } from './serverless.mjs';
import { benchUsersSync } from './users-sync.mjs';
import { benchWake } from './wake.mjs';

const benchmarks = {
  autoscale: benchAutoscale,
  neighbours: benchNeighbours,
  branch: benchBranch,
  create: benchCreate,
  drill: benchDrill,
  history: benchHistory,
  idle: benchIdle,
  moments: benchMoments,
  proxy: benchProxy,
  recovery: benchRecovery,
  serverless: benchServerless,
  'users-sync': benchUsersSync,
  wake: benchWake,
};

const root = fileURLToPath(new URL('..', import.meta.url));
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !(name in benchmarks));
if (unknown !== undefined) {
  console.error(`bench: there is no ${unknown}; choose from ${Object.keys(benchmarks).join(', ')}`);
  process.exit(2);
}
if (spawnSync(process.execPath, [`${root}scripts/build.mjs`], { stdio: 'inherit' }).status !== 0) process.exit(1);
for (const [name, run] of Object.entries(benchmarks)) {
  if (wanted.length === 0 || wanted.includes(name)) await run();
}
