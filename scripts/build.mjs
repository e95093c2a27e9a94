/**
 * Builds dist/ from src/ and console/: a bundle of each, then the files that are read at run time. The new tree is made
 * beside the old one and takes its place by a rename, so that a Catnap that runs from dist/ never finds it half written.
 */
import { cpSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build-console.mjs';
import { bundleServer } from './bundle-server.mjs';
import { stampName } from './freshness.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}dist`;
const making = `${root}dist.new-${process.pid}`;
const leaving = `${root}dist.old-${process.pid}`;

/** The command, and what its children are started with. */
const entries = ['bin', 'processes/child'];

try {
  // Before anything is read: what changes meanwhile counts as newer than the result.
  const startedAt = new Date().toISOString();
  await bundleServer(entries, making, upFrom).catch((error) => {
    console.error(error);
    fail('the program could not be built; see the lines above');
  });
  for (const room of ['db', 'auth-provider']) {
    cpSync(`${root}src/${room}/migrations`, `${making}/${room}/migrations`, { recursive: true });
  }
  await buildConsole(`${making}/console`, `${target}/console`).catch((error) => {
    console.error(error);
    fail('the console could not be built; see the lines above');
  });
  writeFileSync(`${making}/${stampName}`, `${startedAt}\n`);
  takeItsPlace();
} finally {
  rmSync(making, { recursive: true, force: true });
  rmSync(leaving, { recursive: true, force: true });
}

/** The root of dist/ as a file in one of its folders sees it. */
function upFrom(folder) {
  return `new URL('./${folder.replaceAll(/[^/]+/g, '..')}', import.meta.url)`;
}

/** Two builds at once: whoever comes last stays. */
function takeItsPlace() {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (existsSync(target)) renameSync(target, leaving);
      renameSync(making, target);
      return;
    } catch (error) {
      rmSync(leaving, { recursive: true, force: true });
      if (attempt === 5) throw error;
    }
  }
}

function fail(message) {
  console.error(`build: ${message}`);
  rmSync(making, { recursive: true, force: true });
  process.exit(1);
}
