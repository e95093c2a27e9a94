#!/usr/bin/env node
/** The `catnap` command of a checkout: builds what is out of date, then runs it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isBuildFresh } from '../scripts/freshness.mjs';

if (!isBuildFresh()) {
  const script = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [script], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
}
await import('../dist/bin.js');
