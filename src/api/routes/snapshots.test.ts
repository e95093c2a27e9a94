import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { NoSuchMomentError } from '../../compute/interface/driver.ts';
import { createLogger } from '../../lib/log.ts';
import { expiredSnapshots } from '../../reconcilers/expired-snapshots.ts';
import { makeHistory } from '../../reconcilers/history.ts';
import { snapshotSchedules } from '../../reconcilers/snapshot-schedules.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const driver = new FakeDriver();
let api: TestApi;
let base: string;
let root: string;
let endpoint: string;
const start = new Date('2026-03-04T05:06:07Z');
/** Null is the real time. */
let now: Date | null = start;

beforeAll(async () => {
  api = await makeApi({}, { now: () => now ?? new Date() });
});
afterAll(() => api.close());

async function newProject(settings: object = {}): Promise<void> {
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: settings } })).json();
  base = `/api/v2/projects/${made.project.id}`;
  root = made.branch.id;
  endpoint = made.endpoints[0].id;
  await drain(api.core, driver);
}

const post = (path: string, body?: object) => api.call('POST', `${base}${path}`, body && { body });
const read = async (path: string) => (await api.call('GET', `${base}${path}`)).json();
const take = (query = '', branchId = root) => post(`/branches/${branchId}/snapshot${query}`);
const list = async () => (await read('/snapshots')).snapshots;
const branchNamed = async (name: string) =>
  (await read('/branches')).branches.find((branch: { name: string }) => branch.name === name);
const outcome = (reply: { statusCode: number; json(): { message: string } }) => [
  reply.statusCode,
  reply.json().message,
];

async function ready(query = '', branchId = root): Promise<string> {
  const { snapshot } = (await take(query, branchId)).json();
  await drain(api.core, driver);
  return snapshot.id;
}

