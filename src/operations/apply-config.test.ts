import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { startEndpoint } from '../core/endpoint.ts';
import { updateEndpointOf } from '../core/endpoint-update.ts';
import { createRole } from '../core/role.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import type { BranchId, EndpointId } from '../lib/ids.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

async function changeWhile(before: Parameters<typeof updateEndpoint>[2]) {
  const driver = new FakeDriver();
  const { sql } = made.core.database;
  const { project, branch, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const addressOf = async (id: EndpointId) => (await sql`select address from endpoints where id = ${id}`)[0]?.address;
  const open = await addressOf(endpoint.id);
  await updateEndpoint(sql, endpoint.id, before);
  const address = { projectId: project.id, branchId: branch.id };
  await command(made, (scope) => createRole(scope, made.caller, { ...address, name: 'extra', noLogin: false }));
  await drain(made.core, driver);
  return { open, after: await addressOf(endpoint.id) };
}

test('a route that was closed for a restart that is not needed any more is opened again', async () => {
  const { open, after } = await changeWhile({ address: null });
  expect(open).not.toBeNull();
  expect(after).toEqual(open);
});

test('a route that was closed for a suspend stays closed', async () => {
  expect((await changeWhile({ address: null, pendingState: 'idle' })).after).toBeNull();
});

test('a change that a move has overtaken is left to the branch that it was asked for', async () => {
  const driver = new FakeDriver();
  const { sql } = made.core.database;
  const { project, branch, endpoint } = await makeProject(made);
  const { branch: other } = await command(made, (scope) =>
    createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [] }),
  );
  await drain(made.core, driver);
  const address = { projectId: project.id, branchId: branch.id };
  await command(made, (scope) => createRole(scope, made.caller, { ...address, name: 'extra', noLogin: false }));
  const moveTo = (branchId: BranchId) =>
    command(made, (scope) =>
      updateEndpointOf(scope, made.caller, { projectId: project.id, endpointId: endpoint.id }, { branchId }),
    );
  await moveTo(other.id);
  driver.branches.get(branch.id)?.roles.set('by_sql', { name: 'by_sql', verifier: null });
  await drain(made.core, driver);
  const rolesOf = async (id: BranchId) => {
    const rows = await sql`select name, pending from roles where branch_id = ${id} order by name`;
    return rows.map(({ name, pending }) => `${name}${pending ? ' (pending)' : ''}`);
  };
  expect(await rolesOf(branch.id)).toEqual(expect.arrayContaining(['by_sql', 'extra (pending)']));
  expect(await rolesOf(other.id)).not.toContain('by_sql');
  await moveTo(branch.id);
  await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
  await drain(made.core, driver);
  expect(await rolesOf(branch.id)).toContain('extra');
  expect(driver.branches.get(branch.id)?.roles.has('extra')).toBe(true);
  expect(driver.branches.get(other.id)?.roles.has('extra')).toBe(false);
});
