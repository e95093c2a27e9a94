/** The part of the contract about the past of a branch: which moments it gives, and what becomes of it. */
import { expect, test, vi } from 'vitest';
import { type BranchId, newBranchId, newEndpointId } from '../../lib/ids.ts';
import type { BranchHistory } from '../../lib/model.ts';
import type { LogPosition, Moment } from '../../lib/moments.ts';
import { type BranchCopy, type ComputeObservation, NoSuchMomentError } from '../interface/driver.ts';
import { type Bench, noChange, ownerAndDatabase } from './bench.ts';

const daySeconds = 86_400;
const atTime = ({ at }: LogPosition): Moment => ({ kind: 'time', at });
const atLsn = ({ lsn }: LogPosition): Moment => ({ kind: 'lsn', lsn });

/** After everything committed so far, whatever the resolution of the clocks. */
const aSecondAhead = (): Moment => ({ kind: 'time', at: new Date(Date.now() + 1_000).toISOString() });

/** Between the clock of this test and that of the driver. */
const clockSlackMs = 200;

/** With a base image: the first calls may find the driver still at it. */
async function keep(b: Bench, branchId = b.ref.branchId, retentionSeconds = daySeconds) {
  const kept = async () => {
    const history = await b.driver.keepHistory({ ...b.ref, branchId }, { retentionSeconds });
    expect(history?.until).toBeTruthy();
    return history as BranchHistory & { readonly from: LogPosition; readonly until: LogPosition };
  };
  return vi.waitFor(kept, { timeout: 150_000, interval: 20 });
}

const roles = (names: readonly string[]) => ({ ...noChange, roles: names.map((name) => ({ name, verifier: null })) });

/** Something committed, as a role and, where there is SQL, as a row. */
async function commit(b: Bench, running: ComputeObservation, name: string, ref = b.ref): Promise<void> {
  await b.driver.configure(ref, roles([name]));
  await b.query(running, `INSERT INTO t VALUES ('${name}')`);
}

/** A branch that has committed `one`, `two` and `three`, and the positions after each. */
async function threeCommits(b: Bench) {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(running, 'CREATE TABLE t (name text)');
  const { from } = await keep(b);
  const positions: LogPosition[] = [];
  for (const name of ['one', 'two', 'three']) {
    await commit(b, running, name);
    positions.push((await keep(b)).until);
  }
  const [one, two, three] = positions as [LogPosition, LogPosition, LogPosition];
  return { running, from, one, two, three };
}

async function branchAt(b: Bench, moment: Moment, of = b.ref.branchId, branchId = newBranchId()) {
  const { pgVersion } = b.subject;
  const source = { kind: 'history', branchId: of, moment, adminSecret: b.adminSecret } as const;
  return { branchId, copy: await b.driver.createBranch({ ...b.ref, branchId, pgVersion, source }) };
}

const namesIn = ({ source }: BranchCopy) =>
  source?.catalog.roles.map(({ name }) => name).filter((name) => name !== 'owner');

/** What a branch holds when it is served: its roles, and its rows where there is SQL. */
async function contentOf(b: Bench, branchId: BranchId, expected: readonly string[]): Promise<void> {
  const other = { branchId, endpointId: newEndpointId() };
  const running = await b.start(1, other);
  const { roles: found } = await b.driver.readCatalog({ ...b.ref, ...other });
  expect(found.map(({ name }) => name)).toEqual(['owner', ...expected].sort());
  if (b.hasSql) {
    expect(await b.query(running, 'SELECT name FROM t')).toEqual(expected.map((name) => ({ name })));
    expect(await b.query(running, "INSERT INTO t VALUES ('new') RETURNING name")).toEqual([{ name: 'new' }]);
  }
  await b.driver.removeCompute({ ...b.ref, ...other });
}