describe('a snapshot', () => {
  beforeAll(() => newProject({ name: 'first', branch: { name: 'main' } }));

  test('is taken of an awake branch, which keeps serving, and listed with its sizes', async () => {
    const reply = await take('?name=before&slug=before-1&expires_at=2026-03-05T00:00:00Z');
    expect(reply.statusCode).toBe(200);
    const { snapshot, operations } = reply.json();
    expect(snapshot).toMatchObject({ name: 'before', slug: 'before-1', status: 'creating', manual: true });
    expect(snapshot.full_size).toBeUndefined();
    expect(operations).toMatchObject([{ action: 'timeline_archive', status: 'running', branch_id: root }]);
    const pid = driver.computes.get(endpoint)?.process?.pid;
    await drain(api.core, driver);
    expect(driver.computes.get(endpoint)?.process?.pid).toBe(pid);
    expect(await list()).toEqual([
      {
        id: snapshot.id,
        name: 'before',
        slug: 'before-1',
        status: 'ready',
        lsn: expect.stringMatching(/^0\//),
        timestamp: '2026-03-04T05:06:07Z',
        source_branch_id: root,
        created_at: '2026-03-04T05:06:07Z',
        expires_at: '2026-03-05T00:00:00Z',
        manual: true,
        full_size: 0,
        diff_size: 0,
      },
    ]);
    expect([...driver.branches.keys()]).toContain(snapshot.id);
    expect((await take('?slug=before-1')).statusCode).toBe(409);
  });

  test('has a name and a slug when none were given', async () => {
    const { snapshot } = (await take()).json();
    expect(snapshot).toMatchObject({ name: 'main 2026-03-04T05:06:07Z', slug: snapshot.id });
  });

  test.each([
    ['?expires_at=2026-03-04T05:06:07Z', 400, 'query.expires_at must be in the future'],
    ['?expires_at=tomorrow', 400, 'query.expires_at must be a time'],
    ['?slug=Before', 400, 'query.slug'],
    [`?name=${'x'.repeat(257)}`, 400, 'query.name'],
    ['?lsn=0/1&timestamp=2026-03-04T05:00:00Z', 400, 'query.lsn and query.timestamp exclude each other'],
    ['?lsn=here', 400, 'query.lsn must be a position'],
    ['?timestamp=2026-03-04T06:00:00Z', 422, 'query.timestamp must not be in the future'],
    ['?timestamp=2026-03-04T05:00:00Z', 422, 'query.timestamp cannot be given'],
  ])('%s is refused with %i', async (query, status, message) => {
    expect(outcome(await take(query))).toEqual([status, expect.stringContaining(message)]);
  });

  test('is renamed, and its expiry changed or taken away', async () => {
    const id = await ready();
    const path = `${base}/snapshots/${id}`;
    const patch = (snapshot: object) => api.call('PATCH', path, { body: { snapshot } });
    const renamed = (await patch({ name: 'new', expires_at: '2027-01-01T00:00:00Z' })).json();
    expect(renamed.snapshot).toMatchObject({ name: 'new', expires_at: '2027-01-01T00:00:00Z' });
    expect((await patch({ expires_at: null })).json().snapshot.expires_at).toBeUndefined();
    expect((await patch({})).json().snapshot.name).toBe('new');
    const past = await patch({ expires_at: '2026-01-01T00:00:00Z' });
    expect(outcome(past)).toEqual([400, expect.stringContaining('body.snapshot.expires_at must be in the future')]);
    expect((await patch({ name: ' ' })).statusCode).toBe(400);
  });

  test('is deleted with its data', async () => {
    const id = await ready();
    const reply = await api.call('DELETE', `${base}/snapshots/${id}`);
    expect(reply.statusCode).toBe(202);
    expect(reply.json().operations).toMatchObject([{ action: 'delete_timeline' }]);
    expect((await list()).map((snapshot: { id: string }) => snapshot.id)).not.toContain(id);
    expect((await api.call('DELETE', `${base}/snapshots/${id}`)).statusCode).toBe(404);
    await drain(api.core, driver);
    expect(driver.branches.has(id)).toBe(false);
  });

  test('that cannot be taken leaves the list, and its operation says why', async () => {
    const { snapshot, operations } = (await take()).json();
    await api.core.database.sql`update operations set deadline_at = '2026-01-01' where id = ${operations[0].id}`;
    driver.failNext('createBranch', new Error('the machine said no'), 1);
    await drain(api.core, driver);
    const { operation } = await read(`/operations/${operations[0].id}`);
    expect(operation).toMatchObject({ status: 'error', error: expect.stringContaining('the machine said no') });
    expect(JSON.stringify(await list())).not.toContain(snapshot.id);
    expect(driver.branches.has(snapshot.id)).toBe(false);
  });

  test('is bounded in number by the plan', async () => {
    const free = await makeApi({ defaultPlan: 'free' });
    const made = (await free.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const path = `/api/v2/projects/${made.project.id}/branches/${made.branch.id}/snapshot`;
    const codes = [];
    for (let count = 0; count < 11; count++) codes.push((await free.call('POST', path)).json().code ?? 'taken');
    await free.close();
    expect(codes).toEqual([...Array(10).fill('taken'), 'SNAPSHOTS_LIMIT_EXCEEDED']);
  });
});

describe('a moment of the past', () => {
  beforeAll(async () => {
    now = null;
    await newProject();
  });
  afterAll(() => {
    now = start;
  });

  async function until(): Promise<{ at: string; lsn: string }> {
    await makeHistory().turn({ core: api.core, driver, log });
    const [row] = await api.core.database.sql`select history from branches where id = ${root}`;
    return row?.history.until;
  }

  async function rolesOf(snapshotId: string) {
    const { branch } = (await post(`/snapshots/${snapshotId}/restore`)).json();
    await drain(api.core, driver);
    const { roles } = await read(`/branches/${branch.id}/roles`);
    const { password } = await read(`/branches/${branch.id}/roles/neondb_owner/reveal_password`);
    return { names: roles.map(({ name }: { name: string }) => name), password };
  }

  test('is taken from the history, by time or by LSN, with the roles and passwords of then', async () => {
    const { at, lsn } = await until();
    const { password } = await read(`/branches/${root}/roles/neondb_owner/reveal_password`);
    await post(`/branches/${root}/roles`, { role: { name: 'later' } });
    await drain(api.core, driver);
    await until();
    const [byTime, byLsn, head] = [await ready(`?timestamp=${at}`), await ready(`?lsn=${lsn}`), await ready()];
    const taken = new Map((await list()).map((snapshot: { id: string }) => [snapshot.id, snapshot]));
    expect(taken.get(byTime)).toMatchObject({ timestamp: `${at.slice(0, 19)}Z`, status: 'ready' });
    expect(taken.get(byLsn)).toMatchObject({ lsn, status: 'ready' });
    expect(await rolesOf(byTime)).toEqual({ names: ['neondb_owner'], password });
    expect(await rolesOf(byLsn)).toEqual({ names: ['neondb_owner'], password });
    expect(await rolesOf(head)).toEqual({ names: ['neondb_owner', 'later'], password });
  });

  test('that the history has lost ends the operation at once', async () => {
    const { at } = await until();
    driver.failNext('createBranch', new NoSuchMomentError('that moment is lost'), 1);
    const { operations } = (await take(`?timestamp=${at}`)).json();
    await drain(api.core, driver);
    const { operation } = await read(`/operations/${operations[0].id}`);
    expect(operation).toMatchObject({ status: 'error', error: 'that moment is lost', failures_count: 0 });
  });
});

describe('a restore', () => {
  beforeAll(() => newProject({ branch: { name: 'main' } }));

  test('makes a root branch with the roles of that moment and a compute that sleeps', async () => {
    const password = (await read(`/branches/${root}/roles/neondb_owner/reveal_password`)).password;
    const id = await ready('?name=kept');
    await api.call('POST', `${base}/branches/${root}/roles`, { body: { role: { name: 'later' } } });
    await drain(api.core, driver);
    const reply = await post(`/snapshots/${id}/restore`, { name: 'preview' });
    expect(reply.statusCode).toBe(200);
    const { branch, endpoints, operations } = reply.json();
    expect(branch).toMatchObject({ name: 'preview', restored_from: id, restored_as: root, restore_status: 'restored' });
    expect(branch.parent_id).toBeUndefined();
    expect(endpoints).toMatchObject([{ branch_id: branch.id, current_state: 'idle', type: 'read_write' }]);
    expect(operations).toMatchObject([{ action: 'create_branch', branch_id: branch.id }]);
    expect((await api.call('DELETE', `${base}/branches/${branch.id}`)).statusCode).toBe(423);
    await drain(api.core, driver);
    expect((await read(`/branches/${branch.id}`)).branch.current_state).toBe('ready');
    const names = (await read(`/branches/${branch.id}/roles`)).roles.map((role: { name: string }) => role.name);
    expect(names).toEqual(['neondb_owner']);
    const restored = await read(`/branches/${branch.id}/roles/neondb_owner/reveal_password`);
    expect(restored.password).toBe(password);
    expect((await api.call('DELETE', `${base}/branches/${branch.id}`)).statusCode).toBe(200);
    await drain(api.core, driver);
  });

  test('in two steps takes the place of the branch: name, default, computes, schedule', async () => {
    const schedule = [{ frequency: 'daily', hour: 3, retention_seconds: 86_400 }];
    await api.call('PUT', `${base}/branches/${root}/backup_schedule`, { body: { schedule } });
    const id = await ready();
    const restored = (await post(`/snapshots/${id}/restore`)).json();
    expect(restored.branch.name).toBe('main_restored_20260304T050607Z');
    await drain(api.core, driver);
    const { operations } = (await post(`/branches/${restored.branch.id}/finalize_restore`, { name: 'old' })).json();
    expect(operations).toMatchObject([
      { action: 'apply_config', branch_id: restored.branch.id },
      { action: 'start_compute', branch_id: restored.branch.id, endpoint_id: endpoint },
    ]);
    expect((await post(`/branches/${restored.branch.id}/finalize_restore`)).statusCode).toBe(423);
    await drain(api.core, driver);
    const branch = await branchNamed('main');
    expect(branch).toMatchObject({ id: restored.branch.id, default: true, restore_status: 'finalized' });
    expect(await branchNamed('old')).toMatchObject({ id: root, default: false, current_state: 'ready' });
    const { endpoints } = await read('/endpoints');
    const places = endpoints.map((one: { id: string; branch_id: string }) => [one.id, one.branch_id]);
    expect(Object.fromEntries(places)).toEqual({
      [endpoint]: branch.id,
      [restored.endpoints[0].id]: root,
    });
    expect(driver.computes.get(endpoint)).toMatchObject({ ref: { branchId: branch.id }, process: expect.anything() });
    expect(await read(`/branches/${branch.id}/backup_schedule`)).toMatchObject({ schedule });
    expect(await read(`/branches/${root}/backup_schedule`)).toEqual({ schedule: [] });
    const again = await post(`/branches/${branch.id}/finalize_restore`);
    expect(outcome(again)).toEqual([422, 'the restore of this branch is already finalized']);
    expect((await api.call('DELETE', `${base}/branches/${root}`)).statusCode).toBe(200);
    await drain(api.core, driver);
    const last = await api.call('DELETE', `${base}/branches/${branch.id}`);
    expect(outcome(last)).toEqual([422, 'cannot delete the default branch']);
    root = branch.id;
  });

  test('at once does the same, also of a snapshot that is still being taken', async () => {
    const { snapshot } = (await take()).json();
    const { branch, operations } = (await post(`/snapshots/${snapshot.id}/restore`, { finalize_restore: true })).json();
    expect(operations.map((one: { action: string }) => one.action)).toEqual([
      'create_branch',
      'apply_config',
      'start_compute',
    ]);
    await drain(api.core, driver);
    expect(await branchNamed('main')).toMatchObject({ id: branch.id, default: true });
    expect((await read(`/endpoints/${endpoint}`)).endpoint).toMatchObject({
      branch_id: branch.id,
      current_state: 'active',
    });
    expect(await branchNamed('main_old_20260304T050607Z')).toMatchObject({ id: root });
    root = branch.id;
  });

  test('that fails leaves the branch as it was, and awake', async () => {
    const id = await ready();
    const { branch } = (await post(`/snapshots/${id}/restore`, { finalize_restore: true })).json();
    await api.core.database.sql`update operations set deadline_at = '2026-01-01' where job = 'restore_snapshot'`;
    driver.failNext('createBranch', new Error('the machine said no'), 1);
    const pid = driver.computes.get(endpoint)?.process?.pid;
    await drain(api.core, driver);
    expect(await branchNamed('main')).toMatchObject({ id: root, default: true, current_state: 'ready' });
    expect(driver.computes.get(endpoint)?.process?.pid).toBe(pid);
    expect((await read(`/branches/${branch.id}`)).branch).toMatchObject({ current_state: 'init' });
    expect((await api.call('DELETE', `${base}/branches/${branch.id}`)).statusCode).toBe(200);
    await drain(api.core, driver);
  });

  test('works after the branch is gone, and says what it needs to replace one', async () => {
    const dev = (await post('/branches', { branch: { name: 'dev' } })).json().branch.id;
    await drain(api.core, driver);
    const { snapshot } = (await take('', dev)).json();
    // At once: a snapshot that was asked for is still taken.
    expect((await api.call('DELETE', `${base}/branches/${dev}?hard_delete=true`)).statusCode).toBe(200);
    await drain(api.core, driver);
    expect(driver.branches.has(dev)).toBe(false);
    const reply = await post(`/snapshots/${snapshot.id}/restore`, { finalize_restore: true });
    expect(outcome(reply)).toEqual([422, expect.stringContaining('name the one to replace in target_branch_id')]);
    const { branch } = (await post(`/snapshots/${snapshot.id}/restore`, { name: 'dev' })).json();
    await drain(api.core, driver);
    expect(await branchNamed('dev')).toMatchObject({ id: branch.id, current_state: 'ready' });
    expect(branch.restored_as).toBeUndefined();
    const finalize = await post(`/branches/${branch.id}/finalize_restore`);
    expect(outcome(finalize)).toEqual([422, expect.stringContaining('there is no branch to replace')]);
    const target = { target_branch_id: branch.id, finalize_restore: true };
    const onto = (await post(`/snapshots/${snapshot.id}/restore`, target)).json();
    await drain(api.core, driver);
    expect(await branchNamed('dev')).toMatchObject({ id: onto.branch.id, restored_as: branch.id });
  });

  test('refuses what it cannot do', async () => {
    const id = await ready();
    const restore = (body: object) => post(`/snapshots/${id}/restore`, body);
    expect(outcome(await restore({ target_branch_id: 'br-none' }))).toEqual([404, 'branch not found']);
    expect((await restore({ name: 'main' })).statusCode).toBe(409);
    expect((await post(`/snapshots/${id}/restore?name=a`, { name: 'b' })).statusCode).toBe(400);
    await api.call('PATCH', `${base}/branches/${root}`, { body: { branch: { protected: true } } });
    const guarded = await restore({ finalize_restore: true });
    expect(outcome(guarded)).toEqual([422, expect.stringContaining('cannot replace protected branch')]);
    await api.call('PATCH', `${base}/branches/${root}`, { body: { branch: { protected: false } } });
    const plain = (await post('/branches', { branch: { name: 'plain' } })).json().branch.id;
    expect(outcome(await post(`/branches/${plain}/finalize_restore`))).toEqual([
      422,
      'only a branch that was restored from a snapshot can be finalized',
    ]);
    await drain(api.core, driver);
  });
});

describe('a schedule', () => {
  beforeAll(() => newProject({ branch: { name: 'main' } }));
  const path = () => `${base}/branches/${root}/backup_schedule`;
  const set = (schedule: unknown) => api.call('PUT', path(), { body: { schedule } });
  const turn = async (time: string) => {
    now = new Date(time);
    const parts = { core: api.core, driver, log };
    await snapshotSchedules.turn(parts);
    await expiredSnapshots.turn(parts);
    await drain(api.core, driver);
  };

  test('is empty at first, kept, and shows when it is due', async () => {
    expect((await api.call('GET', path())).json()).toEqual({ schedule: [] });
    const schedule = [
      { frequency: 'daily', hour: 6, retention_seconds: 7_200 },
      { frequency: 'weekly', day: 4, hour: 6, retention_seconds: 86_400 },
    ];
    expect((await set(schedule)).json()).toEqual({});
    expect((await api.call('GET', path())).json()).toEqual({ schedule, next_at: '2026-03-04T06:00:00Z' });
  });

  test('makes one snapshot when it is due, which expires', async () => {
    await turn('2026-03-04T05:59:59Z');
    expect(await list()).toEqual([]);
    await turn('2026-03-04T06:00:01Z');
    await turn('2026-03-04T06:00:10Z');
    const [scheduled, ...others] = await list();
    expect(scheduled).toMatchObject({ manual: false, status: 'ready', expires_at: '2026-03-04T08:00:01Z' });
    expect(others).toEqual([]);
    expect(driver.branches.has(scheduled.id)).toBe(true);
    await turn('2026-03-04T08:00:02Z');
    expect(await list()).toEqual([]);
    expect(driver.branches.has(scheduled.id)).toBe(false);
  });

  test('makes up for what was missed with one, kept for the longest time; manual ones stay', async () => {
    await ready('?name=manual');
    await turn('2026-03-20T06:00:01Z');
    expect(await list()).toMatchObject([
      { manual: false, expires_at: '2026-03-21T06:00:01Z' },
      { name: 'manual', manual: true },
    ]);
    expect((await api.call('GET', path())).json().next_at).toBe('2026-03-21T06:00:00Z');
    expect((await set([])).statusCode).toBe(200);
    await turn('2026-04-30T00:00:00Z');
    expect(await list()).toMatchObject([{ name: 'manual' }]);
  });

  test('waits for a branch that is being restored, and shows why', async () => {
    await set([{ frequency: 'hourly' }]);
    const { sql } = api.core.database;
    await sql`update branches set current_state = 'resetting' where id = ${root}`;
    await turn('2026-04-30T01:00:00Z');
    expect((await api.call('GET', path())).json()).toMatchObject({
      error: expect.stringContaining('is being restored'),
      next_at: '2026-04-30T01:00:00Z',
    });
    await sql`update branches set current_state = 'ready' where id = ${root}`;
    await turn('2026-04-30T01:20:00Z');
    expect((await api.call('GET', path())).json()).toEqual({
      schedule: [{ frequency: 'hourly' }],
      next_at: '2026-04-30T02:00:00Z',
    });
    expect(await list()).toHaveLength(2);
    await set([]);
  });

  test.each([
    [[{ frequency: 'sometimes' }], 'body.schedule[0].frequency'],
    [[{ frequency: 'daily', hour: 24 }], 'body.schedule[0].hour'],
    [[{ frequency: 'daily', day: 3 }], 'body.schedule[0].day must be left out'],
    [[{ frequency: 'hourly' }, { frequency: 'weekly', day: 8 }], 'body.schedule[1].day must be 1 (Monday) to 7'],
    [[{ frequency: 'monthly', month: 2 }], 'body.schedule[0].month must be left out'],
    [[{ frequency: 'daily', retention_seconds: 3_599 }], 'body.schedule[0].retention_seconds'],
    [[{ frequency: 'daily', minute: 1 }], 'minute'],
    [{}, 'body.schedule'],
  ])('%j is refused', async (schedule, message) => {
    expect(outcome(await set(schedule))).toEqual([400, expect.stringContaining(message)]);
  });
});
