/** The part of the contract about processes: their lifetime, generations, accidents and restarts. */
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { StaleGenerationError } from '../interface/driver.ts';
import { type Bench, ownerAndDatabase } from './bench.ts';

export function describeLife(bench: () => Bench): void {
  test('absent, then running, then absent', async () => {
    const b = bench();
    const absent = { state: 'absent', generation: 0, pid: null, address: null };
    expect(await b.driver.observe(b.ref)).toMatchObject(absent);
    const running = await b.started();
    const { endpointId, projectId } = b.ref;
    expect(running).toMatchObject({ endpointId, projectId, state: 'running', generation: 1 });
    expect(running.pid).toBeGreaterThan(0);
    expect(running.address).not.toBeNull();
    expect(await b.listed()).toEqual(running);

    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.observe(b.ref)).toMatchObject(absent);
    expect(await b.listed()).toBeUndefined();
    await b.driver.suspend(b.ref, 1);
  });

  test('a suspend of what never ran succeeds', async () => {
    const b = bench();
    expect(await b.driver.suspend(b.ref, 1)).toBeNull();
    await b.createBranch();
    expect(await b.driver.suspend(b.ref, 1)).toBeNull();
  });

  test('a suspend tells what the server held at its end, and nothing where none ran', async () => {
    const b = bench();
    await b.started();
    const held = await b.driver.configure(b.ref, ownerAndDatabase);
    expect(await b.driver.suspend(b.ref, 1)).toEqual(b.ifCertain(held));
    expect(await b.driver.suspend(b.ref, 1)).toBeNull();
  });

  test('a server that was settled is not read again, unless something was written after that', async () => {
    const b = bench();
    expect(await b.driver.settle(b.ref)).toBeNull();
    await b.started();
    const held = await b.driver.configure(b.ref, ownerAndDatabase);
    const settled = await b.driver.settle(b.ref);
    expect(settled?.catalog).toEqual(held);
    expect(settled?.bytes).toBeGreaterThan(0);
    expect(settled?.wal?.bytes).toBeGreaterThan(0);
    expect(await b.driver.suspend(b.ref, 1, settled ?? undefined)).toEqual(b.ifCertain(held));
    expect(await b.driver.settle(b.ref)).toBeNull();

    await b.start(2);
    const before = await b.driver.settle(b.ref);
    const role = { name: 'late', verifier: null };
    await b.driver.configure(b.ref, { ...ownerAndDatabase, roles: [...ownerAndDatabase.roles, role] });
    expect(await b.driver.suspend(b.ref, 2, before ?? undefined)).toBeNull();
  });

  test('data stays over a nap, and settings arrive', async () => {
    const b = bench();
    const first = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(first, 'CREATE TABLE t AS SELECT 7 AS n');
    await b.driver.suspend(b.ref, 1);
    const second = await b.start(2, { settings: { work_mem: '5MB', listen_addresses: '*', port: '1' } });
    expect(second.generation).toBe(2);
    expect(second.pid).not.toBe(first.pid);
    if (!b.hasSql) return;
    expect(await b.query(second, 'SELECT n FROM t')).toEqual([{ n: 7 }]);
    expect(await b.query(second, 'SHOW work_mem')).toEqual([{ work_mem: '5MB' }]);
    // Where a server listens is not the tenant's to say, or it could not have been asked here.
    const { address } = second;
    if (address?.kind === 'tcp')
      return expect(await b.query(second, 'SHOW port')).toEqual([{ port: `${address.port}` }]);
    expect(await b.query(second, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
  });

  test('new settings reach a running server, and those that need a restart are named', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const settings = { ...b.spec(1).settings, work_mem: '6MB' };
    expect(await b.driver.reload(b.spec(1, { settings }))).toEqual([]);
    const more = { ...settings, max_locks_per_transaction: '128' };
    expect(await b.driver.reload(b.spec(1, { settings: more }))).toEqual(['max_locks_per_transaction']);
    // Until it is restarted: the caller may not have heard it.
    expect(await b.driver.reload(b.spec(1, { settings: more }))).toEqual(['max_locks_per_transaction']);
    expect(await b.driver.observe(b.ref)).toEqual(running);
    if (b.hasSql) expect(await b.query(running, 'SHOW work_mem')).toEqual([{ work_mem: '6MB' }]);
    await expect(b.driver.reload(b.spec(0))).rejects.toThrow(StaleGenerationError);
    await b.driver.suspend(b.ref, 1);
    await expect(b.driver.reload(b.spec(1))).rejects.toThrow(/not running/);
  });

  test('Postgres itself says whether settings are good', async () => {
    const b = bench();
    expect(await b.driver.checkSettings(b.subject.pgVersion, { work_mem: '8MB' })).toBeNull();
    expect(await b.driver.checkSettings(b.subject.pgVersion, { no_such_setting: '1' })).toMatch(
      /unrecognized.*no_such_setting/,
    );
    if (!b.hasSql) return;
    expect(await b.driver.checkSettings(b.subject.pgVersion, { work_mem: 'lots' })).toMatch(/invalid value.*work_mem/);
    expect(await b.driver.checkSettings(b.subject.pgVersion, { random_page_cost: '-1' })).toMatch(
      /outside the valid range/,
    );
    expect(await b.driver.checkSettings(b.subject.pgVersion, { timezone: 'Mars/North' })).toMatch(/TimeZone/);
    expect(await b.driver.checkSettings(b.subject.pgVersion, { max_locks_per_transaction: '2147483647' })).toMatch(
      /memory/,
    );
  });

  test('extensions are listed with what is offered, or there is a note why they are not', async () => {
    const b = bench();
    const { extensions, note } = await b.driver.listExtensions(b.subject.pgVersion);
    if (note === null) expect(extensions).toContainEqual(expect.objectContaining({ name: 'plpgsql', isOffered: true }));
    for (const { isOffered, reason } of extensions) expect(isOffered).toBe(reason === null);
  });

  test('a start without data, or of another version, is refused and leaves nothing running', async () => {
    const b = bench();
    await expect(b.driver.start(b.spec(1))).rejects.toThrow(/has no data/);
    await b.createBranch();
    await expect(b.driver.start(b.spec(1, { pgVersion: 99 }))).rejects.toThrow();
    expect(await b.listed()).toBeUndefined();
  });

  test('two endpoints never run on one branch', async () => {
    const b = bench();
    const first = await b.started();
    const other = { endpointId: newEndpointId() };
    await expect(b.driver.start(b.spec(1, other))).rejects.toThrow(/in use by/);
    expect(await b.driver.observe(b.ref)).toEqual(first);
    await b.driver.suspend(b.ref, 1);
    expect(await b.start(1, other)).toMatchObject({ state: 'running' });
  });

  test('an endpoint moves to another branch with a newer generation', async () => {
    const b = bench();
    await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const branchId = newBranchId();
    await b.createBranch(branchId);
    expect(await b.start(2, { branchId })).toMatchObject({ state: 'running', generation: 2 });
    expect((await b.driver.readCatalog({ ...b.ref, branchId })).databases).toEqual([]);
    await b.cloneBranch(); // the branch that it left is asleep
  });
}

