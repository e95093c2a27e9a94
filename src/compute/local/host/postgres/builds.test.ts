import { existsSync } from 'node:fs';
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeTempHome, type TempHome } from '../../../../../test/helpers/temp-home.ts';
import { runProgram } from '../../../../lib/run-program.ts';
import { ensureHome } from '../../../../machine/home.ts';
import type { Layout } from '../home/layout.ts';
import { ensureBuild, locateEmbedded, removeUnusedBuilds } from './builds.ts';
import { embeddedExtensions, machineExtensions } from './extension-list.ts';
import { curateExtensions } from './extensions.ts';

describe('the copy of the binaries', () => {
  let home: TempHome;
  let layout: Layout;
  beforeEach(async () => {
    home = await makeTempHome();
    layout = await ensureHome(home.config);
  });
  afterEach(() => home.remove());

  test('is made once, runs, has its library links and is readable by all', async () => {
    const lines: string[] = [];
    const both = await Promise.all([1, 2].map(() => ensureBuild(17, home.config, layout, (line) => lines.push(line))));
    expect(both[0]).toEqual(both[1]);
    const build = both[0] ?? (await ensureBuild(17, home.config, layout));
    expect(build.name).toMatch(/^17\.\d+\.\d+-.*[0-9a-f]{10}$/);
    expect(await readdir(join(layout.builds, '17'))).toEqual([build.name]);
    expect(await runProgram(join(build.bin, 'postgres'), ['--version'])).toMatch(/PostgreSQL\) 17/);

    const lib = join(dirname(build.bin), 'lib');
    const links: { source: string; target: string }[] = JSON.parse(
      await readFile(join(locateEmbedded(17), 'pg-symlinks.json'), 'utf8'),
    );
    for (const { target } of links) {
      const name = target.split('/').at(-1) ?? '';
      expect(await readlink(join(lib, name))).not.toContain('/');
      expect(existsSync(join(lib, name))).toBe(true);
    }
    expect((await lstat(lib)).mode & 0o777).toBe(0o755);
    expect((await lstat(build.bin)).mode & 0o777).toBe(0o755);
    await ensureBuild(17, home.config, layout, () => expect.unreachable('copied again'));
  });

  test('an older build goes when nothing runs from it', async () => {
    const build = await ensureBuild(17, home.config, layout);
    await mkdir(layout.build(17, 'older'));
    await mkdir(layout.template(17, 'older'), { recursive: true });
    await removeUnusedBuilds(build, layout);
    expect(existsSync(build.bin)).toBe(true);
    if (process.platform !== 'linux') return;
    expect(existsSync(layout.build(17, 'older'))).toBe(false);
    expect(existsSync(layout.template(17, 'older'))).toBe(false);
  });

  test('given binaries are used in place', async () => {
    const { bin } = await ensureBuild(17, home.config, layout);
    const build = await ensureBuild(18, { pgBin: { 18: bin } }, layout);
    expect(build).toMatchObject({ major: 18, bin });
    const nowhere = ensureBuild(16, { pgBin: { 16: home.path } }, layout);
    await expect(nowhere).rejects.toThrow(/CATNAP_PG_BIN_16: there is no postgres/);
    await expect(ensureBuild(16, home.config, layout)).rejects.toThrow(/set CATNAP_PG_BIN_16/);
  });
});

describe('the allow list of extensions', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cn-ext-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('what is left is trusted, and nothing dangerous is left', async () => {
    const control = (name: string, text: string) => writeFile(join(folder, `${name}.control`), text);
    await control('hstore', "default_version = '1.8'\ntrusted = true\n");
    await control('postgres_fdw', "default_version = '1.1'\n");
    await writeFile(join(folder, 'postgres_fdw--1.0.sql'), 'CREATE FOREIGN DATA WRAPPER postgres_fdw;\n');
    await control('bloom', 'trusted = false\n');
    for (const name of ['file_fdw', 'adminpack', 'pageinspect', 'dblink', 'unknown']) await control(name, '');
    for (const name of ['plperl', 'hstore_plpython3u', 'pltcl']) await control(name, 'trusted = true\n');
    await writeFile(join(folder, 'file_fdw--1.0.sql'), '');

    await curateExtensions(folder);
    expect((await readdir(folder)).sort()).toEqual([
      'bloom.control',
      'hstore.control',
      'postgres_fdw--1.0.sql',
      'postgres_fdw.control',
    ]);
    for (const name of ['bloom', 'hstore', 'postgres_fdw']) {
      const text = await readFile(join(folder, `${name}.control`), 'utf8');
      expect(text.match(/^trusted = .*$/gm)).toEqual(['trusted = true']);
    }
    const script = await readFile(join(folder, 'postgres_fdw--1.0.sql'), 'utf8');
    expect(script).toContain('GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO pg_database_owner');
  });

  test('names none that reads files, pages or WAL', () => {
    const dangerous = /file|admin|inspect|surgery|dblink|^pl|freespace|visibility|amcheck|buffercache/;
    const listed = Object.keys({ ...embeddedExtensions, ...machineExtensions });
    expect(listed.filter((name) => dangerous.test(name))).toEqual([]);
  });
});
