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
import { readCommit } from './origin.mjs';
import { describePackages, licenseTexts, packageFoldersOf, readLock } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = `${root}dist`;
const making = `${root}dist.new-${process.pid}`;
const leaving = `${root}dist.old-${process.pid}`;

/** The command, and what its children are started with. */
const started = ['bin', 'processes/child'];
/** These load the others with their code caches, and run what is to be in these. */
const loader = 'processes/cached-modules';
const rehearsed = ['processes/api', 'processes/worker', 'processes/proxy', 'processes/backup', 'processes/idle-api'];

/** Whole by themselves, because a process loads them after it has given up the right to read the program. */
const apart = ['cli/mcp/served'];

/** A `pg_dump` for machines that have none: two files of it are shipped. */
const dumpPackage = 'node_modules/@electric-sql/pglite-tools';

try {
  // Before anything is read: what changes meanwhile counts as newer than the result.
  const startedAt = new Date().toISOString();
  const format = { format: 'cjs', rootOf: (folder) => upFrom(`program/${folder}`) };
  const modules = await bundleServer([...started, ...rehearsed, loader], `${making}/program`, format).catch((error) => {
    console.error(error);
    fail('the program could not be built; see the lines above');
  });
  const modulesApart = await Promise.all(apart.map((name) => bundleServer([name], `${making}/program`, format)));
  await bundleTesting();
  for (const name of started) writeStarter(name);
  // What is below here are scripts, whatever the package is.
  writeFileSync(`${making}/package.json`, '{ "type": "commonjs" }\n');
  for (const room of ['db', 'auth-provider']) {
    cpSync(`${root}src/${room}/migrations`, `${making}/${room}/migrations`, { recursive: true });
  }
  copyDumpProgram();
  const ofConsole = await buildConsole(`${making}/console`, `${target}/console`).catch((error) => {
    console.error(error);
    fail('the console could not be built; see the lines above');
  });
  recordOrigin([...packageFoldersOf([...modules, ...modulesApart.flat()]), ...ofConsole, dumpPackage]);
  makeCodeCaches();
  writeFileSync(`${making}/${stampName}`, `${startedAt}\n`);
  takeItsPlace();
} finally {
  rmSync(making, { recursive: true, force: true });
  rmSync(leaving, { recursive: true, force: true });
}

/** What other people's tests import: a module, and small, because each of their processes loads it. */
async function bundleTesting() {
  const format = {
    format: 'esm',
    rootOf: (folder) => `new URL('${`testing/${folder}`.replaceAll(/[^/]+/g, '..')}', import.meta.url)`,
  };
  await bundleServer(['processes/testing'], `${making}/testing`, format);
  writeFileSync(`${making}/testing/package.json`, '{ "type": "module" }\n');
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

/** Where `src/compute/schema-dump/wasm-dump.ts` looks for it: the package would bring a whole Postgres along. */
function copyDumpProgram() {
  for (const name of ['pg_dump.cjs', 'pg_dump.wasm']) {
    cpSync(`${root}${dumpPackage}/dist/${name}`, `${making}/compute/schema-dump/${name}`);
  }
}

/** From which commit it is built, and what of other people's work is in it. */
function recordOrigin(folders) {
  const packages = describePackages([...new Set(folders)], readLock());
  const listed = packages.map(({ name, version, license }) => ({ name, version, license }));
  writeFileSync(`${making}/origin.json`, `${JSON.stringify({ commit: readCommit(), packages: listed }, null, 2)}\n`);
  writeFileSync(`${making}/third-party-licenses.txt`, licenseTexts(packages));
}

/** In a process of its own, with no flag that a start does not have: V8 would refuse the caches. */
function makeCodeCaches() {
  const script = fileURLToPath(new URL('make-code-caches.mjs', import.meta.url));
  const stdio = ['ignore', 'ignore', 'inherit'];
  for (const names of [['bin'], rehearsed, apart]) {
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
