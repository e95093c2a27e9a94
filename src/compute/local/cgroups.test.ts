import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../test/helpers/local-subject.ts';
import { delay } from '../../clock.ts';
import { Bench, limits, ownerAndDatabase, password } from '../contract/bench.ts';
import type { ComputeObservation, ComputeSample } from '../driver.ts';
import { Cgroups } from './cgroups.ts';

const gib = 1024 ** 3;
const mib = 1024 ** 2;
const place = { home: '/nowhere/cgroups-test', uids: null };
const problem = await new Cgroups(
  place,
  () => undefined,
  async () => null,
).problem();

describe.skipIf(problem !== null)(`control groups (${problem ?? 'permitted'})`, () => {
  let subject: LocalSubject;
  const benches: Bench[] = [];
  const bench = () => {
    const made = new Bench(subject);
    benches.push(made);
    return made;
  };
  beforeAll(async () => {
    subject = await makeLocalSubject(17);
  });
  afterAll(async () => {
    for (const { driver, ref } of benches) await driver.removeProject(ref);
    await subject.close();
  });

  test('every process of a server is in its group, which goes when the server stops', async () => {
    const b = bench();
    const running = await b.started();
    expect(running.isEnforced).toBe(true);
    const groups = await readFile(`/proc/${running.pid}/cgroup`, 'utf8');
    const own = groups.split('\n').filter((line) => line.endsWith(`/${b.ref.endpointId}`));
    expect(own.length).toBeGreaterThan(0);
    // A process that is just ending has left its group already.
    await eventually(async () => {
      const children = await readFile(`/proc/${running.pid}/task/${running.pid}/children`, 'utf8');
      for (const pid of children.trim().split(' ')) expect(await readFile(`/proc/${pid}/cgroup`, 'utf8')).toBe(groups);
    });
    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.sample([b.ref])).toEqual([]);
  });

  test('two computes of 0.25 and 0.5 CU under full load use that much of a core', async () => {
    const sizes = [0.25, 0.5];
    const loaded = sizes.map(async (cpus) => {
      const b = bench();
      const running = await b.started();
      await b.driver.configure(b.ref, ownerAndDatabase);
      await b.driver.resize(b.ref, 1, { ...limits, cpus });
      return { b, load: Promise.all([burn(running), burn(running)]) };
    });
    const computes = await Promise.all(loaded);
    const refs = computes.map(({ b }) => b.ref);
    const seen = sizes.map(() => ({ share: 0 }));
    // A busy machine may not give them what they are allowed; they must reach it once, and not exceed it then.
    await eventually(
      async () => {
        const shares = await sharesOverOneSecond(() => subject.driver.sample(refs));
        for (const [index, cpus] of sizes.entries()) {
          seen[index] = { share: Math.max(seen[index]?.share ?? 0, (shares[index] ?? 0) / cpus) };
        }
        for (const { share } of seen) expect(share).toBeGreaterThan(0.9);
      },
      { deadlineMs: 30_000 },
    );
    const later = await sharesOverOneSecond(() => subject.driver.sample(refs));
    for (const [index, cpus] of sizes.entries()) expect((later[index] ?? 0) / cpus).toBeLessThan(1.1);
    for (const { b } of computes) await b.driver.suspend(b.ref, 1);
    await Promise.all(computes.map(({ load }) => load));
  }, 60_000);

  test('a shrink below the memory in use is postponed, and done when it is free again', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const large = { ...limits, memoryBytes: 2 * gib };
    expect(await b.driver.resize(b.ref, 1, large)).toBe('applied');
    const holding = b.query(running, `SELECT length(repeat('x', 300000000)), pg_sleep(2)`);
    const asleep = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
    await eventually(async () => expect(await b.query(running, asleep)).toEqual([{ n: 1 }]));
    expect((await only(b)).usedBytes).toBeGreaterThan(250 * mib);
    const small = { ...limits, memoryBytes: 200 * mib };
    expect(await b.driver.resize(b.ref, 1, small)).toBe('postponed');
    expect((await only(b)).memoryLimitBytes).toBeGreaterThan(250 * mib);
    await holding;
    await eventually(async () => expect(await b.driver.resize(b.ref, 1, small)).toBe('applied'));
    expect((await only(b)).memoryLimitBytes).toBe(200 * mib);
  }, 30_000);

  test('at its limit a compute that may grow waits for it, and loses nothing', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const small = { ...limits, memoryBytes: 200 * mib, mayGrow: true };
    expect(await b.driver.resize(b.ref, 1, small)).toBe('applied');
    const wanted = b.query(running, `SELECT length(repeat('x', 400000000)) AS n`);
    await eventually(async () => expect((await only(b)).isPaused).toBe(true));
    expect(await b.driver.resize(b.ref, 1, { ...small, memoryBytes: 2 * gib })).toBe('applied');
    expect(await wanted).toEqual([{ n: 400_000_000 }]);
    expect(await only(b)).toMatchObject({ oomKills: 0, isPaused: false });
  }, 30_000);

  test('the largest size loses a backend to the kernel, and serves on', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    expect(await b.driver.resize(b.ref, 1, { ...limits, memoryBytes: 200 * mib })).toBe('applied');
    await expect(b.query(running, `SELECT length(repeat('x', 400000000))`)).rejects.toThrow();
    expect((await only(b)).oomKills).toBeGreaterThan(0);
    await eventually(async () => expect(await b.query(running, 'SELECT 1 AS n')).toEqual([{ n: 1 }]));
    expect((await b.driver.observe(b.ref)).pid).toBe(running.pid);
  }, 30_000);

  async function only(b: Bench): Promise<ComputeSample> {
    const [sample] = await b.driver.sample([b.ref]);
    if (sample === undefined) throw new Error('it does not run');
    return sample;
  }

  /** Until the server goes away. */
  async function burn({ address }: ComputeObservation): Promise<void> {
    if (address === null) throw new Error('it does not run');
    const login = { username: 'owner', password, database: 'app' };
    await subject.query(address, login, 'SELECT count(*) FROM generate_series(1, 10000000000)').catch(() => undefined);
  }
});

async function sharesOverOneSecond(sample: () => Promise<ComputeSample[]>): Promise<number[]> {
  const [before, begin] = [await sample(), performance.now()];
  await delay(1_000);
  const [after, end] = [await sample(), performance.now()];
  return after.map(({ cpuSeconds }, index) => {
    return (cpuSeconds - (before[index]?.cpuSeconds ?? 0)) / ((end - begin) / 1_000);
  });
}
