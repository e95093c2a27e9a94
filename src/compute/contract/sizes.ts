/** The part of the contract about sizes: limits that change while a server runs, and what it has used. */
import { expect, test } from 'vitest';
import type { Bench } from './bench.ts';
import { ownerAndDatabase, limits as small } from './bench.ts';

const gib = 1024 ** 3;

export function describeSizes(bench: () => Bench): void {
  test('a new size holds for the running server, which is not restarted', async () => {
    const b = bench();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const larger = { ...small, cpus: 1, memoryBytes: 4 * gib, settings: { effective_cache_size: '3GB' } };
    expect(await b.driver.resize(b.ref, 1, larger)).toBe(running.isEnforced ? 'applied' : 'not_enforced');
    expect(await b.driver.observe(b.ref)).toEqual(running);
    const [sample] = await b.driver.sample([b.ref]);
    const inForce = running.isEnforced
      ? { cpus: 1, memoryLimitBytes: 4 * gib }
      : { cpus: null, memoryLimitBytes: null };
    expect(sample).toMatchObject({ endpointId: b.ref.endpointId, isEnforced: running.isEnforced, ...inForce });
    if (b.hasSql && running.isEnforced) {
      const shown = async () => b.query(running, 'SHOW effective_cache_size');
      await expect.poll(shown).toEqual([{ effective_cache_size: '3GB' }]);
    }
    expect(await b.driver.resize(b.ref, 1, small)).toBe(running.isEnforced ? 'applied' : 'not_enforced');
  });

  test('only the generation that runs can be resized', async () => {
    const b = bench();
    await b.started();
    await expect(b.driver.resize(b.ref, 2, small)).rejects.toThrow(/not running/);
    await b.driver.suspend(b.ref, 1);
    await expect(b.driver.resize(b.ref, 1, small)).rejects.toThrow(/not running/);
  });

  test('what does not run has no sample, and a restarted driver reads on', async () => {
    const b = bench();
    expect(await b.driver.sample([b.ref])).toEqual([]);
    const running = await b.started();
    const reopened = b.subject.reopen();
    const [sample] = await reopened.sample([b.ref]);
    expect(sample).toMatchObject({ endpointId: b.ref.endpointId, isEnforced: running.isEnforced, oomKills: 0 });
    if (b.hasSql) {
      // The kernel counts in ticks, and a server that has just started may not have used one.
      await expect.poll(async () => (await reopened.sample([b.ref]))[0]?.cpuSeconds).toBeGreaterThan(0);
      expect(sample?.usedBytes).toBeGreaterThan(1_000_000);
    }
    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.sample([b.ref])).toEqual([]);
  });

  test('a running server tells what it counts about itself, and one that sleeps nothing', async () => {
    const b = bench();
    expect(await b.driver.measure(b.ref)).toBeNull();
    const running = await b.started();
    await b.driver.configure(b.ref, ownerAndDatabase);
    const before = await b.driver.measure(b.ref);
    if (b.hasSql) {
      const work = b.query(running, 'CREATE TABLE t AS SELECT generate_series(1, 10000) AS n; SELECT pg_sleep(1)');
      await expect.poll(async () => (await b.driver.measure(b.ref))?.connectionsActive).toBe(1);
      await work;
      const [max] = (await b.query(running, 'SHOW max_connections')) ?? [];
      expect(before?.connectionsMax).toBe(Number(max?.max_connections));
    }
    // A server publishes its counters with a delay.
    await expect
      .poll(async () => {
        const after = await b.driver.measure(b.ref);
        return {
          transactions: (after?.transactions ?? 0) > (before?.transactions ?? 0),
          blocks: (after?.blocksHit ?? 0) > (before?.blocksHit ?? 0),
          wal: (after?.wal?.bytes ?? 0) - (before?.wal?.bytes ?? 0) > (b.hasSql ? 360_000 : 0),
          sessions: [after?.connectionsActive, after?.connectionsIdle],
        };
      })
      .toEqual({ transactions: true, blocks: true, wal: true, sessions: b.hasSql ? [0, 0] : [1, 2] });
    await b.driver.suspend(b.ref, 1);
    expect(await b.driver.measure(b.ref)).toBeNull();
  });
}
