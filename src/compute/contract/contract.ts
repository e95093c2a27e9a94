/**
 * What every compute driver must do, as a suite that each of them runs. Where the subject can `query`, the suite also
 * checks with real SQL; the fake driver has no server to query.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { newBranchId, newEndpointId } from '../../lib/ids.ts';
import type { Inabilities } from '../interface/abilities.ts';
import { Bench, type DriverSubject, ownerAndDatabase } from './bench.ts';
import { describeBranches, describeConfigure } from './catalog.ts';
import { describeFrozen } from './frozen.ts';
import { describeHistory } from './history.ts';
import { describeAccidents, describeGenerations, describeLife } from './life.ts';
import { describeRefusals } from './refusals.ts';
import { describeReplacement } from './replacement.ts';
import { describeReplicas } from './replicas.ts';
import { describeSizes } from './sizes.ts';
import { describeUsersSync } from './users-sync.ts';

/** `cannot` is what the driver says of itself: there the suite asks for a clear refusal that leaves nothing behind. */
export function describeDriverContract(
  name: string,
  makeSubject: () => Promise<DriverSubject>,
  cannot: Inabilities = {},
): void {
  describe(`${name} keeps the driver contract`, () => {
    let subject: DriverSubject;
    const benches: Bench[] = [];
    const bench = () => {
      const made = new Bench(subject);
      benches.push(made);
      return made;
    };
    const removeAll = async () => {
      for (const { driver, ref } of benches.splice(0)) await driver.removeProject(ref);
    };
    beforeAll(async () => {
      subject = await makeSubject();
    });
    // Not at the end: by then dozens of servers would run, and each takes its share of the machine.
    afterEach(removeAll);
    afterAll(() => subject.close());
    describe('branches', () => describeBranches(bench));
    describe('life of a compute', () => describeLife(bench));
    describe('generations', () => describeGenerations(bench));
    describe('configure', () => describeConfigure(bench));
    describe('users', () => describeUsersSync(bench));
    describe('restarts and accidents', () => describeAccidents(bench));
    if (cannot.replicas === undefined) describe('read replicas', () => describeReplicas(bench));
    describe('sizes', () => describeSizes(bench));
    describe('exchange of data', () => describeReplacement(bench));
    if (cannot.history === undefined) describe('history', () => describeHistory(bench));
    if (cannot.frozen === undefined) describe('frozen computes', () => describeFrozen(bench));
    describe('what it cannot do', () => describeRefusals(bench, cannot));
    describe('removal', () => describeRemoval(bench));
    test('with every project removed nothing is left', async () => {
      await bench().started();
      expect(await subject.leftovers()).not.toEqual([]);
      await removeAll();
      expect(await subject.leftovers()).toEqual([]);
      expect(await subject.driver.list()).toEqual([]);
    });
  });
}

function describeRemoval(bench: () => Bench): void {
  test('removeCompute ends the process and keeps the data', async () => {
    const b = bench();
    await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    await b.driver.removeCompute(b.ref);
    await b.driver.removeCompute(b.ref);
    expect(await b.listed()).toBeUndefined();
    const other = { endpointId: newEndpointId() };
    await b.start(1, other);
    expect((await b.driver.readCatalog({ ...b.ref, ...other })).databases).toHaveLength(1);
  });

  test('removeBranch can be repeated', async () => {
    const b = bench();
    await b.createBranch();
    await b.driver.removeBranch(b.ref);
    await b.driver.removeBranch(b.ref);
    await expect(b.driver.start(b.spec(1))).rejects.toThrow(/has no data/);
  });

  test('removeProject leaves nothing of it, and others alone', async () => {
    const b = bench();
    const neighbour = bench();
    await neighbour.started();
    await b.started();
    await b.createBranch(newBranchId());
    await b.driver.removeProject(b.ref);
    await b.driver.removeProject(b.ref);
    expect(await b.listed()).toBeUndefined();
    const left = await b.subject.leftovers();
    expect(left.filter((name) => name.includes(b.ref.projectId))).toEqual([]);
    expect(await neighbour.driver.observe(neighbour.ref)).toMatchObject({ state: 'running' });
  });
}
