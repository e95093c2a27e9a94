import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { dayMs } from '../../lib/clock.ts';
import { createLogger } from '../../lib/log.ts';
import { deletedThings } from '../../reconcilers/deleted-things.ts';
import { expiredBranches } from '../../reconcilers/expired-branches.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let aheadMs = 0;
let api: TestApi;
let driver: FakeDriver;
beforeAll(async () => {
  api = await makeApi({}, { now: () => new Date(Date.now() + aheadMs) });
});
beforeEach(() => {
  aheadMs = 0;
  driver = new FakeDriver();
});
afterAll(() => api.close());

const work = () => drain(api.core, driver);
const turn = () => deletedThings.turn({ core: api.core, driver, log });
const call = (method: 'GET' | 'POST' | 'DELETE' | 'PATCH', path: string, body?: object) =>
  api.call(method, `/api/v2${path}`, body === undefined ? {} : { body });

/** A project with everything up. */
async function make(name = 'shop') {
  const { project, branch, endpoints } = (await call('POST', '/projects', { project: { name } })).json();
  await work();
  const path = `/projects/${project.id}`;
  return { id: project.id as string, path, root: branch.id as string, endpoint: endpoints[0].id as string };
}

async function addBranch(path: string, branch: object = {}, endpoints: object[] = [{ type: 'read_write' }]) {
  const made = (await call('POST', `${path}/branches`, { branch, endpoints })).json();
  await work();
  return { id: made.branch.id as string, path: `${path}/branches/${made.branch.id}`, endpoint: made.endpoints[0]?.id };
}

const runs = (endpoint: string) => driver.computes.get(endpoint)?.process != null;
const recoverable = async (id: string) =>
  (await call('GET', `/projects?recoverable=true&search=${id}`)).json().projects[0];
const deletedBranches = async (path: string) =>
  (await call('GET', `${path}/branches?include_deleted=true`))
    .json()
    .branches.filter((branch: { recovery?: object }) => branch.recovery !== undefined);

