import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { updateProjectOf } from '../core/project.ts';
import { createLogger } from '../lib/log.ts';
import { makeSizeQuotas } from './size-quotas.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const mib = 1024 * 1024;
let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

/** A project with a size quota of 100 MiB and one compute that is awake. */
async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const reconciler = makeSizeQuotas();
  const { sql } = made.core.database;
  const setQuota = (quota: Record<string, number>) =>
    command(made, (scope) => updateProjectOf(scope, made.caller, project.id, { settings: { quota } }));
  await setQuota({ logical_size_bytes: 100 * mib });
  const turnAt = async (size: number) => {
    driver.sizes.set(branch.id, size);
    await reconciler.turn({ core: made.core, driver, log });
    await drain(made.core, driver);
  };
  const writes = () => driver.computes.get(endpoint.id)?.settings.default_transaction_read_only ?? 'allowed';
  const nap = async () => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
  };
  const wake = async () => {
    await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
  };
  const jobs = async () =>
    (await sql`select job from operations where endpoint_id = ${endpoint.id} order by sequence`).map(({ job }) => job);
  const ended = () => driver.calls.filter(({ method }) => method === 'endWriters').length;
  return { driver, setQuota, turnAt, writes, nap, wake, jobs, ended };
}

describe('a branch over its size quota', () => {
  test('has its writes off, without a restart, until it has shrunk', async () => {
    const { turnAt, writes, jobs } = await stage();
    await turnAt(100 * mib);
    expect(writes()).toBe('allowed');
    await turnAt(101 * mib);
    expect(writes()).toBe('on');
    await turnAt(102 * mib);
    await turnAt(100 * mib);
    expect(writes()).toBe('allowed');
    expect(await jobs()).toEqual(['start_compute', 'apply_config', 'apply_config']);
  });

  test.each([
    ['raised', { logical_size_bytes: 200 * mib }],
    ['removed', {}],
  ])('may be written to when the quota is %s', async (_, next) => {
    const { turnAt, writes, setQuota } = await stage();
    await turnAt(101 * mib);
    expect(writes()).toBe('on');
    await setQuota(next);
    await turnAt(101 * mib);
    expect(writes()).toBe('allowed');
  });

  test('wakes with its writes off, and with them on once the quota was raised', async () => {
    const { driver, turnAt, writes, nap, wake, setQuota } = await stage();
    await turnAt(101 * mib);
    await nap();
    await wake();
    expect(writes()).toBe('on');
    expect(driver.calls.filter(({ method }) => method === 'reload')).toHaveLength(1);
    await nap();
    await setQuota({ logical_size_bytes: 200 * mib });
    await wake();
    expect(writes()).toBe('allowed');
  });

  test('loses sessions that write while it grows on, and none while it shrinks', async () => {
    const { turnAt, ended } = await stage();
    await turnAt(150 * mib);
    for (const size of [150, 140, 155]) await turnAt(size * mib);
    expect(ended()).toBe(0);
    await turnAt(157 * mib);
    expect(ended()).toBe(1);
    await turnAt(150 * mib);
    expect(ended()).toBe(1);
  });
});
