import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import type { ComputeObservation } from '../compute/interface/driver.ts';
import { changesChannel } from '../db/operations.ts';
import { createLogger } from '../lib/log.ts';
import { lostComputes } from './lost-computes.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

/** One for all tests: a compute that it does not know would be lost. */
const driver = new FakeDriver();
const log = createLogger({ level: 'silent', process: 'test' });
const elsewhere = { kind: 'tcp', host: '10.0.0.7', port: 5432 } as const;

/** One turn, in which the driver reports this of a new compute. */
async function turnSeeing(change: Partial<ComputeObservation>) {
  const { core } = made;
  const { endpoint } = await makeProject(made);
  await drain(core, driver);
  const list = FakeDriver.prototype.list.bind(driver);
  driver.list = async () =>
    (await list()).map((seen) => (seen.endpointId === endpoint.id ? { ...seen, ...change } : seen));
  const told: string[] = [];
  const unlisten = await core.database.listen(changesChannel, (payload) => void told.push(payload));
  await lostComputes.turn({ core, driver, log });
  await expect
    .poll(async () => {
      await core.database.sql`select pg_notify(${changesChannel}, 'last')`;
      return told.includes('last');
    })
    .toBe(true);
  await unlisten();
  const [row] = await core.database
    .sql`select address, current_state, generation from endpoints where id = ${endpoint.id}`;
  const address = { kind: 'unix', path: `/fake/${endpoint.id}` };
  return { row, address, isTold: told.includes(endpoint.id) };
}

test('a compute that answers where it should is left alone', async () => {
  const { row, address, isTold } = await turnSeeing({});
  expect([row?.address, row?.currentState, isTold]).toEqual([address, 'active', false]);
});

test('the route of a compute follows its server to another address, and proxies are told', async () => {
  const { row, isTold } = await turnSeeing({ address: elsewhere });
  expect(row).toMatchObject({ address: elsewhere, currentState: 'active' });
  expect(isTold).toBe(true);
});

test('a server that does not answer yet, or is of another start, moves no route', async () => {
  for (const change of [
    { state: 'starting', address: null },
    { generation: 7, address: elsewhere },
  ] as const) {
    const { row, address, isTold } = await turnSeeing(change);
    expect([row?.address, row?.currentState, isTold]).toEqual([address, 'active', false]);
  }
});