describe('a deleted project', () => {
  test('is hidden, its computes stop, and it comes back as it was', async () => {
    const { id, path, root, endpoint } = await make();
    const before = (await call('GET', `${path}/endpoints/${endpoint}`)).json().endpoint;
    const { org_id: organization } = (await call('GET', path)).json().project;
    const key = (
      await call('POST', `/organizations/${organization}/api_keys`, { key_name: 'ci', project_id: id })
    ).json().key;
    const useKey = () => api.call('GET', `/api/v2${path}`, { token: key });
    expect((await useKey()).statusCode).toBe(200);

    expect((await call('DELETE', path)).statusCode).toBe(200);
    expect((await call('GET', path)).statusCode).toBe(404);
    expect((await call('DELETE', path)).statusCode).toBe(404);
    expect((await call('GET', `/projects?search=${id}`)).json().projects).toEqual([]);
    expect((await useKey()).statusCode).toBe(401);
    await work();
    expect(runs(endpoint)).toBe(false);
    expect([...driver.branches.keys()]).toEqual([root]);
    const { deleted_at: deletedAt, recoverable_until: until } = await recoverable(id);
    expect(Date.parse(until) - Date.parse(deletedAt)).toBe(7 * dayMs);

    const reply = await call('POST', `${path}/recover`);
    expect(reply.statusCode).toBe(200);
    expect(reply.json().project.id).toBe(id);
    expect(reply.json().branches.map((branch: { id: string }) => branch.id)).toEqual([root]);
    expect(await recoverable(id)).toBeUndefined();
    expect((await useKey()).statusCode).toBe(200);
    const after = (await call('GET', `${path}/endpoints/${endpoint}`)).json().endpoint;
    expect(after).toMatchObject({ host: before.host, current_state: 'idle' });
    expect(after.pending_state).toBeUndefined();
    await call('POST', `${path}/endpoints/${endpoint}/start`);
    await work();
    expect(runs(endpoint)).toBe(true);
  });

  test('comes back while its computes are still being stopped', async () => {
    const { path, endpoint } = await make();
    await call('DELETE', path);
    expect((await call('POST', `${path}/recover`)).statusCode).toBe(200);
    await call('POST', `${path}/endpoints/${endpoint}/start`);
    await work();
    expect(runs(endpoint)).toBe(true);
    expect((await call('GET', `${path}/endpoints/${endpoint}`)).json().endpoint.current_state).toBe('active');
  });

  test('that was deleted while a compute started and a branch was made is complete when it comes back', async () => {
    const { path, endpoint } = await make();
    await call('POST', `${path}/endpoints/${endpoint}/suspend`);
    await work();
    const made = (await call('POST', `${path}/branches`, { branch: {}, endpoints: [{ type: 'read_write' }] })).json();
    await call('POST', `${path}/endpoints/${endpoint}/start`);
    await call('DELETE', path);
    await work();
    expect([...driver.computes.values()].filter(({ process }) => process !== null)).toEqual([]);
    await call('POST', `${path}/recover`);
    expect((await call('GET', `${path}/branches/${made.branch.id}`)).json().branch.current_state).toBe('ready');
    const { endpoints } = (await call('GET', `${path}/endpoints`)).json();
    for (const shown of endpoints) {
      expect(shown.current_state).toBe('idle');
      expect(shown.pending_state).toBeUndefined();
    }
  });

  test('is gone after seven days, and nobody brings it back', async () => {
    const { id, path } = await make();
    await call('DELETE', path);
    await work();
    aheadMs = 7 * dayMs - 60_000;
    await turn();
    await work();
    expect(driver.branches.size).toBe(1);
    aheadMs = 7 * dayMs + 1_000;
    expect((await call('POST', `${path}/recover`)).statusCode).toBe(404);
    expect(await recoverable(id)).toBeUndefined();
    await turn();
    await work();
    expect([driver.branches.size, driver.computes.size]).toEqual([0, 0]);
    const { sql } = api.core.database;
    expect([...(await sql`select id from projects where id = ${id}`)]).toEqual([]);
  });

  test('is removed for good by a purge, which refuses what is not deleted', async () => {
    const { id, path } = await make();
    expect((await call('POST', `${path}/purge`)).json().message).toBe('the project is not deleted');
    expect((await call('POST', `${path}/recover`)).statusCode).toBe(422);
    await call('DELETE', path);
    for (const action of ['purge', 'recover']) {
      const reply = await api.call('POST', `/api/v2${path}/${action}`, { token: api.strangerToken });
      expect([action, reply.statusCode]).toEqual([action, 404]);
    }
    expect((await call('POST', `${path}/purge`)).statusCode).toBe(200);
    expect((await call('POST', `${path}/purge`)).statusCode).toBe(404);
    expect((await call('POST', `${path}/recover`)).statusCode).toBe(404);
    await work();
    expect([driver.branches.size, driver.computes.size]).toEqual([0, 0]);
    expect(
      (await call('GET', '/deleted')).json().deleted.map((row: { project_id: string }) => row.project_id),
    ).not.toContain(id);
  });

  test('does not count against the limit of the plan until it comes back', async () => {
    const free = await makeApi({ defaultPlan: 'free' });
    try {
      const { sql } = free.core.database;
      const create = () => free.call('POST', '/api/v2/projects', { body: { project: {} } });
      const first = (await create()).json().project.id;
      let reply = await create();
      while (reply.statusCode === 201) reply = await create();
      expect(reply.json().code).toBe('PROJECTS_LIMIT_EXCEEDED');
      await free.call('DELETE', `/api/v2/projects/${first}`);
      expect((await create()).statusCode).toBe(201);
      const refused = await free.call('POST', `/api/v2/projects/${first}/recover`);
      expect(refused.json().code).toBe('PROJECTS_LIMIT_EXCEEDED');
      expect((await sql`select 1 from projects where id = ${first} and recoverable_until is not null`).length).toBe(1);
    } finally {
      await free.close();
    }
  });
});

