/** The part of the contract about copies of a branch: replacing its data by one, and what one does not inherit. */
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { historySlot } from '../interface/own-logins.ts';
import { type Bench, noChange, ownerAndDatabase } from './bench.ts';

const tableOf = (b: Bench, on: Parameters<Bench['query']>[0]) => b.query(on, 'SELECT name FROM t');

/** A branch and a copy of it, each with something of its own. */
async function twoBranches(b: Bench) {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(running, "CREATE TABLE t AS SELECT 'new' AS name");
  const stagingId = newBranchId();
  await b.cloneBranch(stagingId);
  await b.query(running, "UPDATE t SET name = 'old'");
  const role = { name: 'later', verifier: null };
  await b.driver.configure(b.ref, { ...noChange, roles: [role] });
  return { running, stagingId };
}

export function describeReplacement(bench: () => Bench): void {
  test.each(['running', 'sleeping'])('of a %s branch: the old data go, the new ones are served', async (state) => {
    const b = bench();
    const { stagingId } = await twoBranches(b);
    if (state === 'sleeping') await b.driver.suspend(b.ref, 1);
    await b.driver.replaceBranch(b.ref, { stagingId, keepAs: null });
    expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'absent' });
    const again = await b.start(2);
    expect((await b.driver.readCatalog(b.ref)).roles.map(({ name }) => name)).toEqual(['owner']);
    if (b.hasSql) expect(await tableOf(b, again)).toEqual([{ name: 'new' }]);
    // A late call changes nothing.
    await b.driver.replaceBranch(b.ref, { stagingId, keepAs: null });
    expect(await b.driver.observe(b.ref)).toEqual(again);
    await expect(b.driver.start(b.spec(1, { branchId: stagingId, endpointId: newEndpointId() }))).rejects.toThrow(
      /has no data/,
    );
  });

  test('the old data can be kept as another branch, without the slots of replicas', async () => {
    const b = bench();
    const { stagingId } = await twoBranches(b);
    const hasReplicas = b.driver.cannot?.replicas === undefined;
    const replica = { endpointId: newEndpointId(), readOnly: true };
    if (hasReplicas) {
      await b.driver.buildReplica(b.spec(1, replica));
      await b.start(1, replica);
    }
    const keepAs = newBranchId();
    await b.driver.replaceBranch(b.ref, { stagingId, keepAs });
    if (hasReplicas) {
      expect(await b.driver.observe({ ...b.ref, ...replica })).toMatchObject({ state: 'absent' });
      expect(await b.driver.buildReplica(b.spec(2, replica))).toBe('needs_primary');
    }

    const kept = { branchId: keepAs, endpointId: newEndpointId() };
    const old = await b.start(1, kept);
    const roles = (await b.driver.readCatalog({ ...b.ref, ...kept })).roles.map(({ name }) => name);
    expect(roles).toEqual(['later', 'owner']);
    const current = await b.start(2);
    if (hasReplicas) {
      expect(await b.driver.buildReplica(b.spec(3, replica))).toBe('built');
      const copy = await b.start(3, replica);
      if (b.hasSql) expect(await tableOf(b, copy)).toEqual([{ name: 'new' }]);
    }
    if (!b.hasSql) return;
    expect(await tableOf(b, old)).toEqual([{ name: 'old' }]);
    expect(await tableOf(b, current)).toEqual([{ name: 'new' }]);
    const login = { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' };
    const slots = await b.query(old, 'SELECT slot_name::text AS name FROM pg_replication_slots', login);
    // Its own history goes on.
    expect(slots).toEqual(b.driver.cannot?.history === undefined ? [{ name: historySlot }] : []);
  });

  test('without anything to replace it a branch stays as it is', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.replaceBranch(b.ref, { stagingId: newBranchId(), keepAs: null });
    expect(await b.driver.observe(b.ref)).toEqual(running);
    const nobody = { ...b.ref, branchId: newBranchId() };
    const by = { stagingId: newBranchId(), keepAs: null };
    await expect(b.driver.replaceBranch(nobody, by)).rejects.toThrow(/has no data/);
  });

  test('a copy is cut off from publishers before it is served, and loses nothing else', async () => {
    const b = bench();
    const { stagingId } = await twoBranches(b);
    const { pgVersion } = b.subject;
    const spec = { ...b.ref, branchId: stagingId, pgVersion, adminSecret: b.adminSecret };
    await b.driver.detachBranch(spec);
    await b.driver.detachBranch(spec);
    await expect(b.driver.detachBranch({ ...spec, branchId: newBranchId() })).rejects.toThrow(/has no data/);
    const copy = { branchId: stagingId, endpointId: newEndpointId() };
    const served = await b.start(1, copy);
    expect((await b.driver.readCatalog({ ...b.ref, ...copy })).roles.map(({ name }) => name)).toEqual(['owner']);
    expect(await b.driver.observeSlots({ ...b.ref, ...copy })).toEqual([]);
    if (b.hasSql) expect(await tableOf(b, served)).toEqual([{ name: 'new' }]);
  });
}
