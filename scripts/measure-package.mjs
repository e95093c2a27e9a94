/**
 * Packs Catnap, installs the package into an empty folder as a person would, and prints what is in it, what it takes on
 * the disk, and how long it is until the first row: `npm run package`. A tarball that is named is taken as it is, which
 * also lets another user run this. Nothing is left behind.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'catnap-package-'));
// As root, servers run under other uids and must get to the data home.
chmodSync(folder, 0o755);

try {
  const tarball = process.argv[2] === undefined ? pack() : resolve(process.argv[2]);
  const app = join(folder, 'app');
  mkdirSync(app);
  // Otherwise npm looks for one in the folders above.
  writeFileSync(join(app, 'package.json'), '{}');
  const install = timed(() => run('npm', ['install', '--no-audit', '--no-fund', tarball], app));
  console.log(`\nInstalled by ${userInfo().username} in ${install.seconds} s:`);
  printSizes(join(app, 'node_modules'));
  await tryIt(join(app, 'node_modules/.bin/catnap'));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function pack() {
  run(process.execPath, [join(root, 'scripts/build.mjs')], root);
  // It is built; what npm prints of scripts would be in between.
  const words = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [packed] = JSON.parse(run('npm', words, root, ['ignore', 'pipe', 2]));
  const { filename, size, unpackedSize, files } = packed;
  console.log(`${filename}: ${megabytes(size)}, unpacked ${megabytes(unpackedSize)} in ${files.length} files:`);
  const parts = groupBy(files, partOf);
  const sums = [...parts].map(([part, of]) => [part, of.reduce((sum, file) => sum + file.size, 0)]);
  for (const [part, bytes] of sums.sort(([, one], [, other]) => other - one)) printLine(part, bytes);
  return join(folder, filename);
}

function partOf({ path }) {
  return path
    .split('/')
    .slice(0, path.startsWith('dist/') ? 2 : 1)
    .join('/');
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function printSizes(modules) {
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  const sizes = names.map((name) => [name, bytesBelow(join(modules, name))]);
  const large = sizes.filter(([, bytes]) => bytes > 1e6).sort(([, one], [, other]) => other - one);
  for (const [name, bytes] of large) printLine(name, bytes);
  printLine('all packages', bytesBelow(modules));
}

function bytesBelow(path) {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0);
}

/** The first start, a project, and a query, as the README has them. */
async function tryIt(command) {
  const [httpPort, pgPort] = await Promise.all([freePort(), freePort()]);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    CATNAP_HOME: join(folder, 'home'),
    CATNAP_HTTP_PORT: String(httpPort),
    CATNAP_PG_PORT: String(pgPort),
  };
  const startedAt = performance.now();
  const since = () => ((performance.now() - startedAt) / 1000).toFixed(1);
  const server = spawn(command, ['up', '--stop-computes'], { cwd: folder, env, stdio: ['ignore', 'pipe', 2] });
  const ended = new Promise((done) => server.once('exit', done));
  try {
    await Promise.race([printed(server, 'Create a project'), ended.then(failStart)]);
    console.log(`\nUp ${since()} s after the first start`);
    const catnap = (...words) => run(command, words, folder, ['ignore', 'pipe', 2], env);
    console.log(`Version ${catnap('--version').trim()}`);
    catnap('projects', 'create', 'first');
    const answer = catnap('sql', 'select version()').trim().split('\n').at(-1);
    console.log(`First row after ${since()} s: ${answer}`);
  } finally {
    server.kill('SIGINT');
    await ended;
  }
}

function printed(child, text) {
  return new Promise((done) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      if (output.includes(text)) done();
    });
  });
}

function failStart() {
  throw new Error('Catnap ended while starting; see the lines above');
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

function timed(work) {
  const startedAt = performance.now();
  work();
  return { seconds: ((performance.now() - startedAt) / 1000).toFixed(1) };
}

function run(command, words, cwd, stdio = ['ignore', 2, 2], env = process.env) {
  const { status, stdout } = spawnSync(command, words, { cwd, env, stdio, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} ended with ${status}`);
  return stdout;
}

function printLine(name, bytes) {
  console.log(`  ${megabytes(bytes).padStart(9)}  ${name}`);
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