describe('a deleted branch', () => {
  test('has an operation of its deletion that ends and removes nothing, also without a compute', async () => {
    const { path, root } = await make();
    const branch = await addBranch(path, { name: 'bare' }, []);
    const { operations } = (await call('DELETE', branch.path)).json();
    expect(operations).toMatchObject([{ action: 'delete_timeline', branch_id: branch.id }]);
    await work();
    const { operation } = (await call('GET', `${path}/operations/${operations[0].id}`)).json();
    expect(operation).toMatchObject({ action: 'delete_timeline', status: 'finished' });
    expect([...driver.branches.keys()]).toEqual(expect.arrayContaining([root, branch.id]));
    expect((await call('POST', `${branch.path}/recover`)).statusCode).toBe(200);
  });

  test('is listed when asked for, and comes back with its compute', async () => {
    const { path, root } = await make();
    const branch = await addBranch(path, { name: 'dev' }, [{ type: 'read_write' }, { type: 'read_only' }]);
    const reply = await call('DELETE', branch.path);
    expect(reply.json().operations.map(({ action }: { action: string }) => action)).toEqual([
      'suspend_compute',
      'suspend_compute',
      'delete_timeline',
    ]);
    expect((await call('GET', branch.path)).statusCode).toBe(404);
    expect((await call('GET', `${path}/endpoints/${branch.endpoint}`)).statusCode).toBe(404);
    await work();
    expect(runs(branch.endpoint)).toBe(false);
    expect([...driver.branches.keys()]).toEqual([root, branch.id]);
    const [shown] = await deletedBranches(path);
    expect(shown).toMatchObject({ id: branch.id, recovery: { deletion_method: 'user' } });
    const { deleted_at: deletedAt, recoverable_until: until } = shown.recovery;
    expect(Date.parse(until) - Date.parse(deletedAt)).toBe(7 * dayMs);
    const listed = (await call('GET', `${path}/branches`)).json().branches;
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([root]);
    expect((await call('GET', `${path}/branches/count`)).json().count).toBe(1);

    const recovered = (await call('POST', `${branch.path}/recover`)).json();
    expect(recovered.branch).toMatchObject({ id: branch.id, name: 'dev', current_state: 'ready' });
    expect(recovered.branch).not.toHaveProperty('recovery');
    expect(recovered.branch).not.toHaveProperty('pending_state');
    expect(recovered.endpoints.map(({ id }: { id: string }) => id)).toContain(branch.endpoint);
    expect(recovered.endpoints).toHaveLength(2);
    await call('POST', `${path}/endpoints/${branch.endpoint}/start`);
    await work();
    expect(runs(branch.endpoint)).toBe(true);
  });

  test('does not bring back a compute that was deleted before it', async () => {
    const { path } = await make();
    const branch = await addBranch(path, {}, [{ type: 'read_write' }, { type: 'read_only' }]);
    await call('DELETE', `${path}/endpoints/${branch.endpoint}`);
    await call('DELETE', branch.path);
    await work();
    const { endpoints } = (await call('POST', `${branch.path}/recover`)).json();
    expect(endpoints.map(({ type }: { type: string }) => type)).toEqual(['read_only']);
  });

  test('gives its name away, and is refused while another one has it', async () => {
    const { path } = await make();
    const old = await addBranch(path, { name: 'dev' });
    await call('DELETE', old.path);
    const young = await addBranch(path, { name: 'dev' });
    const refused = await call('POST', `${old.path}/recover`);
    expect(refused.statusCode).toBe(409);
    expect(refused.json().message).toContain('branch_name:"dev"');
    await call('PATCH', young.path, { branch: { name: 'dev 2' } });
    expect((await call('POST', `${old.path}/recover`)).statusCode).toBe(200);
  });

  test('that had expired says so, comes back, and does not expire again', async () => {
    const { path } = await make();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const branch = await addBranch(path, { expires_at: expiresAt });
    aheadMs = 2 * 3_600_000;
    await expiredBranches.turn({ core: api.core, driver, log });
    await work();
    expect((await deletedBranches(path))[0].recovery.deletion_method).toBe('ttl');
    const recovered = (await call('POST', `${branch.path}/recover`)).json().branch;
    expect(recovered).not.toHaveProperty('expires_at');
    await expiredBranches.turn({ core: api.core, driver, log });
    expect((await call('GET', branch.path)).statusCode).toBe(200);
  });

  test('waits for its parent, which was deleted after it and is purged after it', async () => {
    const { path } = await make();
    const parent = await addBranch(path, { name: 'parent' });
    const child = await addBranch(path, { name: 'child', parent_id: parent.id });
    await call('DELETE', child.path);
    await call('DELETE', parent.path);
    await work();
    const refused = await call('POST', `${child.path}/recover`);
    expect(refused.statusCode).toBe(422);
    expect(refused.json().message).toContain(`recover it first; parent:"parent (${parent.id})"`);
    const early = await call('POST', `${parent.path}/purge`);
    expect(early.statusCode).toBe(422);
    expect(early.json().message).toContain(`purge them first; children:"child (${child.id})"`);
    expect((await call('POST', `${parent.path}/recover`)).statusCode).toBe(200);
    const inOneHour = new Date(Date.now() + 3_600_000).toISOString();
    expect((await call('PATCH', parent.path, { branch: { expires_at: inOneHour } })).statusCode).toBe(200);
    expect((await call('POST', `${child.path}/recover`)).json().message).toContain('clear its expires_at first');
    expect((await call('DELETE', `${parent.path}?hard_delete=true`)).statusCode).toBe(422);
    await call('DELETE', parent.path);
    aheadMs = 8 * dayMs;
    // The parent in the turn after its child is gone.
    for (const _ of [child, parent]) {
      await turn();
      await work();
    }
    expect(driver.branches.has(child.id)).toBe(false);
    expect(driver.branches.has(parent.id)).toBe(false);
  });

  test.each([
    ['deleted with hard_delete', (path: string) => call('DELETE', `${path}?hard_delete=true`)],
    [
      'deleted and purged',
      async (path: string) => {
        expect((await call('POST', `${path}/purge`)).json().message).toBe('the branch is not deleted');
        await call('DELETE', path);
        return call('POST', `${path}/purge`);
      },
    ],
  ])('is gone when it was %s', async (_way, remove) => {
    const { path, root } = await make();
    const branch = await addBranch(path);
    const reply = await remove(branch.path);
    expect(reply.statusCode).toBe(200);
    expect(reply.json().operations.at(-1).action).toBe('delete_timeline');
    expect((await call('POST', `${branch.path}/recover`)).statusCode).toBe(404);
    await work();
    expect([...driver.branches.keys()]).toEqual([root]);
    expect(driver.computes.has(branch.endpoint)).toBe(false);
  });

  test('that never got its data is removed at once', async () => {
    const { path, root } = await make();
    const made = (await call('POST', `${path}/branches`, {})).json();
    await call('DELETE', `${path}/branches/${made.branch.id}`);
    await work();
    expect(await deletedBranches(path)).toEqual([]);
    expect([...driver.branches.keys()]).toEqual([root]);
  });

  test('of a deleted project is purged in its own time', async () => {
    const { path, root } = await make();
    const branch = await addBranch(path);
    await call('DELETE', branch.path);
    aheadMs = 2 * dayMs;
    await call('DELETE', path);
    await work();
    aheadMs = 8 * dayMs;
    await turn();
    await work();
    expect([...driver.branches.keys()]).toEqual([root]);
    expect((await call('POST', `${path}/recover`)).statusCode).toBe(200);
    expect((await call('POST', `${branch.path}/recover`)).statusCode).toBe(404);
  });
});

test('deleted things are listed together, the last one first, with their size', async () => {
  const { id, path } = await make('listed');
  const branch = await addBranch(path, { name: 'dev' });
  await call('DELETE', branch.path);
  await work();
  const other = await make('gone');
  await call('DELETE', other.path);
  await work();
  const { sql } = api.core.database;
  await sql`update branches set logical_size = 1000 where project_id = ${id}`;
  await sql`update branches set logical_size = 2000 where project_id = ${other.id}`;
  const { deleted } = (await call('GET', '/deleted')).json();
  expect(deleted.slice(0, 2)).toMatchObject([
    { kind: 'project', project_id: other.id, name: 'gone', logical_size: 2000, deletion_method: 'user' },
    { kind: 'branch', project_id: id, project_name: 'listed', branch_id: branch.id, name: 'dev', logical_size: 1000 },
  ]);
  const stranger = await api.call('GET', '/api/v2/deleted', { token: api.strangerToken });
  expect(stranger.json().deleted).toEqual([]);
});
