/** Changes that fail: which are tried again, and what they hold up meanwhile. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { testProviders } from '../../test/helpers/providers.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { ServerRefusalError } from '../compute/interface/refusal.ts';
import { createBranch } from '../core/branch-create.ts';
import { createDatabase, updateDatabaseOf } from '../core/database.ts';
import { restartEndpoint, updateEndpointOf } from '../core/endpoint-update.ts';
import { createRole, deleteRole, resetRolePassword } from '../core/role.ts';
import { createLogger } from '../lib/log.ts';
import { OperationRunner } from './runner.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

const refused = new ServerRefusalError('permission denied to set parameter', '42501');
const busy = new Error('canceling statement due to lock timeout');
const log = createLogger({ level: 'silent', process: 'test' });

async function awakeProject(driver: FakeDriver) {
  const found = await makeProject(made);
  await drain(made.core, driver);
  const { project, branch, endpoint } = found;
  const address = { projectId: project.id, branchId: branch.id, name: 'neondb_owner' };
  return { project, branch, endpointId: endpoint.id, address };
}

const reset = (address: Parameters<typeof resetRolePassword>[2]) =>
  command(made, (scope) => resetRolePassword(scope, made.caller, address));

async function statusOf(id: string | undefined) {
  const [row] = await made.core.database.sql`
    select status, error, failures_count from operations where id = ${id ?? ''}`;
  return row;
}

const runnerOf = (driver: FakeDriver) =>
  new OperationRunner({ core: made.core, driver, log, concurrency: 1, providers: testProviders() });

describe('a change that the server refuses for good', () => {
  test('ends at once with the server’s words, and one that may pass is tried again', async () => {
    const driver = new FakeDriver();
    const { address } = await awakeProject(driver);
    driver.failNext('configure', refused);
    const first = await reset(address);
    await drain(made.core, driver);
    expect(await statusOf(first.operations[0]?.id)).toMatchObject({ status: 'error', error: refused.message });
    driver.failNext('configure', busy);
    const second = await reset(address);
    await drain(made.core, driver);
    expect(await statusOf(second.operations[0]?.id)).toMatchObject({ status: 'finished', failuresCount: 1 });
  });

  test('does not keep a branch in the making, and the parent is free as soon as its data is copied', async () => {
    const driver = new FakeDriver();
    const { project, address, branch } = await awakeProject(driver);
    const { operations } = await command(made, (scope) =>
      createBranch(scope, made.caller, project.id, {
        annotation: {},
        endpoints: [],
        parentId: branch.id,
        initSource: 'schema-only',
      }),
    );
    const runner = runnerOf(driver);
    driver.failNext('emptyBranch', busy);
    expect(await runner.runNext()).toBe(true);
    expect(await statusOf(operations[0]?.id)).toMatchObject({ status: 'failed', failuresCount: 1 });
    // Its next try is not due yet, however slow this machine is.
    await made.core.database.sql`update operations set run_at = now() + interval '1 hour' where status = 'failed'`;
    const change = await reset(address);
    expect(change.operations[0]?.status).toBe('running');
    expect(await runner.runNext()).toBe(true);
    expect(await statusOf(change.operations[0]?.id)).toMatchObject({ status: 'finished' });
    driver.failNext('emptyBranch', refused);
    await drain(made.core, driver);
    expect(await statusOf(operations[0]?.id)).toMatchObject({ status: 'error', error: refused.message });
  });
});

describe('a change of a database that its server does not make', () => {
  const take = { name: 'taken', ownerName: 'neondb_owner' };

  /** With a second role, and with a database of the name `taken`, made by SQL. */
  async function projectWithTakenName() {
    const driver = new FakeDriver();
    const { address } = await awakeProject(driver);
    await addRole(address, 'leaving');
    await drain(made.core, driver);
    const server = driver.branches.get(address.branchId);
    if (server === undefined) throw new Error('the driver has no such branch');
    server.databases.set(take.name, take.ownerName);
    return { driver, server, address: { ...address, name: 'neondb' } };
  }

  const change = (address: Parameters<typeof updateDatabaseOf>[2], to: Parameters<typeof updateDatabaseOf>[3]) =>
    command(made, (scope) => updateDatabaseOf(scope, made.caller, address, to));
  const addRole = (address: Parameters<typeof resetRolePassword>[2], name: string) =>
    command(made, (scope) => createRole(scope, made.caller, { ...address, name, noLogin: false }));

  const databasesOf = ({ branchId }: { branchId: string }) => made.core.database.sql`
    select name, owner_name, applied_name, pending from databases where branch_id = ${branchId} order by name`;
  const asIs = (name: string) => ({ name, ownerName: 'neondb_owner', appliedName: name, pending: false });

  test('is taken back when the new name is in use there, and later changes work', async () => {
    const { driver, server, address } = await projectWithTakenName();
    const renamed = await change(address, { name: take.name });
    // Queued before that is known.
    const created = await command(made, (scope) =>
      createDatabase(scope, made.caller, { ...address, name: 'next', ownerName: take.ownerName }),
    );
    const dropped = await command(made, (scope) => deleteRole(scope, made.caller, { ...address, name: 'leaving' }));
    await drain(made.core, driver);
    const words = 'database already exists; database_name:"taken"';
    expect(await statusOf(renamed.operations[0]?.id)).toMatchObject({ status: 'error', error: words });
    expect(await statusOf(created.operations[0]?.id)).toMatchObject({ status: 'finished', error: null });
    expect(await databasesOf(address)).toEqual([asIs('neondb'), asIs('next'), asIs('taken')]);
    expect(await statusOf(dropped.operations[0]?.id)).toMatchObject({ status: 'finished', error: null });
    expect([...server.roles.keys()]).not.toContain('leaving');
    const again = await change(address, { name: 'free' });
    await drain(made.core, driver);
    expect(await statusOf(again.operations[0]?.id)).toMatchObject({ status: 'finished', error: null });
    expect(await databasesOf(address)).toEqual([asIs('free'), asIs('next'), asIs('taken')]);
  });

  test('is left to the operation of a later change of the same database', async () => {
    const { driver, address } = await projectWithTakenName();
    await change(address, { name: take.name });
    const second = await change({ ...address, name: take.name }, { name: 'free' });
    await drain(made.core, driver);
    expect(await statusOf(second.operations[0]?.id)).toMatchObject({ status: 'finished', error: null });
    expect(await databasesOf(address)).toEqual([asIs('free'), asIs('taken')]);
  });

  test('is taken back when its new owner was dropped there, and a database for that owner goes', async () => {
    const { driver, server, address } = await projectWithTakenName();
    server.roles.delete('leaving');
    const given = await change(address, { ownerName: 'leaving' });
    const created = await command(made, (scope) =>
      createDatabase(scope, made.caller, { ...address, name: 'orphan', ownerName: 'leaving' }),
    );
    // Somebody may make the role again, so both are tried until their time is up.
    await made.core.database.sql`update operations set deadline_at = now() where finished_at is null`;
    await drain(made.core, driver);
    for (const { operations } of [given, created]) {
      expect(await statusOf(operations[0]?.id)).toMatchObject({ status: 'error' });
    }
    expect(await databasesOf(address)).toEqual([asIs('neondb'), asIs('taken')]);
    const later = await addRole(address, 'later');
    await drain(made.core, driver);
    expect(await statusOf(later.operations[0]?.id)).toMatchObject({ status: 'finished', error: null });
  });
});

