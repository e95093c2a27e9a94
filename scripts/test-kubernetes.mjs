/**
 * What `npm run test:kubernetes` runs: the contract suite of drivers and the whole program, on the cluster that
 * KUBECONFIG names (`test/kubernetes/*.cluster.ts`). Further arguments go to vitest. Nothing of it is part of `npm
 * test`: without a cluster it says so and has run nothing.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const needs =
  'set KUBECONFIG to a cluster with CloudNativePG, and CATNAP_KUBERNETES_IMAGE_17 to an image of Postgres for it';

process.exitCode = main();

function main() {
  if (!process.env.KUBECONFIG) {
    console.log(`SKIPPED: no test has run on Kubernetes: ${needs}`);
    return 0;
  }
  if (!Object.keys(process.env).some((name) => name.startsWith('CATNAP_KUBERNETES_IMAGE_'))) {
    console.error(`no image is configured: ${needs}`);
    return 2;
  }
  if (run([join(root, 'scripts/build.mjs')]) !== 0) return 1;
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  // One file after the other: they look for what the namespace holds.
  return run([vitest, 'run', '--mode=kubernetes', '--maxWorkers=1', ...process.argv.slice(2)]);
}

function run(words) {
  return spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' }).status ?? 1;
}
