/** What the owner of a project can and cannot do, tried on real servers. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { newBranchId, newEndpointId, newSecret } from '../../lib/ids.ts';
import { runProgram } from '../../lib/run-program.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { limits, tempDiskBytes, untilRunning } from '../contract/bench.ts';
import type { ComputeObservation, ComputeRef } from '../interface/driver.ts';
import type { Login } from '../server/admin-session.ts';
import { dataDirectory, socketFile } from './host/home/layout.ts';
import { readProcessUid } from './host/postgres/process-info.ts';

const asRoot = process.getuid?.() === 0;

/** Statements that must fail, with the server's message. */
const refused: readonly (readonly [text: string, reason: RegExp])[] = [
  // more rights
  ['ALTER ROLE owner SUPERUSER', /permission denied/],
  ['ALTER ROLE owner REPLICATION', /permission denied/],
  ['ALTER ROLE owner BYPASSRLS', /permission denied/],
  ['CREATE ROLE s SUPERUSER', /permission denied/],
  ['CREATE ROLE s REPLICATION', /permission denied/],
  ['CREATE ROLE s BYPASSRLS', /permission denied/],
  ['SET ROLE catnap_admin', /permission denied/],
  ['SET SESSION AUTHORIZATION catnap_admin', /permission denied/],
  ['GRANT catnap_admin TO owner', /permission denied/],
  ['GRANT pg_execute_server_program TO owner', /permission denied/],
  ['GRANT pg_read_server_files TO owner', /permission denied/],
  ['GRANT pg_write_server_files TO owner', /permission denied/],
  ['GRANT pg_read_all_data TO owner', /permission denied/],
  ["ALTER ROLE catnap_admin PASSWORD 'x'", /permission denied/],
  ['DROP ROLE catnap_admin', /permission denied/],
  ['SELECT rolpassword FROM pg_authid', /permission denied/],
  ['SELECT passwd FROM pg_shadow', /permission denied/],
  // server files and programs
  ["SELECT pg_read_file('PG_VERSION')", /permission denied/],
  ["SELECT pg_read_binary_file('global/pg_control')", /permission denied/],
  ["SELECT pg_ls_dir('.')", /permission denied/],
  ["SELECT pg_stat_file('PG_VERSION')", /permission denied/],
  ["COPY t FROM '/etc/passwd'", /permission denied/],
  ["COPY t TO '/tmp/catnap-boundary'", /permission denied/],
  ["COPY t TO PROGRAM 'id'", /permission denied/],
  ["COPY t FROM PROGRAM 'id'", /permission denied/],
  ["SELECT lo_import('/etc/passwd')", /permission denied/],
  ["SELECT lo_export(1, '/tmp/catnap-boundary')", /permission denied/],
  ["CREATE TABLESPACE s LOCATION '/tmp'", /permission denied/],
  ['SHOW data_directory', /permission denied/],
  ['SHOW hba_file', /permission denied/],
  // code that runs outside the rules
  ["CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'getpid'", /permission denied/],
  ["CREATE FUNCTION f() RETURNS int LANGUAGE internal AS 'int4in'", /permission denied/],
  ["LOAD '/usr/lib/libc.so'", /permission denied|not allowed/],
  ["SET session_preload_libraries = 'x'", /permission denied/],
  ['CREATE EXTENSION plpython3u', /not available/],
  ['CREATE EXTENSION plperl', /not available/],
  ['CREATE EXTENSION pltcl', /not available/],
  ['CREATE EXTENSION file_fdw', /not available/],
  ['CREATE EXTENSION dblink', /not available/],
  ['CREATE EXTENSION pageinspect', /not available/],
  ['CREATE EXTENSION pg_surgery', /not available/],
  ['CREATE EVENT TRIGGER e ON login EXECUTE FUNCTION f()', /permission denied/],
  // the server and its neighbours
  ["ALTER SYSTEM SET work_mem = '1GB'", /not allowed|permission denied/],
  ['CHECKPOINT', /permission denied/],
  ["SELECT pg_create_physical_replication_slot('s')", /permission denied/],
  ["CREATE SUBSCRIPTION s CONNECTION 'host=/tmp' PUBLICATION p", /permission denied/],
  ['CREATE DATABASE s TEMPLATE catnap', /permission denied/],
  ['ALTER DATABASE catnap OWNER TO owner', /must be owner/],
  ['DROP DATABASE catnap', /must be owner/],
  ['ALTER DATABASE template1 IS_TEMPLATE false', /must be owner/],
  ['SELECT pg_promote()', /permission denied/],
  ['SELECT pg_switch_wal()', /permission denied/],
];

