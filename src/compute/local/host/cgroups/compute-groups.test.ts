import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, letRun } from '../../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { Bench, limits, ownerAndDatabase, password } from '../../../contract/bench.ts';
import type { ComputeObservation, ComputeSample } from '../../../interface/driver.ts';
import { Cgroups } from './compute-groups.ts';
import { parseMounts, parseOwnGroups } from './locations.ts';

const gib = 1024 ** 3;
const mib = 1024 ** 2;
/** Fast: a thousand bytes at a time, none of them counted. */
const takeBytes = (millions: number) => `octet_length(repeat(repeat('x', 1000), ${millions * 1_000}))`;
const config = { home: '/nowhere/cgroups-test', uids: null };
const problem = await new Cgroups(
  config,
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
    // A process that is just ending has already left its group.
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
      return { b, pid: running.pid, load: Promise.all([burn(running), burn(running)]) };
    });
    const computes = await Promise.all(loaded);
    await preferTree(computes[0]?.pid ?? null);
    const refs = computes.map(({ b }) => b.ref);
    const most = sizes.map(() => 0);
    // The whole machine may stall for a moment: they must reach the quota once, and never exceed it.
    await eventually(async () => {
      const used = await coresUsed(() => subject.driver.sample(refs));
      for (const [index, cpus] of sizes.entries()) {
        most[index] = Math.max(most[index] ?? 0, (used[index] ?? 0) / cpus);
      }
      for (const share of most) expect(share).toBeGreaterThan(0.9);
    });
    for (const share of most) expect(share).toBeLessThan(1.1);
    for (const { b } of computes) await b.driver.suspend(b.ref, 1);
    await Promise.all(computes.map(({ load }) => load));
  }, 60_000);

  test('a shrink below the memory in use is postponed, and done when it is free again', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const large = { ...limits, memoryBytes: 2 * gib };
    expect(await b.driver.resize(b.ref, 1, large)).toBe('applied');
    const holding = b.query(running, `SELECT ${takeBytes(300)}, pg_sleep(2)`);
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
    const wanted = b.query(running, `SELECT ${takeBytes(400)} AS n`);
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
    await expect(b.query(running, `SELECT ${takeBytes(400)}`)).rejects.toThrow();
    expect((await only(b)).oomKills).toBeGreaterThan(0);
    await eventually(async () => expect(await b.query(running, 'SELECT 1 AS n')).toEqual([{ n: 1 }]));
    expect((await b.driver.observe(b.ref)).pid).toBe(running.pid);
  }, 30_000);

  async function only(b: Bench): Promise<ComputeSample> {
    const [sample] = await b.driver.sample([b.ref]);
    if (sample === undefined) throw new Error('it does not run');
    return sample;
  }

  /** Runs until the server goes away. */
  async function burn({ address }: ComputeObservation): Promise<void> {
    if (address === null) throw new Error('it does not run');
    const login = { username: 'owner', password, database: 'app' };
    await subject.query(address, login, 'SELECT count(*) FROM generate_series(1, 10000000000)').catch(() => undefined);
  }
});

/** Gives the tree of a server's group priority over anything else that is busy here: the quota is what is measured. */
async function preferTree(pid: number | null): Promise<void> {
  const own = parseOwnGroups(await readFile(`/proc/${pid}/cgroup`, 'utf8'));
  const mounts = parseMounts(await readFile('/proc/self/mountinfo', 'utf8'));
  const mount = mounts.find(({ version, controllers }) => version === 1 && controllers.includes('cpu'));
  const unified = mounts.find(({ version }) => version === 2);
  const tree = (point = '', group = '') => join(point, dirname(group));
  if (mount) await writeFile(join(tree(mount.point, own.get('cpu')), 'cpu.shares'), '262144');
  else await writeFile(join(tree(unified?.point, own.get('')), 'cpu.weight'), '10000');
}

/** Measured over a time in which quota carried over from one period to the next hardly counts. */
async function coresUsed(sample: () => Promise<ComputeSample[]>): Promise<number[]> {
  const [before, begin] = [await sample(), performance.now()];
  await letRun(3_000);
  const [after, end] = [await sample(), performance.now()];
  return after.map(({ cpuSeconds }, index) => {
    return (cpuSeconds - (before[index]?.cpuSeconds ?? 0)) / ((end - begin) / 1_000);
  });
}
