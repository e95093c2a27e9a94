import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

const month = () => new Date().toISOString().slice(0, 7);
const periodEnd = () => {
  const now = new Date();
  return `${new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString().slice(0, 19)}Z`;
};

/** A project whose one compute sleeps, and that has sent 500 bytes this month. */
async function makeProject(quota: object) {
  const { project, endpoints, branch } = (
    await api.call('POST', '/api/v2/projects', { body: { project: { settings: { quota } } } })
  ).json();
  const { sql } = api.core.database;
  const usage = { period: month(), transfer: 500, active: 7 };
  await sql`update projects set usage = ${sql.json(usage)} where id = ${project.id}`;
  await sql`update operations set status = 'finished', finished_at = now() where project_id = ${project.id}`;
  await sql`update endpoints set current_state = 'idle', pending_state = null where project_id = ${project.id}`;
  const base = `/api/v2/projects/${project.id}`;
  return { base, branchId: branch.id, endpoint: `${base}/endpoints/${endpoints[0].id}`, endpointId: endpoints[0].id };
}

test('a project shows its quotas, what is used of them, and when they start anew', async () => {
  const { base } = await makeProject({ data_transfer_bytes: 501, logical_size_bytes: 10_000 });
  const { project } = (await api.call('GET', base)).json();
  expect(project.settings.quota).toEqual({ data_transfer_bytes: 501, logical_size_bytes: 10_000 });
  expect(project).toMatchObject({ data_transfer_bytes: 500, active_time_seconds: 7 });
  expect([project.consumption_period_end, project.quota_reset_at]).toEqual([periodEnd(), periodEnd()]);
  expect(project.quota_exceeded).toBeUndefined();
});

test('counters of an earlier month are not shown, and use up nothing', async () => {
  const { base, endpoint } = await makeProject({ data_transfer_bytes: 1 });
  await api.core.database.sql`update projects set usage = '{"period": "2020-01", "transfer": 500}'`;
  expect((await api.call('GET', base)).json().project.data_transfer_bytes).toBe(0);
  expect((await api.call('POST', `${endpoint}/start`)).statusCode).toBe(200);
});

test('a quota that is used up is refused by name, until it is raised', async () => {
  const { base, branchId, endpoint } = await makeProject({ data_transfer_bytes: 500 });
  const { quota_exceeded: exceeded } = (await api.call('GET', base)).json().project;
  expect(exceeded).toMatchObject({ name: 'data_transfer_bytes', limit: 500, used: 500, resets_at: periodEnd() });
  const refusal = { code: 'DATA_TRANSFER_QUOTA_EXCEEDED', message: exceeded.message };
  const start = () => api.call('POST', `${endpoint}/start`);
  const replica = { endpoint: { branch_id: branchId, type: 'read_only' } };
  const branch = { endpoints: [{ type: 'read_write' }] };
  for (const reply of [
    await start(),
    await api.call('POST', `${base}/endpoints`, { body: replica }),
    await api.call('POST', `${base}/branches`, { body: branch }),
  ]) {
    expect([reply.statusCode, reply.json()]).toEqual([422, expect.objectContaining(refusal)]);
  }
  expect((await api.call('GET', `${base}/branches`)).json().branches).toHaveLength(1);
  // A branch without a compute starts nothing.
  expect((await api.call('POST', `${base}/branches`)).statusCode).toBe(201);
  const quota = { data_transfer_bytes: 501 };
  await api.call('PATCH', base, { body: { project: { settings: { quota } } } });
  expect((await start()).statusCode).toBe(200);
});

test('a change for a compute that may not be woken waits for its next start', async () => {
  const { base, branchId, endpoint, endpointId } = await makeProject({ active_time_seconds: 7 });
  const settings = { pg_settings: { work_mem: '8MB' } };
  const changed = await api.call('PATCH', endpoint, { body: { endpoint: { settings } } });
  expect(changed.json()).toMatchObject({ endpoint: { settings }, operations: [] });
  const role = await api.call('POST', `${base}/branches/${branchId}/roles`, { body: { role: { name: 'ann' } } });
  expect([role.statusCode, role.json().operations]).toEqual([201, []]);
  const { sql } = api.core.database;
  await sql`update endpoints set current_state = 'active' where id = ${endpointId}`;
  const restarted = await api.call('POST', `${endpoint}/restart`);
  expect([restarted.statusCode, restarted.json().code]).toEqual([422, 'ACTIVE_TIME_QUOTA_EXCEEDED']);
});

test('a branch shows whether it is too large, and a compute that its writes are off', async () => {
  const { base, branchId, endpoint, endpointId } = await makeProject({ logical_size_bytes: 1_000 });
  const { sql } = api.core.database;
  const branch = async () => (await api.call('GET', `${base}/branches/${branchId}`)).json().branch;
  const compute = async () => (await api.call('GET', endpoint)).json().endpoint;
  expect((await branch()).size_quota).toEqual({ limit_bytes: 1_000, exceeded: false });
  await sql`update branches set logical_size = 1001 where id = ${branchId}`;
  expect((await branch()).size_quota).toEqual({ limit_bytes: 1_000, exceeded: true });
  // Not before a server has been told.
  expect((await compute()).writes_off).toBeUndefined();
  const server = { settings: {}, minCu: 0.25, maxCu: 0.25, given: { minCu: 0.25, maxCu: 0.25 }, release: null };
  await sql`
    update endpoints set current_state = 'active', server = ${sql.json({ ...server, writesOff: true })}
    where id = ${endpointId}`;
  expect((await compute()).writes_off).toMatchObject({ reason: 'size_quota', quota: 'logical_size_bytes' });
  await sql`
    update endpoints set server = ${sql.json({ ...server, writesOff: true, isDiskFull: true })} where id = ${endpointId}`;
  expect((await compute()).writes_off).toMatchObject({ reason: 'disk_full', enforcement: 'session' });
  await api.call('PATCH', base, { body: { project: { settings: { quota: {} } } } });
  expect((await branch()).size_quota).toBeUndefined();
});

test.each([
  ['active_time_seconds', -1],
  ['compute_time_seconds', 1.5],
  ['written_data_bytes', '10'],
  ['data_transfer_bytes', 2 ** 53],
  ['logical_size_bytes', null],
])('%s of %j is refused by name', async (name, value) => {
  const body = { project: { settings: { quota: { [name]: value } } } };
  const reply = await api.call('POST', '/api/v2/projects', { body });
  expect([reply.statusCode, reply.json().message]).toEqual([
    400,
    expect.stringContaining(`body.project.settings.quota.${name} must be`),
  ]);
});
