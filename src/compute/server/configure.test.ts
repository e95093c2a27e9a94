/** The SQL of configure on a real server, where the contract is not enough: the awkward states a tenant can make. */
import { readFile } from 'node:fs/promises';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId, newSecret } from '../../lib/ids.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { limits, noChange, tempDiskBytes, untilRunning } from '../contract/bench.ts';
import type { CatalogChange, ComputeRef } from '../interface/driver.ts';
import type { Login } from './admin-session.ts';

const verifier = buildVerifier('pw');
const owner: Login = { username: 'owner', password: 'pw', database: 'app' };

describe('configure', () => {
  let subject: LocalSubject;
  let ref: ComputeRef;
  let path: string;
  const adminSecret = newSecret();
  const open: postgres.Sql[] = [];

  const configure = (change: Partial<CatalogChange>) => subject.driver.configure(ref, { ...noChange, ...change });
  const ask = (text: string, login: Partial<Login> = {}) =>
    subject.query({ kind: 'unix', path }, { ...owner, ...login }, text);
  const asAdmin = (text: string) => ask(text, { username: 'catnap_admin', password: adminSecret, database: 'catnap' });
  /** A client that stays connected. */
  const stay = async (login: Partial<Login> = {}) => {
    const sql = postgres({ path, ...owner, ...login, max: 1, onnotice: () => undefined });
    open.push(sql);
    await sql`SELECT 1`;
    return sql;
  };
  /** A client that begins a transaction and leaves it open. */
  const leaveOpen = async (text: string, login: Partial<Login> = {}) => {
    const sql = await stay(login);
    await sql.unsafe(`BEGIN; ${text}`);
    return sql;
  };

  /** Its client connects again by itself, if it was ended. */
  const isInTransaction = async (sql: postgres.Sql) => {
    const [row] = await sql`SELECT pg_current_xact_id_if_assigned() IS NOT NULL AS "isOpen"`;
    return row?.isOpen;
  };

  beforeAll(async () => {
    subject = await makeLocalSubject(17);
    ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
    await subject.driver.createBranch({ ...ref, pgVersion: 17, source: { kind: 'template' } });
    const sizes = { tempDiskBytes, limits };
    const settings = { max_prepared_transactions: '5' };
    await subject.driver.start({ ...ref, generation: 1, pgVersion: 17, settings, ...sizes, adminSecret });
    const running = await untilRunning(subject.driver, ref);
    path = running.address?.kind === 'unix' ? running.address.path : '';
    await configure({
      roles: [{ name: 'owner', verifier }],
      databases: [{ name: 'app', renameFrom: null, ownerName: 'owner' }],
    });
  });

  afterAll(async () => {
    await Promise.all(open.map((sql) => sql.end({ timeout: 1 })));
    await subject.driver.removeProject(ref);
    await subject.close();
  });

  test('the first database is the one that every new server has', async () => {
    const names = "SELECT string_agg(datname, ' ' ORDER BY oid) AS names FROM pg_database WHERE datname ~ 'app|spare'";
    expect(await asAdmin(names)).toEqual([{ names: 'app' }]);
    const { databases } = await subject.driver.readCatalog(ref);
    expect(databases).toEqual([{ name: 'app', ownerName: 'owner' }]);
    expect(await asAdmin("SELECT datacl IS NULL AS usual FROM pg_database WHERE datname = 'app'")).toEqual([
      { usual: true },
    ]);
  });

  test('a database with the name of the spare one is the tenant’s, if the tenant made it', async () => {
    await ask('CREATE DATABASE catnap_spare');
    await configure({ databases: [{ name: 'another', renameFrom: null, ownerName: 'owner' }] });
    const { databases } = await subject.driver.readCatalog(ref);
    expect(databases.map(({ name }) => name)).toEqual(['another', 'app', 'catnap_spare']);
    await configure({ dropDatabases: ['another', 'catnap_spare'] });
  });

  test('a dropped role leaves what it owned to the owner of each database', async () => {
    await configure({
      roles: [{ name: 'leaver', verifier }],
      databases: [{ name: 'second', renameFrom: null, ownerName: 'owner' }],
    });
    await ask('GRANT CREATE ON DATABASE app TO leaver; GRANT CREATE ON SCHEMA public TO leaver');
    await ask('GRANT CREATE ON SCHEMA public TO leaver', { database: 'second' });
    const leaver = { username: 'leaver' };
    await ask('CREATE TABLE left_here AS SELECT 1 AS n', leaver);
    await ask("CREATE FUNCTION left_too() RETURNS int LANGUAGE sql AS 'SELECT 1'", leaver);
    await ask('CREATE SCHEMA theirs; CREATE TABLE theirs.t (n int); GRANT SELECT ON theirs.t TO owner', leaver);
    await ask('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO owner', leaver);
    await ask('CREATE ROLE child; GRANT child TO owner', leaver);
    await ask('CREATE TABLE left_there (n int)', { ...leaver, database: 'second' });
    await stay(leaver);

    const after = await configure({ dropRoles: ['leaver'] });
    expect(after.roles.map(({ name }) => name)).toEqual(['child', 'owner']);
    expect(await ask('SELECT n FROM left_here')).toEqual([{ n: 1 }]);
    const owners = await ask("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('public', 'theirs')");
    expect(owners).toEqual([{ tableowner: 'owner' }]);
    await ask('DROP TABLE left_there', { database: 'second' });
    expect(await asAdmin("SELECT rolname FROM pg_roles WHERE rolname ~ 'janitor'")).toEqual([]);
    await configure({ dropDatabases: ['second'], dropRoles: ['child'] });
  });

  test('a role that was changed is set right again', async () => {
    await ask("ALTER ROLE owner PASSWORD 'changed'");
    await asAdmin('ALTER ROLE owner NOCREATEDB');
    await configure({ roles: [{ name: 'owner', verifier }] });
    expect(await ask('SELECT rolcreatedb FROM pg_roles WHERE rolname = current_user')).toEqual([{ rolcreatedb: true }]);
  });

  test('verifiers of roles made by SQL are reported, other passwords are not', async () => {
    await ask("CREATE ROLE made LOGIN PASSWORD 'x'; CREATE ROLE closed PASSWORD 'x'; CREATE ROLE bare LOGIN");
    await ask("SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'x'");
    const { roles } = await configure({});
    const shown = new Map(roles.map((role) => [role.name, role.verifier]));
    expect(shown.get('made')).toMatch(/^SCRAM-SHA-256\$/);
    expect([shown.get('closed'), shown.get('bare'), shown.get('old')]).toEqual([null, null, null]);
    await configure({ dropRoles: ['made', 'closed', 'bare', 'old'] });
  });

  test('a database is renamed under its clients', async () => {
    await configure({ databases: [{ name: 'busy', renameFrom: null, ownerName: 'owner' }] });
    await stay({ database: 'busy' });
    const after = await configure({ databases: [{ name: 'calm', renameFrom: 'busy', ownerName: 'owner' }] });
    expect(after.databases.map(({ name }) => name)).toEqual(['app', 'calm']);
    await configure({ databases: [{ name: 'other', renameFrom: null, ownerName: 'owner' }] });
    const onto = configure({ databases: [{ name: 'other', renameFrom: 'calm', ownerName: 'owner' }] });
    await expect(onto).rejects.toThrow(/database already exists/);
    await configure({ dropDatabases: ['calm', 'other'] });
  });

  test('a database is dropped under its clients, also when marked as a template', async () => {
    await configure({ databases: [{ name: 'marked', renameFrom: null, ownerName: 'owner' }] });
    await ask('ALTER DATABASE marked IS_TEMPLATE true');
    await stay({ database: 'marked' });
    const after = await configure({ dropDatabases: ['marked'] });
    expect(after.databases.map(({ name }) => name)).toEqual(['app']);
  });

  test('a reset gets past an open transaction on the same role, and ends the sessions of the role', async () => {
    const thief = await leaveOpen("ALTER ROLE owner PASSWORD 'theirs'");
    const idle = await stay();
    await configure({ roles: [{ name: 'owner', verifier: buildVerifier('new'), endSessions: true }] });
    expect(await ask('SELECT 1 AS one', { password: 'new' })).toEqual([{ one: 1 }]);
    for (const sql of [thief, idle]) await expect(sql`SELECT 1`).rejects.toThrow();
    await configure({ roles: [{ name: 'owner', verifier }] });
  });

  test('whoever else is in the way is ended, and only they', async () => {
    await asAdmin("CREATE ROLE friend LOGIN CREATEROLE PASSWORD 'pw'");
    await asAdmin('GRANT owner TO friend WITH ADMIN OPTION');
    const blocker = await leaveOpen("ALTER ROLE owner PASSWORD 'theirs'", { username: 'friend' });
    const bystander = await leaveOpen('CREATE TABLE not_in_the_way (n int)', { username: 'friend', database: 'app' });
    const { madeWay } = await configure({ roles: [{ name: 'owner', verifier: buildVerifier('new') }] });
    expect(madeWay).toEqual({ sessions: 1, prepared: [] });
    expect(await isInTransaction(blocker)).toBe(false);
    expect(await isInTransaction(bystander)).toBe(true);
    await bystander.unsafe('COMMIT');
    expect((await configure({ roles: [{ name: 'owner', verifier }] })).madeWay).toBeUndefined();
    await ask('DROP TABLE not_in_the_way', { username: 'friend' });
    await configure({ dropRoles: ['friend'] });
  });

  test('a prepared transaction that is in the way is rolled back, and no other', async () => {
    await ask("BEGIN; ALTER ROLE owner PASSWORD 'theirs'; PREPARE TRANSACTION 'in the way'");
    await ask("BEGIN; CREATE TABLE kept (n int); PREPARE TRANSACTION 'kept'");
    const { madeWay } = await configure({
      roles: [{ name: 'owner', verifier: buildVerifier('new'), endSessions: true }],
    });
    expect(madeWay).toEqual({ sessions: 0, prepared: ['in the way'] });
    await ask("COMMIT PREPARED 'kept'", { password: 'new' });
    await configure({ roles: [{ name: 'owner', verifier }] });
    expect(await ask('SELECT n FROM kept; DROP TABLE kept')).toBeDefined();
    expect(await asAdmin("SELECT rolname FROM pg_roles WHERE rolname ~ 'janitor'")).toEqual([]);
  });

  test('a prepared transaction does not keep a database, nor an open one a role', async () => {
    await configure({
      databases: [{ name: 'held', renameFrom: null, ownerName: 'owner' }],
      roles: [{ name: 'leaver', verifier }],
    });
    const prepare = (gid: string, database: string) =>
      ask(`BEGIN; CREATE TABLE "${gid}" (n int); PREPARE TRANSACTION '${gid}'`, { database });
    await prepare('a', 'held');
    const renamed = await configure({ databases: [{ name: 'free', renameFrom: 'held', ownerName: 'owner' }] });
    expect(renamed.madeWay).toEqual({ sessions: 0, prepared: ['a'] });
    await prepare('b', 'free');
    const grant = await leaveOpen('CREATE SCHEMA open; GRANT USAGE ON SCHEMA open TO leaver');
    const dropped = await configure({ dropDatabases: ['free'], dropRoles: ['leaver'] });
    expect(dropped.madeWay).toEqual({ sessions: 1, prepared: ['b'] });
    expect(dropped.roles.map(({ name }) => name)).toEqual(['owner']);
    expect(await isInTransaction(grant)).toBe(false);
  });

  test('reserved and impossible names are refused', async () => {
    for (const name of ['catnap_admin', 'pg_monitor', 'catnap_janitor_0123456789abcdef']) {
      await expect(configure({ roles: [{ name, verifier }] })).rejects.toThrow(/reserved/);
      await expect(configure({ dropRoles: [name] })).rejects.toThrow(/reserved/);
    }
    for (const name of ['catnap', 'postgres', 'template0', 'template1']) {
      const database = { name, renameFrom: null, ownerName: 'owner' };
      await expect(configure({ databases: [database] })).rejects.toThrow(/reserved/);
      await expect(configure({ dropDatabases: [name] })).rejects.toThrow(/reserved/);
      const taken = { name: 'mine', renameFrom: name, ownerName: 'owner' };
      await expect(configure({ databases: [taken] })).rejects.toThrow(/reserved/);
    }
    for (const name of ['', 'x'.repeat(64), 'ä'.repeat(32), '\ud800']) {
      await expect(configure({ roles: [{ name, verifier }] })).rejects.toThrow(/not a name/);
    }
  });

  test('no secret of Catnap’s shows up in the log of the server', async () => {
    const log = await readFile(`${subject.layout.endpoint(ref.projectId, ref.endpointId)}/server.log`, 'utf8');
    expect(log).not.toContain(adminSecret);
    expect(log).not.toMatch(/SCRAM-SHA-256\$/);
  });
});
