import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { createLogger } from '../../lib/log.ts';
import { expiredBranches } from '../../reconcilers/expired-branches.ts';

let api: TestApi;
let base: string;
let root: string;
beforeAll(async () => {
  api = await makeApi();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  base = `/api/v2/projects/${made.project.id}`;
  root = made.branch.id;
});
afterAll(() => api.close());

const create = async (body?: object) => api.call('POST', `${base}/branches`, body === undefined ? {} : { body });
const actions = (operations: { action: string; status: string }[]) => operations.map((o) => [o.action, o.status]);

describe('create', () => {
  test('without a body: a child of the default branch, no compute', async () => {
    const reply = await create();
    expect(reply.statusCode).toBe(201);
    const body = reply.json();
    expect(body.branch).toMatchObject({
      name: body.branch.id,
      parent_id: root,
      default: false,
      init_source: 'parent-data',
    });
    expect(body.endpoints).toEqual([]);
    expect(body.connection_uris).toBeUndefined();
    expect(body.operations[0].action).toBe('create_branch');
    expect(body.databases.map((database: { name: string }) => database.name)).toEqual(['neondb']);
    expect(body.roles[0].password).toBeUndefined();
  });

  test('the way neonctl asks: with a compute, labels, and an empty parent', async () => {
    const reply = await create({
      branch: { name: 'dev', parent_id: '' },
      endpoints: [{ type: 'read_write', suspend_timeout_seconds: 0 }],
      annotation_value: {},
    });
    const body = reply.json();
    expect(actions(body.operations)).toEqual([
      ['create_branch', expect.any(String)],
      ['start_compute', 'scheduling'],
    ]);
    expect(body.connection_uris[0].connection_uri).toContain(body.endpoints[0].id);
    const again = await create({ branch: { name: 'dev' } });
    expect(again.statusCode).toBe(409);
    expect(again.json()).toMatchObject({
      code: 'BRANCH_ALREADY_EXISTS',
      message: 'branch already exists; branch_name:"dev"',
    });
  });

  test('a parent that does not exist is a 404', async () => {
    const reply = await create({ branch: { parent_id: 'br-none' } });
    expect([reply.statusCode, reply.json().message]).toEqual([404, 'branch not found']);
  });
});

describe('what cannot be made', () => {
  test.each([
    [{ parent_lsn: '0/1DE2850' }, 'has no history yet'],
    [{ parent_timestamp: '2026-01-01T00:00:00Z' }, 'is outside the history'],
    [{ archived: true }, 'archived branches do not exist here'],
    [{ protected: true, expires_at: new Date(Date.now() + 60_000).toISOString() }, 'cannot expire'],
  ])('%j is a 422 that says why', async (branch, message) => {
    const reply = await create({ branch });
    expect([reply.statusCode, reply.json().message]).toEqual([422, expect.stringContaining(message)]);
  });
});

describe('expiry', () => {
  test('is shown, forbids children, and deletes the branch when it is due', async () => {
    const soon = new Date(Date.now() + 60_000);
    const { branch } = (await create({ branch: { name: 'short', expires_at: soon.toISOString() } })).json();
    expect(branch.expires_at).toBe(`${soon.toISOString().slice(0, 19)}Z`);
    expect((await create({ branch: { parent_id: branch.id } })).statusCode).toBe(422);
    expect((await api.call('POST', `${base}/branches/${branch.id}/set_as_default`)).statusCode).toBe(422);
    const log = createLogger({ level: 'silent', process: 'test' });
    const at = (now: Date) => ({ core: { ...api.core, clock: { now: () => now } }, driver: new FakeDriver(), log });
    await expiredBranches.turn(at(new Date()));
    expect((await api.call('GET', `${base}/branches/${branch.id}`)).statusCode).toBe(200);
    await expiredBranches.turn(at(new Date(soon.getTime() + 1)));
    expect((await api.call('GET', `${base}/branches/${branch.id}`)).statusCode).toBe(404);
  });
});

