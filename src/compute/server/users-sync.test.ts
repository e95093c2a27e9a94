/** The copying of users against hostile tenants. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { Bench, ownerAndDatabase, password } from '../contract/bench.ts';
import type { ComputeObservation } from '../interface/driver.ts';

const alice = { name: 'alice', verifier: buildVerifier(password) };

// Postgres 17 is covered by the driver contract and the end-to-end tests.
describe.each([18])('the table of users on Postgres %i', (pgVersion) => {
  let subject: LocalSubject;
  let b: Bench;
  let running: ComputeObservation;
  beforeAll(async () => {
    subject = await makeLocalSubject(pgVersion);
    b = new Bench(subject);
    running = await b.started();
    await b.driver.configure(b.ref, { ...ownerAndDatabase, roles: [...ownerAndDatabase.roles, alice] });
  });
  afterAll(async () => {
    await b.driver.removeProject(b.ref);
    await subject.close();
  });

  const table = { database: 'app', readerName: 'owner', providerProjectId: randomUUID() };
  let lastSeq = 0;
  /** One more user. */
  function copyOne() {
    const user = { id: randomUUID(), display_name: 'Ann', primary_email: 'a@x.test', signed_up_at_millis: 1 };
    const change = { seq: ++lastSeq, userId: user.id, kind: 'created' as const, user, occurredAt: new Date() };
    return b.driver.syncUsers(b.ref, table, async (position) => (position < change.seq ? [change] : []));
  }
  const query = (text: string, login = {}) => b.query(running, text, login);
  async function onInsert(body: string, login = {}): Promise<void> {
    await query(
      `CREATE OR REPLACE FUNCTION public.spy() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN ${body} RETURN NEW; END $f$;
       CREATE OR REPLACE TRIGGER spy AFTER INSERT ON neon_auth.users_sync FOR EACH ROW EXECUTE FUNCTION public.spy()`,
      login,
    );
  }

  test('has the columns that an application expects, and its owner', async () => {
    expect(await copyOne()).toBe(1);
    const columns = await query(
      `select column_name as name, data_type as type, is_generated = 'ALWAYS' as generated
       from information_schema.columns where table_schema = 'neon_auth' and table_name = 'users_sync'
       order by ordinal_position`,
    );
    const time = 'timestamp with time zone';
    expect(columns?.map(({ name, type, generated }) => [name, type, generated])).toEqual([
      ['raw_json', 'jsonb', false],
      ['id', 'text', true],
      ['name', 'text', true],
      ['email', 'text', true],
      ['created_at', time, true],
      ['updated_at', time, false],
      ['deleted_at', time, false],
    ]);
    const [made] = (await query(`select tableowner as owner from pg_tables where tablename = 'users_sync'`)) ?? [];
    expect(made?.owner).toBe('owner');
  });

  test.each([
    ['a superuser', 'CREATE ROLE evil SUPERUSER', /permission denied|Only roles with/],
    ['Catnap’s login', `ALTER ROLE catnap_admin PASSWORD 'x'`, /permission denied|must be superuser/],
    ['another session', 'SET SESSION AUTHORIZATION catnap_admin', /permission denied/],
    ['Catnap’s rights', 'SET ROLE catnap_admin', /permission denied/],
    ['files of the server', `PERFORM pg_read_file('/etc/passwd')`, /permission denied/],
    ['programs', `COPY (SELECT 1) TO PROGRAM 'id'`, /permission denied/],
    ['passwords of roles', 'PERFORM rolpassword FROM pg_authid', /permission denied/],
    ['membership of the writer', `RESET ROLE; EXECUTE format('GRANT %I TO owner', session_user)`, /permission denied/],
  ])('gives a trigger that wants %s nothing, and says what it was refused', async (_what, wish, refusal) => {
    await onInsert(`${wish};`);
    await expect(copyOne()).rejects.toThrow(refusal);
    await query('DROP TRIGGER spy ON neon_auth.users_sync');
    expect(await copyOne()).toBe(lastSeq);
  });

  test('is written although its owner lets nobody in, and not while there is no room', async () => {
    await query('REVOKE CONNECT, TEMPORARY ON DATABASE app FROM PUBLIC');
    expect(await copyOne()).toBe(lastSeq);
    await query('ALTER DATABASE app CONNECTION LIMIT 0');
    await expect(copyOne()).rejects.toThrow(/too many connections/);
    const admin = { database: 'postgres' };
    await query('ALTER DATABASE app CONNECTION LIMIT -1', admin);
    expect(await copyOne()).toBe(lastSeq);
  });

  test('of one role is no way to the rights of the owner of the database', async () => {
    await query(
      'DROP SCHEMA neon_auth CASCADE; GRANT CREATE, CONNECT ON DATABASE app TO alice; GRANT CREATE ON SCHEMA public TO alice',
    );
    await query('DROP FUNCTION IF EXISTS public.spy');
    await query('CREATE SCHEMA neon_auth', { username: 'alice' });
    expect(await copyOne()).toBe(lastSeq);
    await onInsert('SET ROLE owner;', { username: 'alice' });
    await expect(copyOne()).rejects.toThrow(/permission denied to set role "owner"/);
    await query('DROP SCHEMA neon_auth CASCADE', { username: 'alice' });
    expect(await copyOne()).toBe(lastSeq);
  });

  test('whose position its owner puts back again and again is given up', async () => {
    await query(
      `CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.position := 0; RETURN NEW; END';
       CREATE TRIGGER stay BEFORE UPDATE ON neon_auth.users_sync_position FOR EACH ROW EXECUTE FUNCTION stay()`,
    );
    await expect(copyOne()).rejects.toThrow(/does not stay/);
  });
});
