/**
 * Installs Catnap in each way that docs/installing.md names, from nothing: an empty folder, an empty home and an empty
 * cache of npm. It starts Catnap there, and prints how long the installation takes, what it takes on the disk, and how
 * long it is until Catnap is up and until a client has the first row of the first project:
 *
 *   npm run installs -- [--way=npm,global,clone,container] [--build='WORDS FOR podman build'] [TARBALL]
 *
 * A tarball that is named is taken as it is, which also lets another user run this. Nothing is left behind.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, homedir, loadavg, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildImage } from './installs/container.mjs';
import { measureFirstRow } from './installs/first-row.mjs';
import { freePort, isInstalled, megabytes, secondsSince } from './installs/kit.mjs';
import { pack } from './installs/pack.mjs';
import { installFromClone, installGlobally, installWithNpm } from './installs/ways.mjs';

const ways = {
  npm: { install: installWithNpm, needs: 'npm' },
  global: { install: installGlobally, needs: 'npm' },
  clone: { install: installFromClone, needs: 'git' },
  container: { install: buildImage, needs: 'podman' },
};
const root = fileURLToPath(new URL('..', import.meta.url));
const options = { way: { type: 'string', default: Object.keys(ways).join() }, build: { type: 'string', default: '' } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });

const folder = makeFolder();
let packed = positionals[0] && resolve(positionals[0]);
const tarball = () => {
  packed ??= pack(root, folder);
  return packed;
};

try {
  const wanted = values.way.split(',');
  const unknown = wanted.find((name) => !Object.hasOwn(ways, name));
  if (unknown !== undefined) throw new Error(`--way=${unknown} is none of ${Object.keys(ways).join(', ')}`);
  const lines = [];
  for (const name of wanted) lines.push(await measure(name).catch((error) => giveUp(name, error)));
  const machine = `${cpus().length} cores (${process.arch}), Node ${process.versions.node}, ${new Date().toISOString()}`;
  console.log(`\n${userInfo().username} on ${machine}\n`);
  console.log(
    '| way | install | size | up after its start | first row after its start | load at the start, at the end |',
  );
  console.log(`|---|---|---|---|---|---|\n${lines.join('\n')}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** What the others took is printed all the same. */
function giveUp(name, error) {
  console.error(error);
  process.exitCode = 1;
  return `| ${name} | failed: ${error.message} | | | | |`;
}

/** Returns its line of the table. */
async function measure(name) {
  const { install, needs } = ways[name];
  if (!isInstalled(needs)) return `| ${name} | not measured: there is no ${needs} on this machine | | | | |`;
  // Packing is no part of an installation.
  if (name !== 'clone') tarball();
  console.log(`\n=== ${name}`);
  const place = makeFolder();
  let installed;
  try {
    const ports = await Promise.all([freePort(), freePort()]);
    const loadBefore = loadavg()[0];
    const startedAt = performance.now();
    installed = install({
      folder: place,
      env: emptyEnvironment(place, ports),
      root,
      tarball,
      ports,
      build: buildWords(),
    });
    const seconds = secondsSince(startedAt);
    const { up, firstRow, row } = await measureFirstRow(installed);
    console.log(`First row: ${row}`);
    const size = megabytes(installed.size());
    const load = `${loadBefore.toFixed(1)}, ${loadavg()[0].toFixed(1)}`;
    return `| ${name} | ${toSeconds(seconds)} | ${size} | ${toSeconds(up)} | ${toSeconds(firstRow)} | ${load} |`;
  } finally {
    installed?.remove?.();
    rmSync(place, { recursive: true, force: true });
  }
}

/** Without what belongs to the user, to Catnap or to the npm that runs this, but with the registry that npm uses. */
function emptyEnvironment(place, [httpPort, pgPort]) {
  const home = join(place, 'user');
  mkdirSync(home);
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|catnap_|xdg_)/i.test(name));
  return {
    ...Object.fromEntries(kept),
    HOME: home,
    npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
    CATNAP_HOME: join(place, 'home'),
    CATNAP_HTTP_PORT: String(httpPort),
    CATNAP_PG_PORT: String(pgPort),
  };
}

function makeFolder() {
  const made = mkdtempSync(join(tmpdir(), 'catnap-installs-'));
  // As root, servers run under other uids and must get to the data home.
  chmodSync(made, 0o755);
  return made;
}

function buildWords() {
  return values.build.split(' ').filter((word) => word !== '');
}

function toSeconds(seconds) {
  return `${seconds.toFixed(1)} s`;
}
