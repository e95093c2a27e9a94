/** The part of the contract about read replicas. */
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { type ComputeObservation, StaleGenerationError } from '../interface/driver.ts';
import { historySlot } from '../interface/own-logins.ts';
import { type Bench, ownerAndDatabase } from './bench.ts';

const newReplica = () => ({ endpointId: newEndpointId(), readOnly: true });
type Replica = ReturnType<typeof newReplica>;

async function startReplica(b: Bench, generation: number, replica: Replica): Promise<ComputeObservation> {
  expect(await b.driver.buildReplica(b.spec(generation, replica))).not.toBe('needs_primary');
  return b.start(generation, replica);
}

async function withPrimary(b: Bench): Promise<ComputeObservation> {
  const primary = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(primary, 'CREATE TABLE t AS SELECT 1 AS n');
  return primary;
}

const rowsOn = (b: Bench, on: ComputeObservation) => b.query(on, 'SELECT count(*)::int AS n FROM t');

async function untilRows(b: Bench, on: ComputeObservation, n: number): Promise<void> {
  if (b.hasSql) await expect.poll(() => rowsOn(b, on).catch(() => null)).toEqual([{ n }]);
}

/** As Catnap's own login in a primary. */
async function slotsOf(b: Bench, primary: ComputeObservation): Promise<unknown> {
  const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
  const text = `SELECT count(*)::int AS n FROM pg_replication_slots WHERE slot_name <> '${historySlot}'`;
  return (await b.query(primary, text, login))?.[0]?.n ?? 0;
}

export function describeReplicas(bench: () => Bench): void {
  test('a replica needs a running primary once, and then starts without it', async () => {
    const b = bench();
    await b.createBranch();
    const replica = newReplica();
    expect(await b.driver.buildReplica(b.spec(1, replica))).toBe('needs_primary');
    await expect(b.driver.start(b.spec(1, replica))).rejects.toThrow(/has no data/);
    await b.start(1);
    expect(await b.driver.buildReplica(b.spec(1, replica))).toBe('built');
    expect(await b.driver.buildReplica(b.spec(1, replica))).toBe('kept');
    await b.start(1, replica);
    await b.driver.suspend({ ...b.ref, ...replica }, 1);
    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.observeReplica({ ...b.ref, ...replica })).toBeNull();
    expect(await b.driver.buildReplica(b.spec(2, replica))).toBe('kept');
    expect(await b.start(2, replica)).toMatchObject({ state: 'running', generation: 2 });
    await expect(b.driver.buildReplica(b.spec(1, replica))).rejects.toThrow(StaleGenerationError);
    await expect(b.driver.start(b.spec(1, replica))).rejects.toThrow(StaleGenerationError);
    expect(await b.driver.buildReplica(b.spec(3, replica), true)).toBe('needs_primary');
  });

  test('it follows its primary, serves while that naps, and refuses writes', async () => {
    const b = bench();
    const primary = await withPrimary(b);
    const replica = newReplica();
    const running = await startReplica(b, 1, replica);
    expect(running.address).not.toEqual(primary.address);
    await untilRows(b, running, 1);
    await b.query(primary, 'INSERT INTO t VALUES (2)');
    await untilRows(b, running, 2);
    await expect(b.driver.configure({ ...b.ref, ...replica }, ownerAndDatabase)).rejects.toThrow(/read-only/);
    await expect(b.driver.readCatalog({ ...b.ref, ...replica })).rejects.toThrow(/read-only/);
    if (b.hasSql) {
      const refused = b.query(running, 'INSERT INTO t VALUES (3)');
      await expect(refused).rejects.toMatchObject({ code: '25006' });
    }
    await b.driver.suspend(b.ref, 1);
    await untilRows(b, running, 2);
    const again = await b.start(2);
    await b.query(again, 'INSERT INTO t VALUES (3)');
    await untilRows(b, running, 3);
  });

  test('it catches up after a nap of its own, with the primary started anew by another endpoint', async () => {
    const b = bench();
    const primary = await withPrimary(b);
    const replica = newReplica();
    await startReplica(b, 1, replica);
    await b.driver.suspend({ ...b.ref, ...replica }, 1);
    await b.query(primary, 'INSERT INTO t VALUES (2)');
    await b.driver.removeCompute(b.ref);
    const other = await b.start(1, { endpointId: newEndpointId() });
    await b.query(other, 'INSERT INTO t VALUES (3)');
    expect(await b.driver.buildReplica(b.spec(2, replica))).toBe('kept');
    await untilRows(b, await b.start(2, replica), 3);
  });

  test('several follow one primary, and their end leaves no slot, whether it runs or sleeps', async () => {
    const b = bench();
    const primary = await withPrimary(b);
    const replicas = [newReplica(), newReplica(), newReplica()];
    for (const replica of replicas) await untilRows(b, await startReplica(b, 1, replica), 1);
    if (b.hasSql) expect(await slotsOf(b, primary)).toBe(3);
    const [first, second, third] = replicas.map((replica) => ({ ...b.ref, ...replica }));
    for (const ref of [first, first, second]) if (ref) await b.driver.removeCompute(ref);
    if (b.hasSql) expect(await slotsOf(b, primary)).toBe(1);
    await b.driver.suspend(b.ref, 1);
    if (third) await b.driver.removeCompute(third);
    expect(await slotsOf(b, await b.start(2))).toBe(0);
    expect((await b.driver.readCatalog(b.ref)).roles.map(({ name }) => name)).toEqual(['owner']);
    expect((await b.driver.list()).filter(({ projectId }) => projectId === b.ref.projectId)).toHaveLength(1);
  });

  test('one that has moved to another branch serves nothing of the branch that it followed', async () => {
    const b = bench();
    const primary = await withPrimary(b);
    const branchId = newBranchId();
    await b.cloneBranch(branchId);
    await b.query(primary, 'INSERT INTO t VALUES (2)');
    const replica = newReplica();
    await untilRows(b, await startReplica(b, 1, replica), 2);
    await b.driver.suspend({ ...b.ref, ...replica }, 1);
    const moved = { ...replica, branchId };
    expect(await b.driver.buildReplica(b.spec(2, moved))).toBe('needs_primary');
    await b.start(1, { endpointId: newEndpointId(), branchId });
    expect(await b.driver.buildReplica(b.spec(2, moved))).toBe('built');
    await untilRows(b, await b.start(2, moved), 1);
  });

  test('a replica that has lost its position is built anew', async () => {
    const b = bench();
    const primary = await withPrimary(b);
    const replica = newReplica();
    await startReplica(b, 1, replica);
    await expect
      .poll(() => b.driver.observeReplica({ ...b.ref, ...replica }))
      .toEqual({ lost: false, lag: { bytes: expect.any(Number), seconds: expect.any(Number) } });
    if (!b.hasSql) return;
    await b.driver.suspend({ ...b.ref, ...replica }, 1);
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    await b.query(primary, 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots', login);
    await b.query(primary, 'INSERT INTO t VALUES (2)');
    expect(await b.driver.observeReplica({ ...b.ref, ...replica })).toEqual({ lost: true, lag: null });
    expect(await b.driver.buildReplica(b.spec(2, replica))).toBe('built');
    await untilRows(b, await b.start(2, replica), 2);
  });
}
