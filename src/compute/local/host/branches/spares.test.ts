import { cp, lstat, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { eventually } from '../../../../../test/helpers/eventually.ts';
import { makeTempHome, type TempHome } from '../../../../../test/helpers/temp-home.ts';
import { ensureHome } from '../../../../machine/home.ts';
import { ensureBuild } from '../postgres/builds.ts';
import { readControlFile } from '../postgres/control-file.ts';
import { ensureTemplate, type Template } from '../postgres/template.ts';
import { Spares } from './spares.ts';

let home: TempHome;
let template: Template;
beforeAll(async () => {
  home = await makeTempHome({ share: inject('sharedBuildsHome') });
  const layout = await ensureHome(home.config);
  const build = await ensureBuild(17, home.config, layout);
  const made = await ensureTemplate(build, layout, home.config.uids !== null);
  // Its own folder of spares, apart from those that other tests use up.
  template = { ...made, dataDirectory: join(await privateCopy(made.dataDirectory), 'pgdata') };
});
afterAll(() => home.remove());

/** A copy of the template that no other test uses. */
async function privateCopy(source: string): Promise<string> {
  const directory = await mkdtemp(join(home.path, 'work', 'template-'));
  await cp(source, join(directory, 'pgdata'), { recursive: true });
  return directory;
}

/** Complete ones; a leading dot marks one that is being made. */
async function spares(): Promise<string[]> {
  const names = await readdir(join(template.dataDirectory, '..', 'spares')).catch(() => [] as string[]);
  return names.filter((name) => !name.startsWith('.'));
}
const owner = () => (process.getuid?.() === 0 ? 700_777 : null);

test('there is nothing to take before one is made, and each goes to one taker', async () => {
  const pool = new Spares({ usual: 1, most: 1 });
  const targets = ['a', 'b', 'c'].map((name) => join(home.path, 'work', name));
  expect(await pool.take(template, targets[0] ?? '', owner())).toBeNull();
  await eventually(async () => expect(await spares()).toHaveLength(1));
  const taken = await Promise.all(targets.map((target) => pool.take(template, target, owner())));
  const receipts = taken.filter((receipt) => receipt !== null);
  expect(receipts).toHaveLength(1);
  expect(receipts[0]?.bytes).toBeGreaterThan(1_000_000);
  const target = targets[taken.findIndex((receipt) => receipt !== null)] ?? '';
  expect((await readControlFile(target)).shutDown).toBe(true);
  if (owner() !== null) expect((await stat(join(target, 'global', 'pg_control'))).uid).toBe(owner());
  await eventually(async () => expect(await spares()).toHaveLength(1));
});

test('a pool of none makes none', async () => {
  const pool = new Spares({ usual: 0, most: 0 });
  await rm(join(template.dataDirectory, '..', 'spares'), { recursive: true, force: true });
  await pool.refill(template);
  expect(await pool.take(template, join(home.path, 'work', 'd'), owner())).toBeNull();
  expect(await spares()).toEqual([]);
});

test('after several projects as many copies are kept, and later the usual number again', async () => {
  const numbers = { usual: 1, most: 3, room: 0.9 };
  const pool = new Spares(numbers);
  await pool.refill(template);
  expect(await spares()).toHaveLength(1);
  for (const name of ['e', 'f', 'g', 'h']) await pool.take(template, join(home.path, 'work', name), owner());
  await eventually(async () => expect(await spares()).toHaveLength(3));
  const forgetful = new Spares({ ...numbers, memoryMs: 100 });
  await forgetful.take(template, join(home.path, 'work', 'i'), owner());
  await eventually(async () => expect(await spares()).toHaveLength(1));
});

test.runIf(process.getuid?.() === 0)('a copy belongs to the next project before it is asked for', async () => {
  const pool = new Spares({ usual: 1, most: 1 });
  await rm(join(template.dataDirectory, '..', 'spares'), { recursive: true, force: true });
  await pool.refill(template);
  await pool.take(template, join(home.path, 'work', 'j'), 700_800);
  await eventually(async () => expect(await spares()).toEqual([expect.stringMatching(/^[0-9a-f]{16}-700801$/)]));
  for (const [name, uid] of [
    ['k', 700_801],
    ['l', 700_900],
  ] as const) {
    const target = join(home.path, 'work', name);
    expect(await pool.take(template, target, uid)).not.toBeNull();
    const entries = await readdir(target, { withFileTypes: true, recursive: true });
    const owners = await Promise.all(entries.map((entry) => lstat(join(entry.parentPath, entry.name))));
    expect(new Set(owners.map((entry) => `${entry.uid}:${entry.gid}`))).toEqual(new Set([`${uid}:${uid}`]));
    expect(await stat(target)).toMatchObject({ uid, gid: uid, mode: 0o40700 });
    await eventually(async () => expect(await spares()).toHaveLength(1));
  }
});
