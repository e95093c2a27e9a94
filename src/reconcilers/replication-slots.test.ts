import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { suspendEndpoint } from '../core/endpoint.ts';
import { updateProjectOf } from '../core/project.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import { createLogger } from '../lib/log.ts';
import type { ReplicationSlot } from '../lib/model.ts';
import { replicationSlots } from './replication-slots.ts';

let domain: TestCore;
beforeAll(async () => {
  domain = await makeCore();
});
afterAll(() => domain.close());
beforeEach(() => domain.core.database.sql`delete from projects`);

const slot: ReplicationSlot = {
  name: 'kept',
  plugin: 'pgoutput',
  database: 'neondb',
  active: true,
  walStatus: 'reserved',
  retainedBytes: 56,
};

async function stage(isLogical: boolean) {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(domain);
  const settings = { enable_logical_replication: isLogical };
  await command(domain, (scope) => updateProjectOf(scope, domain.caller, project.id, { settings }));
  await drain(domain.core, driver);
  const log = createLogger({ level: 'silent', process: 'test' });
  const warned = vi.spyOn(log, 'warn');
  const turn = () => replicationSlots.turn({ core: domain.core, driver, log });
  const reports = (slots: readonly ReplicationSlot[]) => {
    const data = driver.branches.get(branch.id);
    if (data) data.slots = slots;
  };
  const onRecord = async () => (await selectBranchInAnyState(domain.core.database.sql, branch.id))?.replicationSlots;
  return { driver, project, endpoint, turn, warned, reports, onRecord };
}

test('slots are recorded, and a lost one is announced once', async () => {
  const { turn, warned, reports, onRecord } = await stage(true);
  expect(await onRecord()).toBeNull();
  await turn();
  expect(await onRecord()).toEqual([]);
  reports([slot]);
  await turn();
  expect(await onRecord()).toEqual([slot]);
  expect(warned).not.toHaveBeenCalled();
  reports([{ ...slot, active: false, walStatus: 'lost', retainedBytes: null }]);
  await turn();
  await turn();
  expect(await onRecord()).toMatchObject([{ walStatus: 'lost', retainedBytes: null }]);
  expect(warned).toHaveBeenCalledTimes(1);
  expect(warned.mock.calls[0]?.[0]).toMatchObject({ slot: 'kept' });
});

test('a slot of a server that is asleep has no subscriber', async () => {
  const { driver, project, endpoint, turn, reports, onRecord } = await stage(true);
  reports([slot]);
  await turn();
  await command(domain, (scope) => suspendEndpoint(scope, domain.caller, project.id, endpoint.id));
  await drain(domain.core, driver);
  await turn();
  expect(await onRecord()).toEqual([{ ...slot, active: false }]);
});

test('a server without logical replication is not asked', async () => {
  const { driver, turn, onRecord } = await stage(false);
  await turn();
  expect(await onRecord()).toBeNull();
  expect(driver.calls.filter(({ method }) => method === 'observeSlots')).toEqual([]);
});