describe('a change that fails again and again', () => {
  test('is overtaken by a restart, and carried out by its start', async () => {
    const driver = new FakeDriver();
    const { project, address, endpointId } = await awakeProject(driver);
    driver.failNext('configure', busy, 2);
    const change = await reset(address);
    await runnerOf(driver).runNext();
    expect(await statusOf(change.operations[0]?.id)).toMatchObject({ status: 'failed', failuresCount: 1 });
    await command(made, (scope) => restartEndpoint(scope, made.caller, project.id, endpointId));
    // Without any retry of its own: what is queued behind it runs.
    for (let turn = 0; turn < 3; turn++) expect(await runnerOf(driver).runNext()).toBe(true);
    expect(await statusOf(change.operations[0]?.id)).toMatchObject({ status: 'error', error: busy.message });
    const [role] = await made.core.database.sql`
      select pending from roles where branch_id = ${address.branchId} and name = ${address.name}`;
    expect(role).toEqual({ pending: false });
  });

  test('keeps its time while nobody waits for it, and a move keeps its own', async () => {
    const driver = new FakeDriver();
    const { project, address, endpointId } = await awakeProject(driver);
    const { branch } = await command(made, (scope) =>
      createBranch(scope, made.caller, project.id, { annotation: {}, endpoints: [], parentId: address.branchId }),
    );
    await drain(made.core, driver);
    const { operations } = await command(made, (scope) =>
      updateEndpointOf(scope, made.caller, { projectId: project.id, endpointId }, { branchId: branch.id }),
    );
    const [move] = operations;
    expect((move?.deadlineAt.getTime() ?? 0) - (move?.createdAt.getTime() ?? 0)).toBeGreaterThan(240_000);
    const [stored] = await made.core.database.sql`select deadline_at from operations where id = ${move?.id ?? ''}`;
    expect(stored?.deadlineAt).toEqual(move?.deadlineAt);
    await drain(made.core, driver);
  });
});

test('a reset ends the sessions of its role, and a new role has none to end', async () => {
  const driver = new FakeDriver();
  const { address } = await awakeProject(driver);
  const asked: unknown[] = [];
  const configure = driver.configure.bind(driver);
  driver.configure = async (ref, change) => {
    asked.push(...change.roles.map(({ name, endSessions = false }) => ({ name, endSessions })));
    const catalog = await configure(ref, change);
    return { ...catalog, madeWay: { sessions: 2, prepared: ['one'] } };
  };
  await command(made, (scope) => createRole(scope, made.caller, { ...address, name: 'fresh', noLogin: false }));
  const { operations } = await reset(address);
  await drain(made.core, driver);
  expect(asked).toContainEqual({ name: 'neondb_owner', endSessions: true });
  expect(asked).toContainEqual({ name: 'fresh', endSessions: false });
  expect(await statusOf(operations[0]?.id)).toMatchObject({
    status: 'finished',
    error: 'ended what was in the way of the change: 2 sessions and the prepared transaction "one"',
  });
});