export function describeHistory(bench: () => Bench): void {
  test('gives a branch at a time and at an LSN, while the branch itself goes on', async () => {
    const b = bench();
    const { running, two } = await threeCommits(b);
    for (const moment of [atTime(two), atLsn(two)]) {
      const { branchId, copy } = await branchAt(b, moment);
      expect(namesIn(copy)).toEqual(['one', 'two']);
      expect(copy.receipt.lsn).not.toBeNull();
      await contentOf(b, branchId, ['one', 'two']);
    }
    expect(await b.driver.observe(b.ref)).toEqual(running);
  });

  test('reaches from its base image to the last commit', async () => {
    const b = bench();
    const { from, three } = await threeCommits(b);
    expect(namesIn((await branchAt(b, atTime(from))).copy)).toEqual([]);
    expect(namesIn((await branchAt(b, atLsn(from))).copy)).toEqual([]);
    expect(namesIn((await branchAt(b, atLsn(three))).copy)).toEqual(['one', 'three', 'two']);
    const history = await keep(b);
    expect(history.from).toEqual(from);
    expect(history).toMatchObject({ gaps: [], baseCount: expect.any(Number), logBytes: expect.any(Number) });
    expect(Date.parse(history.until.at)).toBeGreaterThanOrEqual(Date.parse(three.at));
  });

  test('a time after the last commit is the head, also of what nobody had copied yet', async () => {
    const b = bench();
    const { running } = await threeCommits(b);
    await commit(b, running, 'uncopied');
    const { branchId, copy } = await branchAt(b, aSecondAhead());
    expect(namesIn(copy)).toEqual(['one', 'three', 'two', 'uncopied']);
    await contentOf(b, branchId, ['one', 'two', 'three', 'uncopied']);
  });

  test('a moment before the history, or an LSN that was never written, is refused', async () => {
    const b = bench();
    const { from } = await threeCommits(b);
    const refused: readonly Moment[] = [
      { kind: 'time', at: new Date(Date.parse(from.at) - 60_000).toISOString() },
      { kind: 'lsn', lsn: '0/1' },
      { kind: 'lsn', lsn: 'FFFFFF/0' },
    ];
    const branchId = newBranchId();
    for (const moment of refused) {
      await expect(branchAt(b, moment, b.ref.branchId, branchId)).rejects.toThrow(NoSuchMomentError);
    }
    await expect(b.driver.start(b.spec(1, { branchId, endpointId: newEndpointId() }))).rejects.toThrow(/has no data/);
    const other = bench();
    await other.createBranch();
    await expect(branchAt(other, atTime(from))).rejects.toThrow(NoSuchMomentError);
  });

  test('goes on over a sleep, a wake and an accident', async () => {
    const b = bench();
    const { two } = await threeCommits(b);
    await b.driver.suspend(b.ref, 1);
    const asleep = (await keep(b)).until;
    expect(namesIn((await branchAt(b, atTime(two))).copy)).toEqual(['one', 'two']);
    const again = await b.start(2);
    await commit(b, again, 'four');
    await b.subject.kill(again);
    await b.untilDead(again);
    await b.start(3);
    await contentOf(b, (await branchAt(b, atTime(asleep))).branchId, ['one', 'two', 'three']);
    const { branchId } = await branchAt(b, aSecondAhead());
    await contentOf(b, branchId, ['one', 'two', 'three', 'four']);
  });

  test('a branch replaced by its own past begins anew, and what it was keeps its past', async () => {
    const b = bench();
    const { one, two } = await threeCommits(b);
    const { branchId: stagingId } = await branchAt(b, atTime(two));
    const keepAs = newBranchId();
    await b.driver.replaceBranch(b.ref, { stagingId, keepAs });
    await keep(b, keepAs);
    expect(namesIn((await branchAt(b, atTime(one), keepAs)).copy)).toEqual(['one']);
    await expect(branchAt(b, atTime(one))).rejects.toThrow(NoSuchMomentError);
    const running = await b.start(2);
    await keep(b);
    await commit(b, running, 'later');
    const { until } = await keep(b);
    await commit(b, running, 'too_late');
    await contentOf(b, (await branchAt(b, atLsn(until))).branchId, ['one', 'two', 'later']);
  });

  test.each(['a branch that is awake', 'a branch that is asleep', 'a moment of the past'])(
    'a copy of %s has a past from its first moment on',
    async (kind) => {
      const b = bench();
      const { two } = await threeCommits(b);
      const isPast = kind === 'a moment of the past';
      if (kind === 'a branch that is asleep') await b.driver.suspend(b.ref, 1);
      const copyId = newBranchId();
      if (isPast) await branchAt(b, atTime(two), b.ref.branchId, copyId);
      else await b.copyBranch(copyId);
      const ref = { ...b.ref, branchId: copyId, endpointId: newEndpointId() };
      const running = await b.start(1, ref);
      const first = new Date();
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(first.getTime() + clockSlackMs));
      await commit(b, running, 'own', ref);
      // Nobody has been asked to keep its history so far.
      const copied = isPast ? ['one', 'two'] : ['one', 'two', 'three'];
      const begin: Moment = { kind: 'time', at: first.toISOString() };
      await contentOf(b, (await branchAt(b, begin, copyId)).branchId, copied);
      expect(namesIn((await branchAt(b, aSecondAhead(), copyId)).copy)).toEqual([...copied, 'own'].sort());
      // Nor do later base images of its own take that moment away.
      for (const _ of [1, 2, 3]) await keep(b, copyId);
      expect(Date.parse((await keep(b, copyId)).from.at)).toBeLessThanOrEqual(first.getTime());
      const again = await branchAt(b, begin, copyId);
      expect(namesIn(again.copy)).toEqual([...copied].sort());
      expect(namesIn((await branchAt(b, aSecondAhead(), again.branchId)).copy)).toEqual([...copied].sort());
    },
  );

  test('a copy of a copy that was never started continues the history of the first', async () => {
    const b = bench();
    const { two } = await threeCommits(b);
    const { branchId: snapshot } = await branchAt(b, atTime(two));
    const { pgVersion } = b.subject;
    const ref = { ...b.ref, branchId: newBranchId(), endpointId: newEndpointId() };
    await b.driver.createBranch({ ...ref, pgVersion, source: { kind: 'branch', branchId: snapshot } });
    const running = await b.start(1, ref);
    await commit(b, running, 'own', ref);
    expect(namesIn((await branchAt(b, aSecondAhead(), ref.branchId)).copy)).toEqual(['one', 'own', 'two']);
    expect((await keep(b, ref.branchId)).gaps).toEqual([]);
  });

  test('a repeated call finds the branch that was made', async () => {
    const b = bench();
    const { two } = await threeCommits(b);
    const { branchId, copy } = await branchAt(b, atTime(two));
    expect((await branchAt(b, atTime(two), b.ref.branchId, branchId)).copy.receipt).toEqual(copy.receipt);
  });

  test('keeping none gives it up, and a removed branch has none', async () => {
    const b = bench();
    const { two } = await threeCommits(b);
    const nothing = { from: null, until: null, gaps: [], baseCount: 0, baseBytes: 0, logBytes: 0 };
    expect(await b.driver.keepHistory(b.ref, { retentionSeconds: 0 })).toEqual(nothing);
    await expect(branchAt(b, atTime(two))).rejects.toThrow(NoSuchMomentError);
    const again = await keep(b);
    expect(Date.parse(again.from.at)).toBeGreaterThanOrEqual(Date.parse(two.at));
    await b.driver.removeBranch(b.ref);
    expect(await b.driver.keepHistory(b.ref, { retentionSeconds: daySeconds })).toBeNull();
    const left = await b.subject.leftovers();
    expect(left.filter((name) => name.includes(b.ref.branchId))).toEqual([]);
  });
}
