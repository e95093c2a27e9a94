/** Snapshots through the front door: real data, the same connection string after a restore, and kill -9 of Catnap. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, thinkTime } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let mainId: string;
let uri: string;
let endpoint: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'kept', branch: { name: 'main' } } });
  projectId = body.project.id;
  mainId = body.branch.id;
  endpoint = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, "create table t as select 'one' as value");
  await ask(uri, "create role by_sql login password 'of that moment'");
  await ask(uri, 'grant select on t to by_sql');
});
afterAll(() => program.destroy());

const at = (path: string) => `/projects/${projectId}${path}`;
const uriOf = (endpointId: string) => uri.replaceAll(endpoint, endpointId);
const valueOn = (endpointId: string) => ask(uriOf(endpointId), 'select value from t');

async function send(method: string, path: string, body?: object) {
  const reply = await program.api(method, at(path), body);
  expect([path, reply.body.message, reply.status < 300]).toEqual([path, undefined, true]);
  return reply.body;
}

async function snapshotOf(branchId: string): Promise<string> {
  const { snapshot } = await send('POST', `/branches/${branchId}/snapshot`);
  await program.settle(projectId);
  return snapshot.id;
}

async function branchNamed(name: string) {
  const { branches } = await send('GET', '/branches');
  return branches.find((branch: { name: string }) => branch.name === name);
}

/** A client of the pooled host that reads all the time. */
function readThroughPool() {
  const found = { seen: [] as string[], complaints: [] as string[], stop };
  let isOver = false;
  const reading = (async () => {
    const client = new pg.Client({ connectionString: uriOf(`${endpoint}-pooler`) });
    const complain = (error: Error) => void found.complaints.push(String(error));
    client.on('error', complain);
    await client.connect();
    while (!isOver) {
      const reply = await client.query<{ value: string }>('select value from t').catch(complain);
      const value = reply?.rows[0]?.value;
      if (value !== undefined && value !== found.seen.at(-1)) found.seen.push(value);
      await thinkTime(5);
    }
    await client.end();
  })();
  return found;

  async function stop(): Promise<void> {
    isOver = true;
    await reading;
  }
}

describe('a snapshot', () => {
  let first: string;
  let preview: { branch: { id: string }; endpoints: { id: string }[] };

  it('of an awake branch holds its data and roles, and its true size', async () => {
    first = await snapshotOf(mainId);
    const [snapshot] = (await send('GET', '/snapshots')).snapshots;
    expect(snapshot).toMatchObject({ id: first, status: 'ready', manual: true, source_branch_id: mainId });
    expect(snapshot.full_size).toBeGreaterThan(10_000_000);
    expect(snapshot.diff_size).toBeLessThanOrEqual(snapshot.full_size);
    await ask(uri, "update t set value = 'two'");
    await ask(uri, 'revoke all on t from by_sql');
    await ask(uri, 'drop role by_sql');
  });

  it('is restored to a new branch, which can be looked at while the other one serves', async () => {
    preview = await send('POST', `/snapshots/${first}/restore`, { name: 'preview' });
    await program.settle(projectId);
    const [{ id }] = preview.endpoints as [{ id: string }];
    const bySql = new URL(uriOf(id));
    bySql.username = 'by_sql';
    bySql.password = 'of that moment';
    expect(await ask(bySql.href, 'select value from t')).toBe('one');
    expect([await valueOn(id), await valueOn(endpoint)]).toEqual(['one', 'two']);
  });

  it('takes the place of the branch under the same connection string; pooled clients wait', async () => {
    const reader = readThroughPool();
    await eventually(() => expect(reader.seen).toEqual(['two']));
    await send('POST', `/branches/${preview.branch.id}/finalize_restore`, { name: 'before' });
    await program.settle(projectId);
    expect(await ask(uri, 'select value from t')).toBe('one');
    await eventually(() => expect(reader.seen).toEqual(['two', 'one']));
    await reader.stop();
    expect(reader.complaints).toEqual([]);
    expect(await branchNamed('main')).toMatchObject({ id: preview.branch.id, default: true });
    // The compute of the preview serves what was replaced.
    expect(await valueOn(preview.endpoints[0]?.id ?? '')).toBe('two');
  });

  it('of a sleeping branch is taken without waking it, and restored in place at once', async () => {
    const main = await branchNamed('main');
    await ask(uri, "update t set value = 'three'");
    await send('POST', `/endpoints/${endpoint}/suspend`);
    await program.settle(projectId);
    const id = await snapshotOf(main.id);
    expect((await send('GET', `/endpoints/${endpoint}`)).endpoint.current_state).toBe('idle');
    await ask(uri, "update t set value = 'four'");
    await send('POST', `/snapshots/${id}/restore`, { finalize_restore: true });
    // A client that comes meanwhile waits, or still gets the old data.
    await eventually(async () => expect(await ask(uri, 'select value from t')).toBe('three'));
    await program.settle(projectId);
    expect((await send('GET', `/endpoints/${endpoint}`)).endpoint.branch_id).not.toBe(main.id);
  });

  it('of a moment of the past holds what was there then', async () => {
    const main = await branchNamed('main');
    const history = async () => (await send('GET', `/branches/${main.id}/history`)).history;
    await eventually(async () => expect((await history()).from).toBeDefined());
    await ask(uri, 'create table later (a int)');
    const now = `to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    const at = await ask(uri, `select ${now}`);
    await ask(uri, 'drop table later, t');
    const { snapshot } = await send('POST', `/branches/${main.id}/snapshot?timestamp=${at}`);
    await program.settle(projectId);
    const { endpoints } = await send('POST', `/snapshots/${snapshot.id}/restore`);
    await program.settle(projectId);
    expect(await valueOn(endpoints[0].id)).toBe('three');
    expect(await ask(uriOf(endpoints[0].id), 'select count(*) from later')).toBe('0');
    await ask(uri, "create table t as select 'three' as value");
  });

  it('outlives its branch and a kill of Catnap, and leaves nothing when it is deleted', async () => {
    const made = await send('POST', '/branches', { branch: { name: 'dev' }, endpoints: [{ type: 'read_write' }] });
    await program.settle(projectId);
    await ask(uriOf(made.endpoints[0].id), "update t set value = 'dev'");
    const { snapshot } = await send('POST', `/branches/${made.branch.id}/snapshot`);
    await program.killHard();
    await program.start();
    await program.settle(projectId);
    await send('DELETE', `/branches/${made.branch.id}?hard_delete=true`);
    await program.settle(projectId);
    const { branch, endpoints } = await send('POST', `/snapshots/${snapshot.id}/restore`, { name: 'dev again' });
    await program.settle(projectId);
    expect(await valueOn(endpoints[0].id)).toBe('dev');
    expect(branch).toMatchObject({ restored_from: snapshot.id, name: 'dev again' });

    const { snapshots } = await send('GET', '/snapshots');
    expect(snapshots).toHaveLength(4);
    for (const { id } of snapshots) await send('DELETE', `/snapshots/${id}`);
    await program.settle(projectId);
    const { branches } = await send('GET', '/branches');
    const ids = branches.map(({ id }: { id: string }) => id).sort();
    const folder = join(program.home.path, 'projects', projectId, 'branches');
    await eventually(async () => expect((await readdir(folder)).sort()).toEqual(ids));
    expect(await valueOn(endpoints[0].id)).toBe('dev');
  });
});