const allowed: readonly string[] = [
  'CREATE TABLE kept (id int PRIMARY KEY, body jsonb)',
  'CREATE SCHEMA mine',
  "CREATE FUNCTION mine.f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
  'CREATE DATABASE another',
  'DROP DATABASE another WITH (FORCE)',
  "CREATE ROLE helper LOGIN PASSWORD 'pw'",
  'GRANT USAGE ON SCHEMA mine TO helper',
  'GRANT helper TO owner',
  'DROP OWNED BY helper',
  'DROP ROLE helper',
  "ALTER ROLE owner SET work_mem = '8MB'",
  "ALTER DATABASE app SET statement_timeout = '1h'",
  'CREATE PUBLICATION p FOR TABLE kept',
  'ANALYZE kept',
  'CREATE EXTENSION postgres_fdw',
  "CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'example.invalid', dbname 'x')",
  "CREATE USER MAPPING FOR owner SERVER elsewhere OPTIONS (user 'a', password 'b')",
  'DROP EXTENSION postgres_fdw CASCADE',
];

describe.each([17, 18])('the boundary of a tenant on Postgres %i', (pgVersion) => {
  let subject: LocalSubject;
  let ref: ComputeRef;
  let running: ComputeObservation;
  const adminSecret = newSecret();
  const owner: Login = { username: 'owner', password: 'pw', database: 'app' };

  const ask = (text: string, login: Partial<Login> = {}) => {
    if (!running.address) throw new Error('not running');
    return subject.query(running.address, { ...owner, ...login }, text);
  };

  beforeAll(async () => {
    subject = await makeLocalSubject(pgVersion);
    ref = { ...subject.newTenant(), branchId: newBranchId(), endpointId: newEndpointId() };
    const { driver } = subject;
    await driver.createBranch({ ...ref, pgVersion, source: { kind: 'template' } });
    await driver.start({ ...ref, generation: 1, pgVersion, settings: {}, tempDiskBytes, limits, adminSecret });
    running = await untilRunning(driver, ref);
    await driver.configure(ref, {
      roles: [{ name: 'owner', verifier: buildVerifier('pw') }],
      databases: [{ name: 'app', renameFrom: null, ownerName: 'owner' }],
      dropDatabases: [],
      dropRoles: [],
    });
    await ask('CREATE TABLE t (line text)');
  });

  afterAll(async () => {
    await subject.driver.removeProject(ref);
    await subject.close();
  });

  test.each(refused)('refuses %s', async (text, reason) => {
    await expect(ask(text)).rejects.toThrow(reason);
  });

  test.each(allowed)('allows %s', async (text) => {
    await expect(ask(text)).resolves.toEqual([]);
  });

  test('every extension that is shown can be created by the owner', async () => {
    const shown = await ask('SELECT name FROM pg_available_extensions ORDER BY name');
    expect(shown.length).toBeGreaterThan(30);
    for (const { name } of shown) await ask(`CREATE EXTENSION IF NOT EXISTS "${name}" CASCADE`);
  });

  test('file options of postgres_fdw are refused', async () => {
    await ask('CREATE EXTENSION IF NOT EXISTS postgres_fdw');
    const server = "CREATE SERVER f FOREIGN DATA WRAPPER postgres_fdw OPTIONS (sslkeylogfile '/tmp/catnap-boundary')";
    await expect(ask(server)).rejects.toThrow(/invalid option/);
    await ask("CREATE SERVER g FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'example.invalid')");
    const trusting = "CREATE USER MAPPING FOR owner SERVER g OPTIONS (password_required 'false')";
    await expect(ask(trusting)).rejects.toThrow(/password_required|superuser/);
  });

  test.runIf(asRoot)('no port of this machine is reached by SQL', async () => {
    let reached = 0;
    const listener = createServer((socket) => {
      reached += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    try {
      await ask('CREATE EXTENSION IF NOT EXISTS postgres_fdw');
      await ask(`CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '${port}')`);
      await ask(`CREATE USER MAPPING FOR owner SERVER here OPTIONS (user 'x', password 'x')`);
      await expect(ask('IMPORT FOREIGN SCHEMA public FROM SERVER here INTO public')).rejects.toThrow(
        /could not connect/,
      );
      expect(reached).toBe(0);
    } finally {
      listener.close();
    }
  });

  test('nobody but Catnap enters its database, and Catnap enters no other', async () => {
    await expect(ask('SELECT 1', { database: 'catnap' })).rejects.toThrow(/reject/);
    const admin = { username: 'catnap_admin', password: adminSecret };
    await expect(ask('SELECT 1', { ...admin, database: 'app' })).rejects.toThrow(/reject/);
    expect(await ask('SELECT 1 AS one', { ...admin, database: 'catnap' })).toEqual([{ one: 1 }]);
  });

  test('template1 is open as on any server, and nothing can be created in it', async () => {
    const inTemplate = { database: 'template1' };
    expect(await ask('SELECT current_database()::text AS name', inTemplate)).toEqual([{ name: 'template1' }]);
    for (const what of ['TABLE public.planted (a int)', 'TEMPORARY TABLE planted (a int)', 'SCHEMA planted']) {
      await expect(ask(`CREATE ${what}`, inTemplate)).rejects.toThrow(/permission denied/);
    }
  });

  test.runIf(asRoot)('the server runs under the uid of its project', async () => {
    expect(await readProcessUid(running.pid ?? 0)).toBe(ref.tenantUid);
    const status = await readFile(`/proc/${running.pid}/status`, 'utf8');
    expect(/^Groups:\s*$/m.test(status)).toBe(true);
    expect(/^CapEff:\s*0+$/m.test(status)).toBe(true);
  });

  test.runIf(asRoot)('no other tenant reaches socket, data or records', async () => {
    const { layout, config } = subject;
    const branch = layout.branch(ref.projectId, ref.branchId);
    const endpoint = layout.endpoint(ref.projectId, ref.endpointId);
    const sockets = layout.socketDirectory(ref.endpointId);
    const stranger = (ref.tenantUid ?? 0) + 1;
    const can = (uid: number | null, ...command: [string, ...string[]]) =>
      runProgram(command[0], command.slice(1), { uid, gid: uid }).then(
        () => true,
        () => false,
      );
    expect(await can(stranger, 'ls', sockets)).toBe(false);
    expect(await can(stranger, 'ls', dataDirectory(branch))).toBe(false);
    expect(await can(stranger, 'ls', '-d', dataDirectory(branch))).toBe(false);
    expect(await can(stranger, 'cat', `${endpoint}/postgresql.conf`)).toBe(false);
    expect(await can(stranger, 'ls', `${endpoint}/temp`)).toBe(false);
    // The tenant itself sees its data, and none of what Catnap keeps beside it.
    expect(await can(ref.tenantUid, 'ls', dataDirectory(branch))).toBe(true);
    expect(await can(ref.tenantUid, 'cat', `${endpoint}/state.json`)).toBe(false);
    expect(await can(ref.tenantUid, 'cat', `${endpoint}/server.log`)).toBe(false);
    expect(await can(ref.tenantUid, 'cat', `${endpoint}/disk/image`)).toBe(false);
    expect(await can(ref.tenantUid, 'cat', `${branch}/branch.json`)).toBe(false);
    expect(await can(ref.tenantUid, 'touch', `${endpoint}/postgresql.conf`)).toBe(false);
    expect(await can(ref.tenantUid, 'ls', layout.templates)).toBe(false);
    // Catnap's processes reach the socket and nothing else.
    const service = config.uids?.service ?? null;
    expect(await can(service, 'test', '-w', socketFile(sockets))).toBe(true);
    expect(await can(service, 'ls', dataDirectory(branch))).toBe(false);
    expect(await can(service, 'touch', `${sockets}/x`)).toBe(false);
  });
});
