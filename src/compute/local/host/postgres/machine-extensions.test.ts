/** Extensions of the machine, on real binaries: the library of one is another one's, so that no package is needed. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeTempHome, type TempHome } from '../../../../../test/helpers/temp-home.ts';
import { ensureHome } from '../../../../machine/home.ts';
import type { Layout } from '../home/layout.ts';
import { type Build, ensureBuild, removeUnusedBuilds } from './builds.ts';
import { extendBuild, mayBeExtended } from './extended-build.ts';
import { complaint } from './library-check.ts';
import { controlValue, type ExtensionFolders, extensionFoldersOf, foldersInTree } from './machine-extensions.ts';

let home: TempHome;
let layout: Layout;
let base: Build;
let root: string;
let folders: ExtensionFolders;
beforeAll(async () => {
  home = await makeTempHome();
  layout = await ensureHome(home.config);
  base = await ensureBuild(17, home.config, layout);
});
afterAll(() => home.remove());

beforeEach(async () => {
  // What other tests have offered is not missed here.
  await rm(join(layout.builds, '17.extensions.json'), { force: true });
  root = join(home.path, `root-${Math.random().toString(36).slice(2)}`);
  const [first] = extensionFoldersOf(17, { roots: { 17: [root] } });
  if (first === undefined) throw new Error('there are no folders');
  folders = first;
  await mkdir(folders.scripts, { recursive: true });
  await mkdir(folders.libraries, { recursive: true });
});

/** An extension whose library is a real one, with some of its bytes replaced. */
async function addExtension(name: string, lines = '', change: (library: string) => string = (text) => text) {
  const control = `comment = 'it''s ${name}'\ndefault_version = '1.0'\nmodule_pathname = '$libdir/${name}'\n${lines}`;
  await writeFile(join(folders.scripts, `${name}.control`), control);
  await writeFile(join(folders.scripts, `${name}--1.0.sql`), '');
  const real = await readFile(join(foldersInTree(dirname(base.bin)).libraries, 'moddatetime.so'), 'latin1');
  await writeFile(join(folders.libraries, `${name}.so`), change(real), 'latin1');
}

const lines: string[] = [];
async function extend(allowed: readonly string[] = []) {
  lines.length = 0;
  const { build, listExtensions } = await extendBuild(base, { roots: { 17: [root] }, allowed }, layout, (line) =>
    lines.push(line),
  );
  const facts = await listExtensions();
  const fact = (name: string) => facts.extensions.find((one) => one.name === name);
  const tree = foldersInTree(dirname(build.bin));
  const read = (file: string) => readFile(join(tree.scripts, file), 'utf8');
  return { build, fact, read, tree };
}

