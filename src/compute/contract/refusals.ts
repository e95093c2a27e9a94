/** The part of the contract about what a driver cannot do: it says so, in one sentence, and makes nothing by halves. */
import { expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import { type Inabilities, isNotSupported } from '../interface/abilities.ts';
import { NoSuchMomentError } from '../interface/driver.ts';
import { type Bench, ownerAndDatabase } from './bench.ts';

async function expectRefusal(call: Promise<unknown>, why: string): Promise<void> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(isNotSupported(error)).toBe(true);
  expect((error as Error).message).toBe(why);
}

const ofProject = async ({ subject, ref }: Bench) =>
  (await subject.leftovers()).filter((name) => name.includes(ref.projectId)).sort();

export function describeRefusals(bench: () => Bench, cannot: Inabilities): void {
  const { history, replicas, frozen, empty_copies: emptyCopies } = cannot;

  test('is what it declares', () => {
    expect(bench().driver.cannot ?? {}).toEqual(cannot);
  });

  if (history !== undefined) {
    test('a moment of the past is refused, and every history is empty', async () => {
      const b = bench();
      expect(await b.driver.keepHistory(b.ref, { retentionSeconds: 86_400 })).toBeNull();
      await b.started();
      const before = await ofProject(b);
      const nothing = { from: null, until: null, gaps: [], baseCount: 0, baseBytes: 0, logBytes: 0 };
      expect(await b.driver.keepHistory(b.ref, { retentionSeconds: 86_400 })).toEqual(nothing);
      const branchId = newBranchId();
      const moment = { kind: 'time', at: new Date().toISOString() } as const;
      const source = { kind: 'history', branchId: b.ref.branchId, moment, adminSecret: b.adminSecret } as const;
      const making = b.driver.createBranch({ ...b.ref, branchId, pgVersion: b.subject.pgVersion, source });
      await expect(making).rejects.toThrow(new NoSuchMomentError(history));
      expect(await ofProject(b)).toEqual(before);
    });
  }

  if (replicas !== undefined) {
    test('a read replica is refused, and its primary goes on', async () => {
      const b = bench();
      const running = await b.started();
      const before = await ofProject(b);
      const replica = b.spec(1, { endpointId: newEndpointId(), readOnly: true });
      await expectRefusal(b.driver.buildReplica(replica), replicas);
      await expectRefusal(b.driver.start(replica), replicas);
      expect(await b.driver.observe(replica)).toMatchObject({ state: 'absent' });
      // As the operation that gives up on it, and the API's deletion, would.
      await b.driver.suspend(replica, 1);
      await b.driver.removeCompute(replica);
      expect(await ofProject(b)).toEqual(before);
      expect(await b.driver.observe(b.ref)).toEqual(running);
    });
  }

  if (frozen !== undefined) {
    test('a frozen compute is refused, and an ordinary one can still serve the branch', async () => {
      const b = bench();
      await b.createBranch();
      const before = await ofProject(b);
      await expectRefusal(b.driver.start(b.spec(1, { frozen: true })), frozen);
      expect(await ofProject(b)).toEqual(before);
      expect(await b.start(1)).toMatchObject({ state: 'running' });
    });
  }

  if (emptyCopies !== undefined) {
    test('a copy is not emptied, and keeps all that it holds', async () => {
      const b = bench();
      await b.started();
      await b.driver.configure(b.ref, ownerAndDatabase);
      await b.driver.suspend(b.ref, 1);
      const { pgVersion } = b.subject;
      await expectRefusal(b.driver.emptyBranch({ ...b.ref, pgVersion, adminSecret: b.adminSecret }), emptyCopies);
      await b.start(2);
      expect((await b.driver.readCatalog(b.ref)).databases).toHaveLength(1);
    });
  }
}
