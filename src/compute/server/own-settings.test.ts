/** Every kind of session that Catnap opens in a tenant's database, against settings that the tenant has attached. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { Bench, noChange, ownerAndDatabase, verifier } from '../contract/bench.ts';
import type { ComputeObservation } from '../interface/driver.ts';
import { isFinalState } from '../interface/refusal.ts';
import { dumpSchema } from '../schema-dump/dump.ts';
import { asOptions } from './own-settings.ts';

/** Each of them alone breaks a session that does not defend itself, or changes what it does. */
const hostile = [
  `role = 'pg_database_owner'`,
  `session_authorization = 'owner'`,
  `local_preload_libraries = 'nowhere'`,
  `search_path = 'theirs'`,
  `default_transaction_read_only = on`,
  `default_transaction_isolation = 'serializable'`,
  `statement_timeout = 1`,
  `transaction_timeout = 1`,
  `lock_timeout = 1`,
  `idle_in_transaction_session_timeout = 1`,
  `standard_conforming_strings = off`,
  `quote_all_identifiers = on`,
  `default_table_access_method = 'heap2'`,
  `datestyle = 'German'`,
];

describe('settings that a tenant attaches to a database', () => {
  let subject: LocalSubject;
  let b: Bench;
  let running: ComputeObservation;
  const admin = () => ({ username: 'catnap_admin', password: b.adminSecret, database: 'catnap' });

  beforeAll(async () => {
    subject = await makeLocalSubject(17);
    b = new Bench(subject);
    running = await b.started();
    const leaver = { name: 'leaver', verifier };
    await b.driver.configure(b.ref, { ...ownerAndDatabase, roles: [...ownerAndDatabase.roles, leaver] });
    await b.query(running, 'CREATE TABLE t AS SELECT 1 AS n; GRANT CREATE ON SCHEMA public TO leaver');
    await b.query(running, 'CREATE TABLE theirs (n int)', { username: 'leaver' });
  });
  afterEach(() => b.query(running, 'ALTER DATABASE app RESET ALL', admin()));
  afterAll(async () => {
    await b.driver.removeProject(b.ref);
    await subject.close();
  });
  const attach = () => b.query(running, hostile.map((line) => `ALTER DATABASE app SET ${line}`).join('; '));
  const dump = () => {
    if (running.address === null) throw new Error('it does not run');
    const { adminSecret } = b;
    return dumpSchema({ address: running.address, adminSecret, database: 'app', pgVersion: 17, programPath: '' });
  };

  test('reach neither a dump of its schema, nor the copying of users', async () => {
    const before = await dump();
    await attach();
    expect(await dump()).toBe(before);
    const table = { database: 'app', readerName: 'owner', providerProjectId: randomUUID() };
    const user = { id: 'a', display_name: 'Ann', primary_email: 'a@x.test', signed_up_at_millis: 1 };
    const change = { seq: 1, userId: 'a', kind: 'created', user, occurredAt: new Date(1) } as const;
    const changesAfter = async (position: number) => (position < 1 ? [change] : []);
    expect(await b.driver.syncUsers(b.ref, table, changesAfter)).toBe(1);
    expect(await b.driver.dropUsers(b.ref, 'app')).toBe(true);
  });

  test('do not reach the session that hands over what a dropped role owned', async () => {
    await attach();
    const { roles } = await b.driver.configure(b.ref, { ...noChange, dropRoles: ['leaver'] });
    expect(roles.map(({ name }) => name)).toEqual(['owner']);
  });

  test('do not reach the session that leaves nothing in a branch but its schema', async () => {
    await attach();
    const child = { branchId: newBranchId(), endpointId: newEndpointId() };
    const { branchId } = child;
    const { adminSecret } = b;
    await b.copyBranch(branchId);
    await b.driver.emptyBranch({ ...b.ref, branchId, pgVersion: 17, adminSecret });
    const served = await b.start(1, child);
    await b.query(served, 'ALTER DATABASE app RESET ALL', admin());
    expect(await b.query(served, 'SELECT n FROM t')).toEqual([]);
    await b.driver.removeCompute({ ...b.ref, ...child });
  });
});

test('settings become options with their blanks and backslashes kept', () => {
  expect(asOptions({ a: 'read committed', b: 'x\\y' })).toBe('-c a=read\\ committed -c b=x\\\\y');
});

test('a refusal is final unless it may be a race or a shortage', () => {
  expect(['42501', '22023', '0A000', '42601'].map(isFinalState)).toEqual([true, true, true, true]);
  expect(['42710', '42704', '55P03', '53300', '57P01', '40001', '23505'].some(isFinalState)).toBe(false);
});
