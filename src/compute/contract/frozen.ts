/** The part of the contract about computes that serve a branch's data and let nobody change it. */
import { expect, test } from 'vitest';
import { type Bench, ownerAndDatabase, verifier } from './bench.ts';

/** The way in which a look into the past is opened. */
async function frozen(b: Bench) {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(running, 'CREATE TABLE t (name text)');
  await b.query(running, "INSERT INTO t VALUES ('kept')");
  await b.driver.suspend(b.ref, 1);
  return b.start(2, { frozen: true });
}

export function describeFrozen(bench: () => Bench): void {
  test('reads what the branch holds, and writes nothing', async () => {
    const b = bench();
    const running = await frozen(b);
    const change = { ...ownerAndDatabase, roles: [{ name: 'another', verifier }] };
    await expect(b.driver.configure(b.ref, change)).rejects.toThrow(/read-only transaction/);
    if (!b.hasSql) return;
    expect(await b.query(running, 'SELECT name FROM t')).toEqual([{ name: 'kept' }]);
    for (const attempt of [
      "INSERT INTO t VALUES ('new')",
      "SET default_transaction_read_only = off; INSERT INTO t VALUES ('new')",
      'BEGIN READ WRITE',
      'CREATE TEMPORARY TABLE mine (a int)',
      'ALTER ROLE owner PASSWORD NULL',
    ]) {
      await expect(b.query(running, attempt), attempt).rejects.toThrow(/read-only transaction|during recovery/);
    }
    await expect(b.query(running, 'SELECT pg_promote()')).rejects.toThrow(/permission denied/);
  });

  test('starts again after an accident, reports its work, and leaves nothing behind', async () => {
    const b = bench();
    const running = await frozen(b);
    expect(await b.driver.observeWork(b.ref)).toMatchObject({ work: null });
    await b.subject.kill(running);
    await b.untilDead(running);
    const again = await b.start(2, { frozen: true });
    if (b.hasSql) expect(await b.query(again, 'SELECT name FROM t')).toEqual([{ name: 'kept' }]);
    await b.driver.removeCompute(b.ref);
    await b.driver.removeBranch(b.ref);
    const left = await b.subject.leftovers();
    expect(left.filter((name) => name.includes(b.ref.branchId) || name.includes(b.ref.endpointId))).toEqual([]);
  });
}
