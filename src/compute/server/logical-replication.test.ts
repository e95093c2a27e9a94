/** Who may replicate and subscribe, on real servers. */
import { dirname } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { Bench, noChange, ownerAndDatabase, password } from '../contract/bench.ts';
import type { ComputeObservation } from '../interface/driver.ts';
import { adminLogin, withSession } from './admin-session.ts';
import { grantReplication } from './logical-replication.ts';

describe.each([17, 18])('logical replication on Postgres %i', (pgVersion) => {
  let subject: LocalSubject;
  let bench: Bench;
  let running: ComputeObservation;

  const ask = (text: string) => bench.query(running, text);
  const rights = () =>
    ask(`SELECT rolname AS name, rolreplication AS replicates, pg_has_role(oid, 'pg_create_subscription', 'USAGE') AS subscribes
      FROM pg_roles WHERE rolname IN ('owner', 'by_sql', 'deputy') ORDER BY rolname`);
  const none = { replicates: false, subscribes: false };

  beforeAll(async () => {
    subject = await makeLocalSubject(pgVersion);
    bench = new Bench(subject);
    await bench.createBranch();
    running = await bench.start(1, { settings: { wal_level: 'logical', max_logical_replication_workers: '4' } });
    await bench.driver.configure(bench.ref, ownerAndDatabase);
    await ask('CREATE ROLE by_sql LOGIN');
    await ask('CREATE ROLE deputy CREATEDB CREATEROLE');
  });
  afterAll(async () => {
    await bench.driver.removeProject(bench.ref);
    await subject.close();
  });

  test('nobody may, until the project says so', async () => {
    expect(await rights()).toMatchObject([none, none, none]);
    await expect(ask(`SELECT pg_create_logical_replication_slot('s', 'pgoutput')`)).rejects.toThrow(
      /permission denied/,
    );
  });

  test('a server that shares its uid with Catnap gives no subscriptions on a version that logs keys to files', async () => {
    if (running.address === null) throw new Error('it does not run');
    await withSession(running.address, adminLogin(bench.adminSecret), (sql) => grantReplication(sql, false));
    expect(await rights()).toMatchObject([none, none, { replicates: true, subscribes: pgVersion < 18 }]);
  });

  test('then the roles of the API may, and those that they made by SQL may not', async () => {
    const hasOwnUid = bench.ref.tenantUid !== null;
    for (let round = 0; round < 2; round++) await bench.driver.configure(bench.ref, { ...noChange, replication: true });
    const owner = { name: 'owner', replicates: true, subscribes: hasOwnUid || pgVersion < 18 };
    expect(await rights()).toMatchObject([none, none, owner]);
  });

  test('the owner makes slots, which are observed', async () => {
    await ask(`SELECT pg_create_logical_replication_slot('kept', 'pgoutput')`);
    await ask(`SELECT pg_create_logical_replication_slot('passing', 'pgoutput', true)`);
    await ask(`SELECT pg_create_physical_replication_slot('no_logical_one')`);
    expect(await bench.driver.observeSlots(bench.ref)).toEqual([
      {
        name: 'kept',
        plugin: 'pgoutput',
        database: 'app',
        active: false,
        walStatus: 'reserved',
        retainedBytes: expect.any(Number),
      },
    ]);
  });

  test('the server itself refuses physical replication, and takes a logical one', async () => {
    const path = running.address?.kind === 'unix' ? running.address.path : '';
    const connect = async (replication: string) => {
      const login = { host: dirname(path), user: 'owner', password, database: 'app', replication };
      const client = new pg.Client(login);
      client.on('error', () => {});
      await client.connect();
      return client;
    };
    await expect(connect('true')).rejects.toThrow(/pg_hba.conf rejects replication connection/);
    const client = await connect('database');
    expect((await client.query('IDENTIFY_SYSTEM')).rows).toMatchObject([{ dbname: 'app' }]);
    await client.end();
  });

  test('an owner may pass REPLICATION on by SQL, and Catnap leaves that as it is', async () => {
    await ask('ALTER ROLE by_sql REPLICATION');
    await bench.driver.configure(bench.ref, { ...noChange, replication: true });
    expect(await rights()).toMatchObject([{ replicates: true, subscribes: false }, none, { replicates: true }]);
    await ask('ALTER ROLE by_sql NOREPLICATION');
  });

  test('a password that is reset leaves the rights as they are', async () => {
    await bench.driver.configure(bench.ref, { ...ownerAndDatabase, databases: [], replication: true });
    expect(await rights()).toMatchObject([none, none, { replicates: true }]);
  });

  test('a server that does not run reports no slots', async () => {
    await bench.driver.suspend(bench.ref, 1);
    expect(await bench.driver.observeSlots(bench.ref)).toBeNull();
  });
});
