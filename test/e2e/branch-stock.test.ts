/** `stockBranches` of `catnap/testing`: test files take branches that were made ahead of time, and nothing stays. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, expectTypeOf, test, vi } from 'vitest';
import type { stockBranches as declared } from '../../bin/testing.mjs';
import { readBranchStock } from '../../src/lib/config.ts';
import { type BranchStock, freshBranch, stockBranches } from '../../src/processes/testing.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const entry = fileURLToPath(new URL('../../bin/testing.mjs', import.meta.url));

let program: Program;
let stock: BranchStock | undefined;
let projectId: string;
let parent: { readonly id: string; readonly uri: string };

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'shop' } });
  projectId = body.project.id;
  parent = { id: body.branch.id, uri: body.connection_uris[0].connection_uri };
  await ask(parent.uri, 'create table seen as select 1 as id');
  const { CATNAP_HOME = '', CATNAP_HTTP_PORT = '' } = program.environment;
  vi.stubEnv('CATNAP_HOME', CATNAP_HOME);
  vi.stubEnv('CATNAP_HTTP_PORT', CATNAP_HTTP_PORT);
  vi.stubEnv('CATNAP_API_KEY', await program.apiKey());
});
afterAll(async () => {
  await stock?.close();
  vi.unstubAllEnvs();
  await program.destroy();
});

/** All but the parent. */
async function branches(): Promise<string[]> {
  const { body } = await program.api('GET', `/projects/${projectId}/branches`);
  return body.branches.filter(({ id }: { id: string }) => id !== parent.id).map(({ id }: { id: string }) => id);
}

const count = (uri: string) => ask(uri, 'select count(*) from seen');

test('says which lives of a branch are allowed', async () => {
  await expect(freshBranch({ project: 'shop', expiresInMinutes: Number.NaN })).rejects.toThrow(
    /expiresInMinutes: NaN is not valid; allowed: a number of minutes/,
  );
});

test('hands out what is ready, with the data that the parent had when it was made', async () => {
  stock = await stockBranches({ project: 'shop', count: 2, expiresInMinutes: 30 });
  expectTypeOf(stockBranches).toEqualTypeOf<typeof declared>();
  const ready = await branches();
  expect(ready).toHaveLength(2);
  await ask(parent.uri, 'insert into seen values (2)');
  const [first, second] = await Promise.all([freshBranch({ project: 'shop' }), freshBranch()]);
  expect([first.id, second.id].sort()).toEqual(ready.sort());
  await ask(first.uri, 'delete from seen');
  expect([await count(first.uri), await count(second.uri), await count(parent.uri)]).toEqual(['0', '1', '2']);
  // What takes their places is newer, and so is one that is waited for.
  const others = await Promise.all([freshBranch(), freshBranch(), freshBranch()]);
  expect(await Promise.all(others.map(({ uri }) => count(uri)))).toEqual(['2', '2', '2']);
  const all = [first, second, ...others];
  expect(new Set(all.map(({ id }) => id)).size).toBe(5);
  await Promise.all([...all, first].map((branch) => branch.remove()));
  await eventually(async () => {
    const left = await branches();
    expect(left).toHaveLength(2);
    for (const { id } of all) expect(left).not.toContain(id);
  });
});

test('leaves branches of another kind to be made when they are asked for', async () => {
  const ready = await branches();
  const empty = await freshBranch({ schemaOnly: true });
  const named = await freshBranch({ name: 'named' });
  expect(await count(empty.uri)).toBe('0');
  expect(named.name).toBe('named');
  for (const { id } of [empty, named]) expect(ready).not.toContain(id);
  await Promise.all([empty.remove(), named.remove()]);
  expect((await branches()).sort()).toEqual(ready.sort());
});

test('has the branches removed of test files that were killed, and of those that nobody has taken', async () => {
  const take = `import { freshBranch } from '${entry}';
    const { id } = await freshBranch();
    process.stdout.write(id);
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', take], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [taken] = await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await branches()).toContain(String(taken));
  await stock?.close();
  expect(await branches()).toEqual([]);
});

test('is not asked any more when it is closed, or was killed with its run', async () => {
  expect(readBranchStock()).toBeUndefined();
  vi.stubEnv('CATNAP_BRANCH_STOCK', '/nowhere/socket');
  const branch = await freshBranch();
  expect(await branches()).toEqual([branch.id]);
  await branch.remove();
  expect(await branches()).toEqual([]);
});

test('says why it cannot be made, and leaves nothing', async () => {
  await expect(stockBranches({ project: 'nothing' })).rejects.toThrow(/nothing/);
  await expect(stockBranches({ count: 0 })).rejects.toThrow(RangeError);
  expect(await branches()).toEqual([]);
});
