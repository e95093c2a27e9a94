#!/usr/bin/env node
/** The `catnap` command. In a checkout it first builds what is out of date; a package has the result and no sources. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const buildScript = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url));

if (existsSync(buildScript)) {
  const { isBuildFresh } = await import('../scripts/freshness.mjs');
  if (!isBuildFresh()) {
    // To stderr, as everything of the build: the output of a command may be read by a program.
    process.stderr.write('catnap: building what has changed, about 10 s …\n');
    const startedAt = Date.now();
    const { status } = spawnSync(process.execPath, [buildScript], { stdio: ['ignore', 2, 2] });
    if (status !== 0) process.exit(1);
    process.stderr.write(`catnap: built in ${Math.ceil((Date.now() - startedAt) / 1_000)} s\n`);
  } else if (['up', '-V', '--version'].includes(process.argv[2])) {
    // These say which commit it is. Asking git takes a moment that other commands need not wait for.
    const { renameCommit } = await import('../scripts/origin.mjs');
    renameCommit();
  }
}
await import('../dist/bin.js');
