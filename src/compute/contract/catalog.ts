/** The part of the contract about data: branches, and what `configure` does inside a server. */
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { CatalogChange } from '../interface/driver.ts';
import { type Bench, noChange, ownerAndDatabase, verifier } from './bench.ts';

export function describeBranches(bench: () => Bench): void {
  test('a branch of the template has a receipt, and a repeated call gives the same', async () => {
    const b = bench();
    const receipt = await b.createBranch();
    expect(receipt.method).toMatch(/^(reflink|copy)$/);
    expect(receipt.durationMs).toBeGreaterThanOrEqual(0);
    expect(await b.createBranch()).toEqual(receipt);
  });

  test('a clone of a sleeping branch carries its roles and databases, and goes its own way', async () => {
    const b = bench();
    const source = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(source, 'CREATE TABLE t AS SELECT 1 AS n');
    await b.driver.suspend(b.ref, 1);
    const branchId = newBranchId();
    const receipt = await b.cloneBranch(branchId);
    expect(receipt.lsn).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/);

    const child = { branchId, endpointId: newEndpointId() };
    const running = await b.start(1, child);
    const catalog = await b.driver.readCatalog({ ...b.ref, ...child });
    expect(catalog).toEqual({
      roles: [{ name: 'owner', verifier }],
      databases: [{ name: 'app', ownerName: 'owner' }],
    });
    if (b.hasSql) expect(await b.query(running, 'SELECT n FROM t')).toEqual([{ n: 1 }]);
    await b.driver.configure({ ...b.ref, ...child }, { ...noChange, dropDatabases: ['app'] });

    await b.start(2);
    expect((await b.driver.readCatalog(b.ref)).databases).toEqual([{ name: 'app', ownerName: 'owner' }]);
  });

  test('a running server tells how large its databases are, a sleeping one does not', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const before = await b.driver.observeSize(b.ref);
    expect(before).toBeGreaterThan(1_000_000);
    if (b.hasSql) {
      await b.query(running, `CREATE TABLE t AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 5000)`);
      expect(await b.driver.observeSize(b.ref)).toBeGreaterThan((before ?? 0) + 5_000_000);
    }
    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.observeSize(b.ref)).toBeNull();
  });

  test('what a session logs can be read, also when it sleeps, and is told from what the server says', async () => {
    const b = bench();
    const running = await b.started();
    if (b.hasSql) {
      await b.driver.configure(b.ref, ownerAndDatabase);
      const forged = '2026-01-01 00:00:00.000 UTC [1] postmaster LOG:  all is lost';
      await b.query(running, `DO $$ BEGIN RAISE LOG E'one\n${forged}'; END $$`);
    }
    await b.driver.suspend(b.ref, 1);
    const { logs } = b.driver.cannot ?? {};
    if (logs !== undefined) return expect(b.driver.readLog(b.ref, 1_000)).rejects.toThrow(logs);
    const entries = await b.driver.readLog(b.ref, 1_000);
    if (!b.hasSql) return expect(entries).toEqual([]);
    const lost = entries.filter(({ message }) => message.includes('all is lost'));
    expect(lost).toMatchObject([
      { source: 'session', process: 'client backend', message: expect.stringMatching(/^one\n/) },
    ]);
    const down = entries.filter(({ message }) => message === 'database system is shut down');
    expect(down).toMatchObject([{ source: 'server', process: 'postmaster' }]);
    // Nothing that the server has to complain about at each start.
    expect(entries.filter(({ source }) => source === 'unknown')).toEqual([]);
    expect(await b.driver.readLog(b.ref, 1)).toEqual(entries.slice(-1));
  });

  test('the room for data is known', async () => {
    const { driver } = bench();
    const room = await driver.observeRoom();
    if (driver.cannot?.room !== undefined) return expect(room).toBeNull();
    expect(room?.freeBytes).toBeGreaterThan(0);
    expect(room?.lowBytes).toBeGreaterThan(0);
  });

  test('a session that writes can be ended, one that deletes goes on', async () => {
    const b = bench();
    expect(await b.driver.endWriters(b.ref)).toBe(0);
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    expect(await b.driver.endWriters(b.ref)).toBe(0);
    if (!b.hasSql) return;
    await b.query(running, 'CREATE TABLE t AS SELECT generate_series(1, 4) AS n');
    const deleting = b.query(running, 'DELETE FROM t WHERE pg_sleep(0.5) IS NOT NULL');
    const writing = b.query(running, 'INSERT INTO t VALUES (5); SELECT pg_sleep(60)').catch((error: Error) => error);
    await expect.poll(() => b.driver.endWriters(b.ref)).toBe(1);
    expect(await writing).toBeInstanceOf(Error);
    await deleting;
    expect(await b.query(running, 'SELECT n FROM t')).toEqual([]);
  });

  test('a clone of a branch that never ran works too', async () => {
    const b = bench();
    await b.createBranch();
    const branchId = newBranchId();
    await b.cloneBranch(branchId);
    expect(await b.start(1, { branchId })).toMatchObject({ state: 'running' });
  });

  test('a clone of a running branch is made while it serves, and is whole', async () => {
    const b = bench();
    const source = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(source, 'CREATE TABLE t AS SELECT 0 AS n');
    let writes = true;
    const writer = (async () => {
      for (let n = 1; writes && b.hasSql; n++) await b.query(source, `INSERT INTO t VALUES (${n})`);
    })();
    const branchId = newBranchId();
    const receipt = await b.cloneBranch(branchId).finally(() => {
      writes = false;
    });
    await writer;
    expect(receipt.lsn).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/);
    expect(await b.cloneBranch(branchId)).toEqual(receipt);
    expect(await b.driver.observe(b.ref)).toEqual(source);

    const child = { branchId, endpointId: newEndpointId() };
    const running = await b.start(1, child);
    expect((await b.driver.readCatalog({ ...b.ref, ...child })).roles).toEqual([{ name: 'owner', verifier }]);
    if (b.hasSql) {
      expect(await b.query(running, 'SELECT count(*) = max(n) + 1 AS whole FROM t')).toEqual([{ whole: true }]);
      await b.query(running, 'DROP TABLE t');
      expect(await b.query(source, 'SELECT min(n) AS n FROM t')).toEqual([{ n: 0 }]);
    }
    // Neither its first start nor a later one leaves it read-only or with another secret.
    await b.driver.suspend({ ...b.ref, ...child }, 1);
    expect(await b.start(2, child)).toMatchObject({ state: 'running' });
  });

  test('a clone of a running branch tells what is in it, and whether that is certain', async () => {
    const b = bench();
    const source = await b.started();
    const catalog = await b.driver.configure(b.ref, ownerAndDatabase);
    // A server sometimes has work of its own, which may fall into any one copy.
    await expect
      .poll(async () => (await b.copyBranch(newBranchId())).source)
      .toMatchObject({ catalog, bytes: expect.any(Number), isExact: true });
    if (!b.hasSql) return;
    const slow = b.query(source, 'CREATE TABLE slow (n int); INSERT INTO slow SELECT 1 FROM pg_sleep(60)');
    slow.catch(() => undefined);
    const isOpen = 'SELECT count(*)::int AS n FROM pg_stat_activity WHERE backend_xid IS NOT NULL';
    await expect.poll(() => b.query(source, isOpen)).toEqual([{ n: 1 }]);
    // With a later one that has ended, it is unknown whether the open one ends while files are copied.
    await b.query(source, 'CREATE TABLE quick (n int)');
    expect((await b.copyBranch(newBranchId())).source).toMatchObject({ isExact: false });
    await b.query(source, 'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL');
    await expect(slow).rejects.toThrow(/cancel/);
  });

  test('a missing or foreign source is refused', async () => {
    const b = bench();
    await expect(b.cloneBranch()).rejects.toThrow(/has no data/);
    await b.started();
    const stranger = bench();
    const source = { kind: 'branch', branchId: b.ref.branchId } as const;
    const spec = { ...stranger.ref, pgVersion: b.subject.pgVersion, source };
    await expect(stranger.driver.createBranch(spec)).rejects.toThrow(/has no data/);
  });
}