describe('extensions of the machine', () => {
  test('a machine without any has the embedded build itself', async () => {
    const { build, fact } = await extend();
    expect(build).toEqual(base);
    expect(await mayBeExtended(17, home.config.extensions, layout)).toBe(false);
    expect(fact('plpgsql')).toMatchObject({ isOffered: true, origin: 'Catnap', reason: null });
    const reason = 'it reads server files and runs programs';
    expect(fact('file_fdw')).toMatchObject({ isOffered: false, origin: 'Catnap', reason });
  });

  test('one that is on the list is marked trusted, in a build beside the embedded one', async () => {
    await addExtension('vector', 'trusted = false\n');
    const { build, fact, read, tree } = await extend();
    expect(build).toMatchObject({ base: base.name, name: expect.stringMatching(`^${base.name}-x[0-9a-f]{10}$`) });
    expect(fact('vector')).toEqual({
      name: 'vector',
      version: '1.0',
      comment: "it's vector",
      origin: folders.scripts,
      isOffered: true,
      reason: null,
    });
    expect((await read('vector.control')).match(/^trusted.*/gm)).toEqual(['trusted = true']);
    expect(existsSync(join(tree.libraries, 'vector.so'))).toBe(true);
    // The embedded build stays as it is, and its files take no room twice.
    expect(existsSync(join(foldersInTree(dirname(base.bin)).scripts, 'vector.control'))).toBe(false);
    expect((await stat(join(build.bin, 'postgres'))).ino).toBe((await stat(join(base.bin, 'postgres'))).ino);
    expect((await extend()).build.name).toBe(build.name);
    await removeUnusedBuilds(build, layout);
    expect([existsSync(build.bin), existsSync(base.bin)]).toEqual([true, true]);
    await copyFile(join(folders.scripts, 'vector--1.0.sql'), join(folders.scripts, 'vector--1.0--1.1.sql'));
    expect((await extend()).build.name).not.toBe(build.name);
  });

  test('another one is not offered, with the reason, unless the operator allows it', async () => {
    await addExtension('pg_cron');
    await addExtension('unheard_of');
    const { build, fact } = await extend();
    expect(build).toEqual(base);
    expect(fact('pg_cron')?.reason).toMatch(/superuser session .* sleeps/);
    expect(fact('unheard_of')?.reason).toMatch(/not on the list .* CATNAP_EXTENSIONS_ALLOW/);
    const allowed = await extend(['unheard_of', 'dblink']);
    expect(allowed.fact('unheard_of')).toMatchObject({ isOffered: true });
    expect(await allowed.read('unheard_of.control')).toContain('trusted = true');
    // Also what the embedded Postgres has, and Catnap takes away.
    expect(await allowed.read('dblink.control')).toContain('trusted = true');
  });

  test('one that the operator allows no more says why, where it is asked for', async () => {
    await addExtension('postgis');
    await extend(['postgis']);
    const { fact, read } = await extend();
    expect(fact('postgis')).toMatchObject({ isOffered: false, reason: expect.stringMatching(/^its upgrade scripts/) });
    expect(await read('postgis--unavailable.sql')).toContain('extension "postgis" is not available: its upgrade');
    expect(lines).toEqual([expect.stringMatching(/^extension postgis of Postgres 17 is not offered: its upgrade/)]);
  });

  test('one that needs no superuser is offered as it is', async () => {
    await addExtension('pg_partman', 'superuser = false\n');
    expect((await extend()).fact('pg_partman')).toMatchObject({ isOffered: true });
    expect(await (await extend()).read('pg_partman.control')).not.toContain('trusted');
  });

  test('one whose library cannot be loaded here says why, where it is asked for', async () => {
    await addExtension('vector', '', (library) => library.replace('GLIBC_2', 'GLIBC_9'));
    await addExtension('hypopg', '', (library) => library.replace('libc.so.6', 'libq.so.6'));
    await addExtension('unheard_of', '', () => 'no library at all');
    const { fact, read } = await extend(['unheard_of']);
    const old = /^its library needs GLIBC_9[.\d]+, which this machine does not have: its C library is \d+\.\d+$/;
    expect(fact('vector')?.reason).toMatch(old);
    expect(fact('hypopg')?.reason).toMatch(/^its library needs libq\.so\.6, which this machine does not have$/);
    expect(fact('unheard_of')?.reason).toMatch(/^its library unheard_of\.so cannot be loaded: /);
    expect(await read('vector--unavailable.sql')).toContain('extension "vector" is not available: its library needs');
    expect(lines).toContainEqual(expect.stringMatching(/^extension vector of Postgres 17 is not offered: its library/));
  });

  test('one that needs another one is offered with it only', async () => {
    await addExtension('vector', "requires = 'hypopg, cube'\n");
    expect((await extend()).fact('vector')?.reason).toBe('it needs the extension hypopg, which is not offered');
    await addExtension('hypopg');
    expect((await extend()).fact('vector')).toMatchObject({ isOffered: true });
  });

  test('one that has gone is missed', async () => {
    await addExtension('vector');
    await extend();
    await rm(root, { recursive: true });
    const { fact, read } = await extend();
    expect(fact('vector')).toMatchObject({
      isOffered: false,
      reason: expect.stringMatching(/has gone from this machine/),
    });
    expect(await read('vector.control')).toContain('has gone from this machine');
    expect(lines).toHaveLength(1);
    expect(await mayBeExtended(17, home.config.extensions, layout)).toBe(true);
  });
});

test('the usual folders are those of Debian and of PGDG', () => {
  const scripts = extensionFoldersOf(18, { roots: {} }).map((one) => one.scripts);
  expect(scripts).toEqual(['/usr/share/postgresql/18/extension', '/usr/pgsql-18/share/extension']);
  expect(extensionFoldersOf(18, { roots: { 18: [] } })).toEqual([]);
});

test('values of control files are read as Postgres reads them', () => {
  const control = "# comment = 'no'\ncomment = 'it''s one' # more\n schema=pg_catalog\ncomment 'the last one'\n";
  expect(controlValue(control, 'comment')).toBe('the last one');
  expect(controlValue(control, 'schema')).toBe('pg_catalog');
  expect(controlValue("comment = 'it''s one'", 'comment')).toBe("it's one");
  expect(controlValue(control, 'requires')).toBeNull();
});

test('what the loader prints is put into words', () => {
  const loaded = '\t./a.so (0x0000ffff)\n';
  expect(complaint(loaded, 'a.so')).toBeNull();
  expect(complaint('', 'a.so')).toBe('the loader did not find its library a.so');
  const symbol = `${loaded}undefined symbol: GEOSNode\t(./a.so)\nundefined symbol: elsewhere\t(./b.so)\n`;
  expect(complaint(symbol, 'a.so')).toBe('its library needs GEOSNode, which this Postgres does not have');
});
