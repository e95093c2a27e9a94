/** Changes of computes, as the API shows them from the reply until their operations have ended. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { jobRegistry } from '../../operations/registry.ts';
import type { Job } from '../../operations/step.ts';

const gib = 1024 ** 3;

let api: TestApi;
let driver: FakeDriver;
let base: string;
let path: string;
let endpointId: string;
let branchId: string;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  // What a failed test left in the queue must not fail the ones after it.
  await api.core.database.sql`delete from projects`;
  driver = new FakeDriver();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  base = `/api/v2/projects/${made.project.id}`;
  [{ id: endpointId, branch_id: branchId }] = made.endpoints;
  path = `${base}/endpoints/${endpointId}`;
  await drain(api.core, driver);
});

const look = async (id = endpointId) => (await api.call('GET', `${base}/endpoints/${id}`)).json().endpoint;
const change = (endpoint: object, id = endpointId) =>
  api.call('PATCH', `${base}/endpoints/${id}`, { body: { endpoint } });
const actionsOf = ({ operations }: { operations: { action: string }[] }) => operations.map(({ action }) => action);

async function suspend(id = endpointId): Promise<void> {
  await api.call('POST', `${base}/endpoints/${id}/suspend`);
  await drain(api.core, driver);
}

/** Runs everything that is queued, and collects what the API shows before each step of an `apply_config`. */
async function shownDuring(): Promise<unknown[]> {
  const shown: unknown[] = [];
  const { apply_config: job } = jobRegistry;
  const steps = Object.entries(job.steps).map(([name, step]): [string, typeof step] => [
    name,
    async (context) => {
      shown.push((await look()).pending_state);
      return step(context);
    },
  ]);
  const watched: Job = { ...job, steps: Object.fromEntries(steps) };
  await drain(api.core, driver, { ...jobRegistry, apply_config: watched });
  return shown;
}

describe('pending_state', () => {
  test.each([
    ['size', { autoscaling_limit_min_cu: 1, autoscaling_limit_max_cu: 1 }],
    ['settings that need a reload', { settings: { pg_settings: { work_mem: '8MB' } } }],
    ['settings that need a restart', { settings: { pg_settings: { max_locks_per_transaction: '96' } } }],
  ])('of an active compute whose %s changes is active until the operation ends', async (_what, body) => {
    const reply = (await change(body)).json();
    expect(reply.endpoint).toMatchObject({ current_state: 'active', pending_state: 'active' });
    expect(actionsOf(reply)).toEqual(['apply_config']);
    const shown = await shownDuring();
    expect(shown.length).toBeGreaterThan(1);
    expect(new Set(shown)).toEqual(new Set(['active']));
    expect(await look()).not.toHaveProperty('pending_state');
  });

  test('of an idle compute is idle until it is back to sleep', async () => {
    await suspend();
    const reply = (await change({ settings: { pg_settings: { work_mem: '8MB' } } })).json();
    expect(reply.endpoint).toMatchObject({ current_state: 'idle', pending_state: 'idle' });
    expect(actionsOf(reply)).toEqual(['apply_config', 'suspend_compute']);
    expect(await look()).toMatchObject({ current_state: 'idle', pending_state: 'idle' });
    expect(new Set(await shownDuring())).toEqual(new Set(['idle']));
    const after = await look();
    expect(after.current_state).toBe('idle');
    expect(after).not.toHaveProperty('pending_state');
  });

  test('is not shown for a change that needs no operation, nor for one of roles', async () => {
    expect((await change({ name: 'other' })).json().endpoint).not.toHaveProperty('pending_state');
    await api.call('POST', `${base}/branches/${branchId}/roles`, { body: { role: { name: 'ann' } } });
    expect(await look()).not.toHaveProperty('pending_state');
    await drain(api.core, driver);
  });
});

test('temporary_disk is what the plan left of the size when the server started', async () => {
  const setPlan = (plan: string) => api.core.database.sql`update organizations set plan = ${plan}`;
  const diskOf = async () => (await look()).temporary_disk.limit_bytes;
  await change({ autoscaling_limit_min_cu: 4, autoscaling_limit_max_cu: 4 });
  await drain(api.core, driver);
  expect(await diskOf()).toBe(60 * gib);
  await setPlan('free');
  expect(await diskOf()).toBe(60 * gib);
  await suspend();
  expect(await diskOf()).toBe(30 * gib);
  const reply = (await api.call('POST', `${path}/start`)).json();
  expect(reply.endpoint.temporary_disk.limit_bytes).toBe(30 * gib);
  await drain(api.core, driver);
  await setPlan('scale');
  expect(await diskOf()).toBe(30 * gib);
});

describe('a read replica', () => {
  let replicaId: string;
  let other: string;
  beforeEach(async () => {
    const replica = { branch_id: branchId, type: 'read_only' };
    replicaId = (await api.call('POST', `${base}/endpoints`, { body: { endpoint: replica } })).json().endpoint.id;
    const endpoints = [{ type: 'read_write' }];
    other = (await api.call('POST', `${base}/branches`, { body: { endpoints } })).json().branch.id;
    await drain(api.core, driver);
  });

  test('moves to another branch that has a primary, asleep, and is built there by its next start', async () => {
    expect(driver.replicas.get(replicaId)).toMatchObject({ branchId });
    const reply = await change({ branch_id: other }, replicaId);
    expect(reply.statusCode).toBe(200);
    expect(reply.json().endpoint).toMatchObject({ branch_id: other, current_state: 'active', pending_state: 'idle' });
    expect(actionsOf(reply.json())).toEqual(['apply_config', 'suspend_compute']);
    await drain(api.core, driver);
    expect(driver.replicas.has(replicaId)).toBe(false);
    const moved = await look(replicaId);
    expect(moved).toMatchObject({ branch_id: other, type: 'read_only', current_state: 'idle' });
    expect(moved).not.toHaveProperty('pending_state');
    await api.call('POST', `${base}/endpoints/${replicaId}/start`);
    await drain(api.core, driver);
    expect(await look(replicaId)).toMatchObject({ branch_id: other, current_state: 'active' });
    expect(driver.replicas.get(replicaId)).toMatchObject({ branchId: other });
    expect((await look()).current_state).toBe('active');
  });

  test('is not moved to a branch without a primary, nor to one that does not exist', async () => {
    const bare = (await api.call('POST', `${base}/branches`)).json().branch.id;
    const refused = await change({ branch_id: bare }, replicaId);
    expect(refused.statusCode).toBe(422);
    expect(refused.json().message).toMatch(/this branch has none, create it first/);
    expect((await change({ branch_id: 'br-none' }, replicaId)).statusCode).toBe(404);
    expect((await look(replicaId)).branch_id).toBe(branchId);
    await drain(api.core, driver);
  });
});