export function describeConfigure(bench: () => Bench): void {
  test('makes roles and databases, once', async () => {
    const b = bench();
    const running = await b.started();
    expect(await b.driver.readCatalog(b.ref)).toEqual({ roles: [], databases: [] });
    const catalog = {
      roles: [{ name: 'owner', verifier }],
      databases: [{ name: 'app', ownerName: 'owner' }],
    };
    expect(await b.driver.configure(b.ref, ownerAndDatabase)).toEqual(catalog);
    expect(await b.driver.configure(b.ref, ownerAndDatabase)).toEqual(catalog);
    if (!b.hasSql) return;
    expect(await b.query(running, 'SELECT current_user AS me')).toEqual([{ me: 'owner' }]);
    await expect(b.query(running, 'SELECT 1', { password: 'wrong' })).rejects.toThrow(/password/);
  });

  test('changes passwords, closes roles, renames databases and changes their owners', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t AS SELECT 3 AS n');
    const changed = buildVerifier('another');
    const change: CatalogChange = {
      ...noChange,
      roles: [
        { name: 'owner', verifier: null },
        { name: 'second', verifier: changed },
      ],
      databases: [{ name: 'renamed', renameFrom: 'app', ownerName: 'second' }],
    };
    const catalog = { roles: change.roles, databases: [{ name: 'renamed', ownerName: 'second' }] };
    expect(await b.driver.configure(b.ref, change)).toEqual(catalog);
    expect(await b.driver.configure(b.ref, change)).toEqual(catalog);
    if (!b.hasSql) return;
    await expect(b.query(running, 'SELECT 1', { database: 'renamed' })).rejects.toThrow(/permitted|password/);
    const login = { username: 'second', password: 'another', database: 'renamed' };
    expect(await b.query(running, "SELECT to_regclass('t') IS NULL AS gone", login)).toEqual([{ gone: false }]);
  });

  test('drops databases and roles, once', async () => {
    const b = bench();
    await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const drop: CatalogChange = { ...noChange, dropDatabases: ['app'], dropRoles: ['owner'] };
    expect(await b.driver.configure(b.ref, drop)).toEqual({ roles: [], databases: [] });
    expect(await b.driver.configure(b.ref, drop)).toEqual({ roles: [], databases: [] });
  });

  test('the owner of a database that stays is not dropped', async () => {
    const b = bench();
    await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await expect(b.driver.configure(b.ref, { ...noChange, dropRoles: ['owner'] })).rejects.toThrow(/owns a database/);
  });

  test('names may hold quotes, spaces, capitals and any letters', async () => {
    const b = bench();
    await b.started();
    const names = ['a"b', "it's", 'Große Straße', '数据库', 'x'.repeat(63), 'semi;colon--', '$1 %s \\'];
    const roles = names.map((name) => ({ name, verifier }));
    const databases = names.map((name) => ({ name, renameFrom: null, ownerName: name }));
    const catalog = await b.driver.configure(b.ref, { ...noChange, roles, databases });
    expect(catalog.roles.map(({ name }) => name).sort()).toEqual([...names].sort());
    expect(catalog.databases.map(({ name }) => name).sort()).toEqual([...names].sort());
    const emptied = await b.driver.configure(b.ref, { ...noChange, dropDatabases: names, dropRoles: names });
    expect(emptied).toEqual({ roles: [], databases: [] });
  });

  test('a sleeping compute cannot be configured', async () => {
    const b = bench();
    await expect(b.driver.configure(b.ref, noChange)).rejects.toThrow(/not running/);
    await b.createBranch();
    await expect(b.driver.configure(b.ref, noChange)).rejects.toThrow(/not running/);
  });

  test('a catalog is read without a change, from a server that runs', async () => {
    const b = bench();
    await expect(b.driver.readCatalog(b.ref)).rejects.toThrow(/not running/);
    await b.started();
    expect(await b.driver.readCatalog(b.ref)).toEqual({ roles: [], databases: [] });
    const configured = await b.driver.configure(b.ref, ownerAndDatabase);
    expect(await b.driver.readCatalog(b.ref)).toEqual(configured);
    expect(await b.driver.configure(b.ref, noChange)).toEqual(configured);
    await b.driver.suspend(b.ref, 1);
    await expect(b.driver.readCatalog(b.ref)).rejects.toThrow(/not running/);
  });
}
