import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { suspendEndpoint } from '../core/endpoint.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import type { BranchId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { branchSizes } from './branch-sizes.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('sizes are asked of what is awake, remembered for what sleeps, and given to what is branched', async () => {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  const row = (id: BranchId) => selectBranchInAnyState(made.core.database.sql, id);
  const turn = () => branchSizes.turn({ core: made.core, driver, log });
  await drain(made.core, driver);
  driver.sizes.set(branch.id, 111);
  const { updatedAt } = (await row(branch.id)) ?? {};
  await turn();
  expect(await row(branch.id)).toMatchObject({ logicalSize: 111, updatedAt });

  driver.sizes.set(branch.id, 222);
  const { branch: child } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }),
  );
  await drain(made.core, driver);
  expect(await row(child.id)).toMatchObject({ logicalSize: 222 });

  driver.sizes.set(branch.id, 333);
  await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
  await drain(made.core, driver);
  driver.sizes.set(branch.id, 444);
  await turn();
  expect(await row(branch.id)).toMatchObject({ logicalSize: 333 });
});
