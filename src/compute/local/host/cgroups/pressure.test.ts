/** What happens between neighbours when a machine, or a limit, is too small: with real servers and the real kernel. */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, letRun } from '../../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { Bench, limits, ownerAndDatabase } from '../../../contract/bench.ts';
import { Cgroups } from './compute-groups.ts';

const config = { home: '/nowhere/cgroup-pressure-test', uids: null };
const problem = await new Cgroups(
  config,
  () => undefined,
  async () => null,
).problem();

describe.skipIf(problem !== null)(`neighbours (${problem ?? 'permitted'})`, () => {
  let subject: LocalSubject;
  const benches: Bench[] = [];
  /** A server that runs the owner's statements. */
  const started = async () => {
    const b = new Bench(subject);
    benches.push(b);
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    return { b, pid: running.pid, query: (text: string) => b.query(running, text) };
  };
  beforeAll(async () => {
    subject = await makeLocalSubject(17);
  });
  afterAll(async () => {
    for (const { driver, ref } of benches) await driver.removeProject(ref);
    await subject.close();
  });

  test('on a machine that is too small for both, they share it by their sizes', async () => {
    const cores = availableParallelism();
    const computes = await Promise.all([cores, 2 * cores].map(async (cpus) => ({ cpus, ...(await started()) })));
    const burning: Promise<unknown>[] = [];
    for (const { b, cpus, query } of computes) {
      await b.driver.resize(b.ref, 1, { ...limits, cpus });
      const burn = 'SELECT count(*) FROM generate_series(1, 10000000000)';
      for (let i = 0; i < 2 * cores; i++) burning.push(query(burn).catch(() => undefined));
    }
    const refs = computes.map(({ b }) => b.ref);
    const used = async () => (await subject.driver.sample(refs)).map(({ cpuSeconds }) => cpuSeconds);
    await eventually(async () => {
      const before = await used();
      await letRun(2_000);
      const after = await used();
      const [small = 0, large = 0] = after.map((seconds, index) => seconds - (before[index] ?? 0));
      expect(large / small).toBeGreaterThan(1.6);
      expect(large / small).toBeLessThan(2.4);
    });
    for (const { b } of computes) await b.driver.suspend(b.ref, 1);
    await Promise.all(burning);
  });

  test('at its bound of processes a compute refuses connections, and nobody else does', async () => {
    const [full, other] = [await started(), await started()];
    const children = async () => {
      const text = await readFile(`/proc/${full.pid}/task/${full.pid}/children`, 'utf8');
      return text.trim().split(' ').length;
    };
    const processes = 1 + (await children()) + 2;
    await full.b.driver.resize(full.b.ref, 1, { ...limits, processes });
    const sessions = await Promise.allSettled(Array.from({ length: 6 }, () => full.query('SELECT pg_sleep(1) AS n')));
    const taken = sessions.filter(({ status }) => status === 'fulfilled').length;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(6);
    expect(await other.query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
    // The server itself continues, and has room again when sessions have ended.
    await eventually(async () => expect(await full.query('SELECT 1 AS n')).toEqual([{ n: 1 }]));
    expect((await full.b.driver.observe(full.b.ref)).pid).toBe(full.pid);
  });
});
