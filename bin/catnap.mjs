#!/usr/bin/env node
/** The `catnap` command. In a checkout it first builds what is out of date; a package has the result and no sources. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const buildScript = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url));

if (existsSync(buildScript)) {
  const { isBuildFresh } = await import('../scripts/freshness.mjs');
  if (!isBuildFresh()) {
    const { status } = spawnSync(process.execPath, [buildScript], { stdio: ['ignore', 2, 2] });
    if (status !== 0) process.exit(1);
  }
}
await import('../dist/bin.js');
