import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createRole } from '../core/role.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import type { EndpointId } from '../lib/ids.ts';

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
