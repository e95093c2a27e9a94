import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLayout, type Layout, socketFile } from './layout.ts';
import { removeLeftovers, removeUnownedSockets } from './leftovers.ts';

let home: string;
let layout: Layout;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'cn-left-'));
  layout = createLayout(home);
  for (const folder of [layout.sockets, layout.work, layout.trash]) await mkdir(folder, { recursive: true });
});
afterEach(() => rm(home, { recursive: true }));

const longAgo = new Date(0);
/** More than the kernel gives to any process. */
const nobody = 2 ** 22 + 1;

async function makeSocketDirectory(name: string, pid: number, madeAt = longAgo): Promise<string> {
  const path = join(layout.sockets, name);
  await mkdir(path);
  await writeFile(`${socketFile(path)}.lock`, `${pid}\n`);
  await utimes(path, madeAt, madeAt);
  return path;
}

test('what a killed restore has left goes, and what is in use stays', async () => {
  const gone = [await makeSocketDirectory('xAbCdEf', nobody), join(layout.work, 'restore-quiet-sea-1')];
  await mkdir(join(layout.work, 'restore-quiet-sea-1', 'pgdata'), { recursive: true });
  await utimes(join(layout.work, 'restore-quiet-sea-1'), longAgo, longAgo);
  const kept = [
    await makeSocketDirectory('xFedCba', process.pid),
    await makeSocketDirectory('xUvWxYz', nobody, new Date()),
    await makeSocketDirectory('xabcdefg', nobody),
    await makeSocketDirectory('system', nobody),
    join(layout.work, 'restore-late-sun-1'),
  ];
  await mkdir(join(layout.work, 'restore-late-sun-1'));
  const stopped: string[] = [];
  await removeLeftovers(layout, async (data) => void stopped.push(data));
  expect(stopped).toEqual([join(layout.work, 'restore-quiet-sea-1', 'pgdata')]);
  expect(gone.filter((path) => existsSync(path))).toEqual([]);
  expect(kept.filter((path) => !existsSync(path))).toEqual([]);
});

test.each(['cluster-', '.probe-'])('%s… goes with the process that made it', async (prefix) => {
  const [left, being] = [`${prefix}${nobody}-AbCdEf`, `${prefix}${process.pid}-AbCdEf`];
  for (const folder of [layout.root, layout.work]) {
    for (const name of [left, being]) await mkdir(join(folder, name), { recursive: true });
  }
  await removeLeftovers(layout, async () => {});
  expect(await readdir(layout.work)).toEqual([being]);
  expect(existsSync(join(layout.root, left))).toBe(false);
  expect(existsSync(join(layout.root, being))).toBe(true);
});

test('directories for sockets go with their compute or branch, unless a server has them', async () => {
  const { socketDirectory: ofCompute, replicationDirectory: ofBranch } = layout;
  await mkdir(layout.endpoint('calm-lake-1', 'ep-quiet-sea-1'), { recursive: true });
  await mkdir(layout.branch('calm-lake-1', 'br-late-sun-1'), { recursive: true });
  const make = (path: string, pid = nobody) => makeSocketDirectory(basename(path), pid);
  const gone = [await make(ofCompute('ep-removed-1')), await make(ofBranch('br-removed-1'))];
  const kept = [
    await make(ofCompute('ep-quiet-sea-1')),
    await make(ofBranch('br-late-sun-1')),
    await make(ofBranch('br-served-1'), process.pid),
    await make('system'),
    await make('proxies'),
    await make('xAbCdEf'),
  ];
  await removeUnownedSockets(layout);
  expect(gone.filter((path) => existsSync(path))).toEqual([]);
  expect(kept.filter((path) => !existsSync(path))).toEqual([]);
});
