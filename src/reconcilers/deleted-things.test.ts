import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { deleteBranch } from '../core/branch.ts';
import { createBranch } from '../core/branch-create.ts';
import { commandScope } from '../core/context.ts';
import { deleteProject } from '../core/project.ts';
import { recoverProject } from '../core/recovery.ts';
import { selectHeldCapacity } from '../db/sizes.ts';
import { dayMs } from '../lib/clock.ts';
import { CatnapError } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { deletedThings } from './deleted-things.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
let driver: FakeDriver;
beforeAll(async () => {
  made = await makeCore();
});
beforeEach(async () => {
  driver = new FakeDriver();
  await made.core.database.sql`delete from projects`;
});
afterAll(() => made.close());

const turn = (at = new Date()) => {
  const core = { ...made.core, clock: { now: () => at } };
  return deletedThings.turn({ core, driver, log });
};

async function makeAwake() {
  const project = await makeProject(made);
  await drain(made.core, driver);
  const runs = () => driver.computes.get(project.endpoint.id)?.process != null;
  expect(runs()).toBe(true);
  const remove = () => command(made, (scope) => deleteProject(scope, made.caller, project.project.id));
  return { ...project, runs, remove };
}

test('a compute whose stop was given up is stopped by the next turn', async () => {
  const { runs, remove } = await makeAwake();
  await remove();
  const { sql } = made.core.database;
  await sql`update operations set deadline_at = now() where job = 'suspend_compute' and finished_at is null`;
  driver.failNext('suspend', new Error('the machine said no'), 1);
  await drain(made.core, driver);
  expect(runs()).toBe(true);
  await turn();
  await drain(made.core, driver);
  expect(runs()).toBe(false);
});

test('a server that does not answer is stopped all the same', async () => {
  const { runs, remove } = await makeAwake();
  await remove();
  driver.failNext('readCatalog', new Error('too many connections'), 10_000);
  await drain(made.core, driver);
  expect(runs()).toBe(false);
});

test('what was recovered, or deleted again, since it was due is left alone', async () => {
  const { project, remove } = await makeAwake();
  await remove();
  const { sql } = made.core.database;
  await sql`update projects set recoverable_until = now() - interval '1 s'`;
  // Somebody holds the project while the turn has already found it, and brings it back.
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const holding = made.core.database.transaction(async (tx) => {
    await tx`select 1 from projects where id = ${project.id} for update`;
    begin();
    await released;
    const early = { ...commandScope(made.core, tx), clock: { now: () => new Date(Date.now() - dayMs) } };
    await recoverProject(early, made.caller, project.id);
  });
  await begun;
  const turning = turn();
  await eventually(async () => {
    const waiting = await sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    expect(waiting).toHaveLength(1);
  });
  release();
  await Promise.all([holding, turning]);
  await drain(made.core, driver);
  expect([...(await sql`select id from projects where deleting_at is null`)]).toEqual([{ id: project.id }]);
  expect(driver.branches.size).toBe(1);
});

test('storage is not counted for the time that something was deleted', async () => {
  const { project, remove } = await makeAwake();
  const { sql } = made.core.database;
  await sql`update branches set metered_until = now() - interval '3 days', logical_size = 1000, metered_size = 1000`;
  await remove();
  await drain(made.core, driver);
  const stored = async () =>
    (await sql`select extract(epoch from sum(until - since)) / 86400 as days from stored_spans`)[0]?.days;
  expect(Number(await stored())).toBeCloseTo(3, 2);
  expect([...(await sql`select 1 from branches where metered_until is not null`)]).toEqual([]);
  await command(made, (scope) => recoverProject(scope, made.caller, project.id));
  const [branch] = await sql`select metered_until > now() - interval '1 minute' as anew from branches`;
  expect(branch?.anew).toBe(true);
});

test('a deleted compute that sleeps holds no capacity', async () => {
  const { endpoint, remove } = await makeAwake();
  await made.core.database.sql`update endpoints set reserved_cu = 1`;
  await remove();
  await drain(made.core, driver);
  const other = await makeProject(made, 'other');
  expect(endpoint.id).not.toBe(other.endpoint.id);
  expect(await selectHeldCapacity(made.core.database.sql, other.endpoint.id)).toEqual({ cu: 0, computes: 0 });
});

test('an operation that finds the disk full points out what a purge would free', async () => {
  const { project } = await makeAwake();
  const { sql } = made.core.database;
  const add = () =>
    command(made, (scope) => createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }));
  const { branch: gone } = await add();
  await drain(made.core, driver);
  const errorOfCopy = async () => {
    driver.failNext('createBranch', new CatnapError('disk_full', 'the disk is full'), 1);
    const { operations } = await add();
    await drain(made.core, driver);
    const [row] = await sql`select error from operations where id = ${operations[0]?.id ?? ''}`;
    return row?.error;
  };
  expect(await errorOfCopy()).toBe('the disk is full');
  await command(made, (scope) => deleteBranch(scope, made.caller, project.id, gone.id));
  expect(await errorOfCopy()).toBe(
    'the disk is full; deleted projects and branches still take room: catnap purge removes them',
  );
});

test('without days to recover, a deletion is final', async () => {
  const { project } = await makeAwake();
  await made.core.database.transaction((tx) => {
    const scope = commandScope({ ...made.core, config: { ...made.core.config, recoveryDays: 0 } }, tx);
    return deleteProject(scope, made.caller, project.id);
  });
  await drain(made.core, driver);
  expect([driver.branches.size, driver.computes.size]).toEqual([0, 0]);
  expect([...(await made.core.database.sql`select id from projects`)]).toEqual([]);
});
