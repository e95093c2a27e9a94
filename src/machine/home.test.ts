import { chmod, chown, lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeTempHome, type TempHome } from '../../test/helpers/temp-home.ts';
import { ensureHome } from './home.ts';

const asRoot = process.getuid?.() === 0;
let place: TempHome;

beforeEach(async () => {
  place = await makeTempHome();
});
afterEach(() => place.remove());

const inside = (name: string) => ({ ...place.config, home: join(place.path, name) });

describe('the data home', () => {
  test('is made with its folders, closed to listing, and can be asked for again', async () => {
    const config = inside('home');
    const layout = await ensureHome(config);
    await ensureHome(config);
    await ensureHome(inside('some/other/home'));
    const mode = async (path: string) => (await lstat(path)).mode & 0o777;
    expect(await mode(config.home)).toBe(asRoot ? 0o711 : 0o700);
    expect(await mode(layout.projects)).toBe(asRoot ? 0o711 : 0o700);
    expect(await mode(layout.templates)).toBe(0o700);
    expect(await mode(layout.trash)).toBe(0o700);
  });

  test('a directory full of other things is refused, and left as it was', async () => {
    const config = inside('documents');
    await mkdir(config.home, { mode: 0o750 });
    await writeFile(join(config.home, 'letter'), '');
    await expect(ensureHome(config)).rejects.toThrow(/CATNAP_HOME.*holds letter/);
    expect((await lstat(config.home)).mode & 0o777).toBe(0o750);
  });

  test('a home that cannot be made is refused by the name of its setting', async () => {
    await writeFile(join(place.path, 'file'), '', { mode: 0o755 });
    await expect(ensureHome(inside('file/home'))).rejects.toThrow(/^CATNAP_HOME=".*\/file\/home" .*\(E\w+: /);
    const nowhere = { ...place.config, home: '/proc/nowhere/home' };
    await expect(ensureHome(nowhere)).rejects.toThrow(/^CATNAP_HOME="\/proc\/nowhere\/home" .*\(E\w+: /);
  });

  test('a home of somebody else is refused', async () => {
    const home = asRoot ? inside('theirs') : { ...place.config, home: '/usr' };
    if (asRoot) {
      await mkdir(home.home);
      await chown(home.home, 65_534, 65_534);
    }
    await expect(ensureHome(home)).rejects.toThrow(/belongs to uid/);
  });

  test('a file in the place of a folder is refused', async () => {
    const config = inside('home');
    await ensureHome(config);
    await rm(join(config.home, 'trash'), { recursive: true });
    await writeFile(join(config.home, 'trash'), '');
    await expect(ensureHome(config)).rejects.toThrow(/a directory owned by/);
  });

  test('folders may be links of our own', async () => {
    const config = inside('home');
    await ensureHome(config);
    await rm(join(config.home, 'builds'), { recursive: true });
    await mkdir(join(place.path, 'shared'));
    await chmod(join(place.path, 'shared'), 0o750);
    await symlink(join(place.path, 'shared'), join(config.home, 'builds'));
    const layout = await ensureHome(config);
    expect((await lstat(layout.builds)).isSymbolicLink()).toBe(true);
    // Others use the link's target too, so its mode is not ours to change.
    expect((await lstat(join(place.path, 'shared'))).mode & 0o777).toBe(0o750);
  });

  test.runIf(asRoot)('as root, a home that other users cannot reach is refused', async () => {
    const config = inside('closed/home');
    await mkdir(join(place.path, 'closed'));
    await chmod(join(place.path, 'closed'), 0o700);
    await expect(ensureHome(config)).rejects.toThrow(/closed to them/);
  });
});
