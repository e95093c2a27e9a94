import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake.ts';
import { createBranch } from '../core/branch-create.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import { CatnapError } from '../errors.ts';

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
