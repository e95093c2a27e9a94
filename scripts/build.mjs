/**
 * Builds dist/ from src/ and console/: a bundle of each, then the files that are read at run time. The new tree is made
 * beside the old one and takes its place by a rename, so that a Catnap that runs from dist/ never finds it half written.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build-console.mjs';
import { bundleServer } from './bundle-server.mjs';
import { stampName } from './freshness.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}dist`;
const making = `${root}dist.new-${process.pid}`;
const leaving = `${root}dist.old-${process.pid}`;

/** The command, and what its children are started with. */
const started = ['bin', 'processes/child'];
/** These load the others with their code caches, and run what is to be in these. */
const loader = 'processes/cached-modules';
const rehearsed = ['processes/api', 'processes/worker', 'processes/proxy', 'processes/backup', 'processes/idle-api'];

try {
  // Before anything is read: what changes meanwhile counts as newer than the result.
  const startedAt = new Date().toISOString();
  const format = { format: 'cjs', rootOf: (folder) => upFrom(`program/${folder}`) };
  await bundleServer([...started, ...rehearsed, loader], `${making}/program`, format).catch((error) => {
    console.error(error);
    fail('the program could not be built; see the lines above');
  });
  for (const name of started) writeStarter(name);
  // What is below here are scripts, whatever the package is.
  writeFileSync(`${making}/package.json`, '{ "type": "commonjs" }\n');
  for (const room of ['db', 'auth-provider']) {
    cpSync(`${root}src/${room}/migrations`, `${making}/${room}/migrations`, { recursive: true });
  }
  await buildConsole(`${making}/console`, `${target}/console`).catch((error) => {
    console.error(error);
    fail('the console could not be built; see the lines above');
  });
  makeCodeCaches();
  writeFileSync(`${making}/${stampName}`, `${startedAt}\n`);
  takeItsPlace();
} finally {
  rmSync(making, { recursive: true, force: true });
  rmSync(leaving, { recursive: true, force: true });
}

/** The root of dist/ as a file in one of its folders sees it. */
function upFrom(folder) {
  return `new URL('./${folder.replaceAll(/[^/]+/g, '..')}', require('node:url').pathToFileURL(__filename))`;
}

/** The file that a process is started with: it loads the one of the same name in the program. */
function writeStarter(name) {
  const path = `${making}/${name}.js`;
  mkdirSync(dirname(path), { recursive: true });
  const from = relative(dirname(path), `${making}/program/${loader}.js`);
  const text = `require(${JSON.stringify(`./${from}`)}).loadProgram(${JSON.stringify(name)});\n`;
  writeFileSync(path, text);
}

/** In a process of its own, with no flag that a start does not have: V8 would refuse the caches. */
function makeCodeCaches() {
  const script = fileURLToPath(new URL('make-code-caches.mjs', import.meta.url));
  const stdio = ['ignore', 'ignore', 'inherit'];
  for (const names of [['bin'], rehearsed]) {
    const { status } = spawnSync(process.execPath, [script, making, ...names], { stdio });
    if (status !== 0) fail('the code caches could not be made; see the lines above');
  }
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
