import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { deleteProject } from './project.ts';
import { purgeProject } from './recovery.ts';
import { suspendAllComputes } from './suspend-all.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('every compute is suspended once, and those that do not stop in time are counted', async () => {
  const { core } = made;
  const driver = new FakeDriver();
  expect(await suspendAllComputes(core)).toBe(0);
  await makeProject(made, 'one');
  await makeProject(made, 'two');
  await drain(core, driver);
  const queued = () => core.database.sql`
    select 1 from operations where job = 'suspend_compute' and finished_at is null`;
  expect(await suspendAllComputes(core, 120)).toBe(2);
  expect(await queued()).toHaveLength(2);
  const suspending = suspendAllComputes(core);
  await eventually(async () => expect(await queued()).toHaveLength(2));
  await drain(core, driver);
  expect(await suspending).toBe(0);
  expect([...driver.computes.values()].map(({ process }) => process)).toEqual([null, null]);
});

test('a compute that still runs while its project is being removed is waited for', async () => {
  const { core } = made;
  const driver = new FakeDriver();
  const { project } = await makeProject(made, 'on its way out');
  await drain(core, driver);
  await command(made, (scope) => deleteProject(scope, made.caller, project.id));
  await command(made, (scope) => purgeProject(scope, made.caller, project.id));
  expect(await suspendAllComputes(core, 120)).toBe(1);
  await drain(core, driver);
  expect(await suspendAllComputes(core)).toBe(0);
  expect(driver.computes.size).toBe(0);
});

test('a compute whose start is queued or under way does not run in the end either', async () => {
  const { core } = made;
  const driver = new FakeDriver();
  await makeProject(made, 'just made');
  const suspending = suspendAllComputes(core);
  const queued = () => core.database.sql`select job from operations where finished_at is null order by sequence`;
  await eventually(async () => expect((await queued()).at(-1)).toEqual({ job: 'suspend_compute' }));
  await drain(core, driver);
  expect(await suspending).toBe(0);
  expect(driver.calls.map(({ method }) => method)).toContain('start');
  expect([...driver.computes.values()].map(({ process }) => process)).toEqual([null]);
  expect(await queued()).toEqual([]);
});