describe('list', () => {
  test('pages with next until there is none, in every order', async () => {
    await create({ branch: { name: 'a%b' }, annotation_value: { who: 'me' } });
    await create({ branch: { name: 'zoo' } });
    const all = (await api.call('GET', `${base}/branches`)).json();
    expect(all.pagination).toEqual({ sort_by: 'updated_at', sort_order: 'DESC' });
    expect(Object.values(all.annotations)).toMatchObject([
      { object: { type: 'console/branch' }, value: { who: 'me' } },
    ]);
    const orders = ['', '&sort_by=name&sort_order=asc', '&sort_by=created_at', '&sort_by=created_at&sort_order=asc'];
    for (const order of orders) {
      const expected = (await api.call('GET', `${base}/branches?limit=100${order}`)).json();
      expect(expected.pagination.next).toBeUndefined();
      const seen: unknown[] = [];
      let cursor = '';
      for (;;) {
        const page = (await api.call('GET', `${base}/branches?limit=2${order}${cursor}`)).json();
        seen.push(...page.branches);
        if (page.pagination.next === undefined) break;
        cursor = `&cursor=${page.pagination.next}`;
      }
      expect(seen).toEqual(expected.branches);
    }
  });

  test('search takes no wildcards, count agrees', async () => {
    expect((await api.call('GET', `${base}/branches?search=a%25b`)).json().branches).toHaveLength(1);
    expect((await api.call('GET', `${base}/branches?search=%25`)).json().branches).toHaveLength(1);
    const all = (await api.call('GET', `${base}/branches`)).json().branches;
    expect((await api.call('GET', `${base}/branches/count`)).json()).toEqual({ count: all.length });
    expect((await api.call('GET', `${base}/branches/count?search=zoo`)).json()).toEqual({ count: 1 });
  });
});

describe('change', () => {
  test('rename, protect, expire and never expire', async () => {
    const { branch } = (await create({ branch: { name: 'old name' } })).json();
    const path = `${base}/branches/${branch.id}`;
    const patch = (fields: object) => api.call('PATCH', path, { body: { branch: fields } });
    expect((await patch({ name: 'new name' })).json()).toMatchObject({ branch: { name: 'new name' }, operations: [] });
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    expect((await patch({ expires_at: soon })).json().branch.expires_at).toBe(`${soon.slice(0, 19)}Z`);
    expect((await patch({ expires_at: null })).json().branch.expires_at).toBeUndefined();
    expect((await patch({ expires_at: '2001-01-01T00:00:00Z' })).statusCode).toBe(400);
    expect((await patch({ protected: true })).json().branch.protected).toBe(true);
    expect((await api.call('DELETE', path)).statusCode).toBe(422);
    expect((await patch({ name: 'dev' })).statusCode).toBe(409);
  });

  test.each(['set_as_default', 'set_as_primary'])('%s moves the flag', async (verb) => {
    const { branch } = (await create()).json();
    const reply = await api.call('POST', `${base}/branches/${branch.id}/${verb}`);
    expect(reply.json()).toMatchObject({ branch: { id: branch.id, default: true, primary: true }, operations: [] });
    expect((await api.call('GET', `${base}/branches/${root}`)).json().branch.default).toBe(false);
    await api.call('POST', `${base}/branches/${root}/set_as_default`);
  });
});

describe('delete', () => {
  test('a leaf goes with its compute; then it is a 404', async () => {
    const { branch } = (await create({ endpoints: [{ type: 'read_write' }] })).json();
    const path = `${base}/branches/${branch.id}`;
    const reply = await api.call('DELETE', `${path}?hard_delete=true`);
    expect(reply.statusCode).toBe(200);
    expect(reply.json().branch).toMatchObject({ id: branch.id, pending_state: 'storage_deleted' });
    expect(reply.json().operations.at(-1).action).toBe('delete_timeline');
    for (const again of [await api.call('DELETE', path), await api.call('GET', path)]) {
      expect([again.statusCode, again.json().message]).toEqual([404, 'branch not found']);
    }
    expect((await api.call('GET', `${path}/endpoints`)).statusCode).toBe(404);
  });

  test('not the default, not a parent: its children are named', async () => {
    expect((await api.call('DELETE', `${base}/branches/${root}`)).statusCode).toBe(422);
    const { branch: parent } = (await create({ branch: { name: 'parent' } })).json();
    const { branch: child } = (await create({ branch: { name: 'child', parent_id: parent.id } })).json();
    const refused = await api.call('DELETE', `${base}/branches/${parent.id}`);
    expect([refused.statusCode, refused.json().message]).toEqual([
      422,
      `cannot delete a branch that has children; children:"child (${child.id})"`,
    ]);
    expect((await api.call('DELETE', `${base}/branches/${child.id}`)).statusCode).toBe(200);
    expect((await api.call('DELETE', `${base}/branches/${parent.id}`)).statusCode).toBe(200);
  });
});

test('get has the labels, also when there are none', async () => {
  const reply = (await api.call('GET', `${base}/branches/${root}`)).json();
  expect(reply.annotation).toMatchObject({ object: { type: 'console/branch', id: root }, value: {} });
});
