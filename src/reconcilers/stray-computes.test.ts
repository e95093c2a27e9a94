import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { createLogger } from '../lib/log.ts';
import { strayComputes } from './stray-computes.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

async function turnAfter(change: Parameters<typeof updateEndpoint>[2]) {
  const { core } = made;
  const driver = new FakeDriver();
  const log = createLogger({ level: 'silent', process: 'test' });
  const { endpoint } = await makeProject(made);
  await drain(core, driver);
  await updateEndpoint(core.database.sql, endpoint.id, change);
  await strayComputes.turn({ core, driver, log });
  await drain(core, driver);
  const [row] = await core.database.sql`select current_state from endpoints where id = ${endpoint.id}`;
  return { state: row?.currentState, isRunning: driver.computes.get(endpoint.id)?.process !== null };
}

test('a compute that serves goes on', async () => {
  expect(await turnAfter({})).toEqual({ state: 'active', isRunning: true });
});

test('a server that a start has left behind is stopped', async () => {
  expect(await turnAfter({ currentState: 'idle', address: null })).toEqual({ state: 'idle', isRunning: false });
});

test('a compute whose suspend was given up after its route was closed is suspended again', async () => {
  expect(await turnAfter({ pendingState: null, address: null })).toEqual({ state: 'idle', isRunning: false });
});
