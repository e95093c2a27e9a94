/** What operations report about their failures, how long their queue may get, and that a new compute is a new one. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { testProviders } from '../../../test/helpers/providers.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { createLogger } from '../../lib/log.ts';
import { OperationRunner } from '../../operations/runner.ts';

const driver = new FakeDriver();
let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

async function makeProject() {
  const { project, branch, endpoints } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  await drain(api.core, driver);
  return { path: `/api/v2/projects/${project.id}`, projectId: project.id, branch, endpoint: endpoints[0] };
}

test('a failure shows with its reason, its count and the time of the next try, and is gone when that succeeds', async () => {
  const { path, endpoint } = await makeProject();
  await api.call('POST', `${path}/endpoints/${endpoint.id}/suspend`);
  await drain(api.core, driver);
  const started = (await api.call('POST', `${path}/endpoints/${endpoint.id}/start`)).json();
  driver.failNext('start', new Error('no room for a server'));
  const log = createLogger({ level: 'silent', process: 'test' });
  await new OperationRunner({ core: api.core, driver, providers: testProviders(), log, concurrency: 1 }).runNext();
  const look = async () => (await api.call('GET', `${path}/operations/${started.operations[0].id}`)).json().operation;
  const failed = await look();
  expect(failed).toMatchObject({ status: 'failed', failures_count: 1, error: 'no room for a server' });
  // The API reports whole seconds.
  expect(Date.parse(failed.retry_at)).toBeGreaterThanOrEqual(Date.parse(failed.created_at));
  await drain(api.core, driver);
  const finished = await look();
  expect(finished).toMatchObject({ status: 'finished', failures_count: 1 });
  expect(finished.retry_at).toBeUndefined();
  expect(finished.total_duration_ms).toBeGreaterThanOrEqual(0);
});

test('a queue past all reason refuses further writes with 423, and takes them again when it is shorter', async () => {
  const { path, projectId, endpoint } = await makeProject();
  const { sql } = api.core.database;
  await sql`
    insert into operations (id, project_id, status, job, step, exclusive_keys, shared_keys, run_at, deadline_at)
    select gen_random_uuid(), ${projectId}, 'scheduling', 'check_availability', 'record', '{}', '{}',
      now() + interval '1 h', now() + interval '1 h'
    from generate_series(1, 500)`;
  const suspend = () => api.call('POST', `${path}/endpoints/${endpoint.id}/suspend`);
  const refused = await suspend();
  expect(refused.statusCode).toBe(423);
  expect(refused.json().message).toContain('too many running operations');
  await sql`delete from operations where project_id = ${projectId} and job = 'check_availability'`;
  expect((await suspend()).statusCode).toBe(200);
});

test('a compute that is deleted and added again has another id and host', async () => {
  const { path, branch, endpoint } = await makeProject();
  expect((await api.call('DELETE', `${path}/endpoints/${endpoint.id}`)).statusCode).toBe(200);
  await drain(api.core, driver);
  const body = { endpoint: { branch_id: branch.id, type: 'read_write' } };
  const again = (await api.call('POST', `${path}/endpoints`, { body })).json().endpoint;
  expect(again.id).not.toBe(endpoint.id);
  expect(again.host).not.toBe(endpoint.host);
});