export function describeGenerations(bench: () => Bench): void {
  test('a repeated start changes nothing', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.start(b.spec(1));
    expect(await b.driver.observe(b.ref)).toEqual(running);
  });

  test('stale calls are refused and touch nothing', async () => {
    const b = bench();
    await b.createBranch();
    const running = await b.start(5);
    await expect(b.driver.start(b.spec(4))).rejects.toThrow(StaleGenerationError);
    await expect(b.driver.suspend(b.ref, 4)).rejects.toThrow(StaleGenerationError);
    expect(await b.driver.observe(b.ref)).toEqual(running);
    await b.driver.suspend(b.ref, 6);
    await expect(b.driver.start(b.spec(5))).rejects.toThrow(StaleGenerationError);
    expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'absent' });
  });

  test('a newer generation replaces a running one', async () => {
    const b = bench();
    const first = await b.started();
    const second = await b.start(2);
    expect(second.generation).toBe(2);
    expect(second.pid).not.toBe(first.pid);
  });

  test('the fence outlives the driver', async () => {
    const b = bench();
    await b.createBranch();
    await b.start(3);
    await b.driver.suspend(b.ref, 3);
    await expect(b.subject.reopen().start(b.spec(2))).rejects.toThrow(StaleGenerationError);
  });

  test('calls at the same time end in one running server', async () => {
    const b = bench();
    await b.createBranch();
    const results = await Promise.allSettled([
      ...[1, 2, 3].map((generation) => b.driver.start(b.spec(generation))),
      b.driver.start(b.spec(3)),
    ]);
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    for (const reason of refused) expect(reason).toBeInstanceOf(StaleGenerationError);
    expect(await b.untilRunning()).toMatchObject({ generation: 3 });
  });
}

export function describeAccidents(bench: () => Bench): void {
  test('a new driver adopts what runs', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const again = b.subject.reopen();
    expect(await again.observe(b.ref)).toEqual(running);
    expect((await again.list()).map(({ endpointId }) => endpointId)).toContain(b.ref.endpointId);
    expect((await again.readCatalog(b.ref)).roles).toHaveLength(1);
    await again.start(b.spec(1));
    expect(await again.observe(b.ref)).toEqual(running);
    await again.suspend(b.ref, 1);
    expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'absent' });
  });

  test('a killed server is gone, and its data come back with the next one', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.query(running, 'CREATE TABLE t AS SELECT 9 AS n');
    await b.subject.kill(running);
    await b.untilDead(running);
    if (!b.subject.revives) expect(await b.listed()).toBeUndefined();
    const again = await b.start(1); // the same generation: no caller has asked for a newer one
    expect(again.pid).not.toBe(running.pid);
    expect((await b.driver.readCatalog(b.ref)).databases).toHaveLength(1);
    if (b.hasSql) expect(await b.query(again, 'SELECT n FROM t')).toEqual([{ n: 9 }]);
  });
}
