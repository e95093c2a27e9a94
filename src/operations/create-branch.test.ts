import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { createRole, deleteRole } from '../core/role.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import { CatnapError } from '../lib/errors.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('a copy that found the disk full ends at once, says why, and leaves a branch that is not ready', async () => {
  const driver = new FakeDriver();
  const { project } = await makeProject(made);
  await drain(made.core, driver);
  const { branch, operations } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }),
  );
  driver.failNext('createBranch', new CatnapError('disk_full', 'the disk is full: nothing was copied'));
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const [row] = await sql`select status, error, failures_count from operations where id = ${operations[0]?.id ?? ''}`;
  expect(row).toMatchObject({ status: 'error', error: 'the disk is full: nothing was copied' });
  expect(await selectBranchInAnyState(sql, branch.id)).toMatchObject({ currentState: 'init', pendingState: null });
  expect(driver.calls.filter(({ method, subject }) => method === 'createBranch' && subject === branch.id)).toHaveLength(
    1,
  );
});

test('a copy of a parent that never got its data ends at once, and says why', async () => {
  const driver = new FakeDriver();
  const { project } = await makeProject(made);
  driver.failNext('createBranch', new CatnapError('disk_full', 'the disk is full: nothing was copied'));
  const { operations } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }),
  );
  await drain(made.core, driver);
  const [row] = await made.core.database
    .sql`select status, error from operations where id = ${operations[0]?.id ?? ''}`;
  expect(row).toEqual({ status: 'error', error: 'the parent has no data to copy' });
});

test('a branch of a parent that is awake knows its catalog, and its first start reads none', async () => {
  const driver = new FakeDriver();
  const { project, branch: parent } = await makeProject(made);
  await drain(made.core, driver);
  driver.branches.get(parent.id)?.roles.set('by_sql', { name: 'by_sql', verifier: null });
  const { branch, endpoints } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [{ type: 'read_write' }] }),
  );
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const rows =
    await sql`select branch_id from roles where name = 'by_sql' and branch_id in ${sql([parent.id, branch.id])}`;
  expect(rows).toHaveLength(2);
  const calls = driver.calls.filter(({ subject }) => subject === endpoints[0]?.id).map(({ method }) => method);
  expect(calls).toContain('start');
  expect(calls).not.toContain('configure');
  expect(calls).not.toContain('readCatalog');
});

test('what its parent had pending when a branch was asked for, and has carried out since, is not pending', async () => {
  const driver = new FakeDriver();
  const { project, branch: parent, role } = await makeProject(made);
  const address = { projectId: project.id, branchId: parent.id };
  await command(made, (scope) => createRole(scope, made.caller, { ...address, name: 'extra', noLogin: false }));
  const create = () =>
    command(made, (scope) => createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }));
  const { branch } = await create();
  await drain(made.core, driver);
  await command(made, (scope) => deleteRole(scope, made.caller, { ...address, name: 'extra' }));
  const { branch: later } = await create();
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const rolesOf = (id: string) => sql`
    select name, applied, pending, dropped_at from roles where branch_id = ${id} order by id`;
  const settled = { applied: true, pending: false, droppedAt: null };
  const [owner, extra] = [role.name, 'extra'].map((name) => ({ name, ...settled }));
  expect(await rolesOf(branch.id)).toEqual([owner, extra]);
  expect(await rolesOf(later.id)).toEqual([owner]);
  expect(await sql`select 1 from databases where branch_id in ${sql([branch.id, later.id])} and pending`).toEqual([]);
  expect([...(driver.branches.get(branch.id)?.roles.keys() ?? [])]).toEqual([role.name, 'extra']);
});

test('a copy that an earlier worker finished is recorded by what the parent says now, and read again', async () => {
  const driver = new FakeDriver();
  const { project, branch: parent } = await makeProject(made);
  await drain(made.core, driver);
  const { branch, endpoints } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [{ type: 'read_write' }] }),
  );
  const ref = { projectId: project.id, tenantUid: null, branchId: branch.id };
  await driver.createBranch({ ...ref, pgVersion: 17, source: { kind: 'branch', branchId: parent.id } });
  driver.branches.get(parent.id)?.roles.set('later', { name: 'later', verifier: null });
  await drain(made.core, driver);
  const rows = await made.core.database.sql`select branch_id from roles where name = 'later'`;
  expect(rows.map((row) => row.branchId)).toEqual([parent.id]);
  expect(driver.calls).toContainEqual({ method: 'configure', subject: endpoints[0]?.id });
});
