import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { createEndpoint } from './endpoint.ts';
import { isOutgrown, withPrimarySettings } from './replica.ts';

describe('settings of a replica', () => {
  test('five of them are at least the primary’s, the others its own', () => {
    const own = { max_connections: '225', work_mem: '8MB', max_worker_processes: '12' };
    const primary = { max_connections: '450', work_mem: '4MB', max_worker_processes: '10' };
    expect(withPrimarySettings(own, primary)).toEqual({ ...own, max_connections: '450' });
  });

  test('what is not said counts as Postgres takes it', () => {
    expect(withPrimarySettings({}, { max_locks_per_transaction: '32' })).toEqual({});
    expect(withPrimarySettings({}, { max_locks_per_transaction: '128' })).toEqual({ max_locks_per_transaction: '128' });
    expect(withPrimarySettings({ max_connections: '112' }, {})).toEqual({ max_connections: '112' });
  });

  test('a primary that has grown is noticed', () => {
    expect(isOutgrown({ max_connections: '225' }, { max_connections: '225', work_mem: '1GB' })).toBe(false);
    expect(isOutgrown({ max_connections: '225' }, { max_connections: '226' })).toBe(true);
    expect(isOutgrown({}, { max_prepared_transactions: '1' })).toBe(true);
  });
});

describe('who may have a replica', () => {
  let made: TestCore;
  beforeAll(async () => {
    made = await makeCore();
  });
  afterAll(() => made.close());

  test('three for each project on the plan free, any number on others', async () => {
    const { sql } = made.core.database;
    const { project, branch } = await makeProject(made);
    const add = () =>
      command(made, (scope) =>
        createEndpoint(scope, made.caller, project.id, { type: 'read_only', branchId: branch.id }),
      );
    await sql`update organizations set plan = 'free' where id = ${project.organizationId}`;
    for (let n = 0; n < 3; n++) expect((await add()).endpoint.type).toBe('read_only');
    await expect(add()).rejects.toThrow(/limit exceeded on the plan "free"; limit:"?3/);
    await sql`update organizations set plan = 'launch' where id = ${project.organizationId}`;
    expect((await add()).operations.map(({ action }) => action)).toEqual(['start_compute']);
  });
});
