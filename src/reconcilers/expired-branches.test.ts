import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { selectBranchInAnyState } from '../db/branches.ts';
import type { BranchId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { expiredBranches } from './expired-branches.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => made.close());

test('a branch that cannot be deleted does not hold up the others that have expired', async () => {
  const driver = new FakeDriver();
  const { project } = await makeProject(made);
  const { sql } = made.core.database;
  const make = async (parentId?: BranchId) => {
    const input = { annotation: {}, endpoints: [], ...(parentId !== undefined && { parentId }) };
    const { branch } = await command(made, (scope) => createBranch(scope, made.caller, project.id, input));
    await drain(made.core, driver);
    return branch.id;
  };
  const before = await make();
  const stuck = await make();
  const after = await make();
  // The API refuses children of a branch that expires; only a deletion that fails is wanted here.
  await make(stuck);
  const all = [before, stuck, after];
  await sql`update branches set expires_at = now() - interval '1 minute' where id in ${sql(all)}`;

  await expiredBranches.turn({ core: made.core, driver, log });

  const deletingAt = await Promise.all(all.map(async (id) => (await selectBranchInAnyState(sql, id))?.deletingAt));
  expect(deletingAt).toEqual([expect.any(Date), null, expect.any(Date)]);
});
