import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { updateEndpointOf } from '../core/endpoint-update.ts';
import { selectSizeChanges } from '../db/sizes.ts';
import { createLogger } from '../lib/log.ts';
import { makeAutoscaler } from './autoscaler.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const gib = 1024 ** 3;
let made: TestCore;
beforeAll(async () => {
  made = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => made.close());

/** A compute of 0.25–2 CU on a machine whose time and memory the test decides. */
async function stage(core = made.core, range: { minCu: number; maxCu: number } = { minCu: 0.25, maxCu: 2 }) {
  const driver = new FakeDriver();
  const machine = { free: 20 * gib, at: 0 };
  const { project, endpoint } = await makeProject(made);
  const address = { projectId: project.id, endpointId: endpoint.id };
  await command(made, (scope) => updateEndpointOf(scope, made.caller, address, range));
  await drain(core, driver);
  const autoscaler = makeAutoscaler({
    freeBytes: () => machine.free,
    totalBytes: () => 24 * gib,
    now: () => machine.at,
  });
  const turn = async () => {
    machine.at += 500;
    await autoscaler.turn({ core, driver, log });
  };
  let used = { cpuSeconds: 0, periods: 0, throttledPeriods: 0 };
  /** Half seconds in which it wants as many cores as it can get. */
  const burn = async (times: number) => {
    for (let i = 0; i < times; i++) {
      const cpus = driver.computes.get(endpoint.id)?.limits.cpus ?? 0;
      const { cpuSeconds, periods, throttledPeriods } = used;
      used = { cpuSeconds: cpuSeconds + cpus / 2, periods: periods + 5, throttledPeriods: throttledPeriods + 5 };
      driver.usage.set(endpoint.id, used);
      await turn();
    }
  };
  const row = async () => {
    const [found] = await made.core.database.sql`select * from endpoints where id = ${endpoint.id}`;
    return found;
  };
  const limits = () => driver.computes.get(endpoint.id)?.limits;
  return { driver, project, endpoint, machine, turn, burn, row, limits };
}

describe('the autoscaler', () => {
  test('follows a burst up and comes back, without a restart, and keeps the reasons', async () => {
    const { driver, endpoint, turn, burn, row, limits } = await stage();
    const pid = driver.computes.get(endpoint.id)?.process?.pid;
    await turn();
    await burn(6);
    expect(await row()).toMatchObject({ currentCu: 2 });
    expect(limits()).toMatchObject({ cpus: 2, memoryBytes: 8 * gib, mayGrow: false });
    // Its time until then is charged at the sizes that it had.
    const [metered] = await made.core.database.sql`
      select active_seconds as active, compute_unit_seconds / active_seconds as cu from consumption_hours
      where branch_id = (select branch_id from endpoints where id = ${endpoint.id})`;
    expect(metered?.cu).toBeGreaterThan(0.25);
    expect(metered?.cu).toBeLessThan(1);
    expect(limits()?.settings).toEqual({ effective_cache_size: '6291456kB' });
    for (let i = 0; i < 130; i++) await turn();
    expect(await row()).toMatchObject({ currentCu: 0.25 });
    expect(limits()).toMatchObject({ cpus: 0.25, memoryBytes: gib, mayGrow: true });
    expect(driver.computes.get(endpoint.id)?.process?.pid).toBe(pid);
    const period = { from: new Date(0), to: new Date(Date.now() + 60_000), limit: 100 };
    const changes = await selectSizeChanges(made.core.database.sql, endpoint.id, period);
    expect(changes.map(({ fromCu, toCu }) => [fromCu, toCu]).reverse()).toEqual([
      [0.25, 0.5],
      [0.5, 1],
      [1, 2], // up
      [2, 1],
      [1, 0.5],
      [0.5, 0.25], // down
    ]);
    expect(changes.at(-1)?.reason).toMatch(/^cpu: 0.25 of 0.25 cores used/);
    expect(changes[0]?.reason).toMatch(/^calm/);
  });

  test('a shrink that does not fit yet is asked for again', async () => {
    const { driver, endpoint, turn, burn, limits } = await stage(made.core, { minCu: 0.25, maxCu: 1 });
    await turn();
    await burn(6);
    // It takes memory between the sample and the shrink.
    let held = 3 * gib;
    const isResize = () => driver.calls.at(-1)?.method === 'resize';
    driver.usage.set(endpoint.id, {
      cpuSeconds: 100,
      get usedBytes() {
        return isResize() ? held : 0.1 * gib;
      },
    });
    const resizes = () => driver.calls.filter(({ method }) => method === 'resize').length;
    const before = resizes();
    while (resizes() === before) await turn();
    expect(limits()).toMatchObject({ cpus: 0.5, memoryBytes: 3 * gib });
    await turn();
    expect(resizes()).toBe(before + 2);
    held = 0;
    // Also by a worker that was started meanwhile and does not know of it.
    const other = makeAutoscaler();
    for (let i = 0; i < 2; i++) await other.turn({ core: made.core, driver, log });
    expect(limits()).toMatchObject({ cpus: 0.5, memoryBytes: 2 * gib });
    await turn();
    expect(resizes()).toBe(before + 3);
  });

  test('out of memory, it grows at once; where there is no more memory, the kernel chooses what to end', async () => {
    const { driver, endpoint, machine, turn, row, limits } = await stage();
    await turn();
    driver.usage.set(endpoint.id, { usedBytes: 0.98 * gib, isPaused: true });
    await turn();
    expect(await row()).toMatchObject({ currentCu: 0.5 });
    machine.free = 0;
    driver.usage.set(endpoint.id, { usedBytes: 1.98 * gib, isPaused: true });
    await turn();
    expect(await row()).toMatchObject({ currentCu: 0.5 });
    expect(limits()).toMatchObject({ mayGrow: false });
    driver.usage.set(endpoint.id, { usedBytes: 0.1 * gib });
    await turn();
    expect(limits()).toMatchObject({ mayGrow: true });
  });

  test('a process that the kernel ended is an operation with the reason, once', async () => {
    const { driver, endpoint, turn } = await stage();
    await turn();
    driver.usage.set(endpoint.id, { oomKills: 2, memoryLimitBytes: gib });
    for (let i = 0; i < 3; i++) await turn();
    await drain(made.core, driver);
    const found = await made.core.database.sql`
      select status, error from operations where endpoint_id = ${endpoint.id} and action = 'check_availability'`;
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      status: 'finished',
      error: expect.stringContaining('ended 2 of the server'),
    });
    expect(found[0]?.error).toContain('8192 MiB at 2 CU');
  });

  test('what sleeps, or has a fixed size, is left alone', async () => {
    const { driver, project, endpoint, turn, burn, row } = await stage();
    await turn();
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
    await burn(4);
    expect(await row()).toMatchObject({ currentCu: null, currentState: 'idle' });
    const fixed = await stage(made.core, { minCu: 1, maxCu: 1 });
    await fixed.burn(4);
    expect(await fixed.row()).toMatchObject({ currentCu: 1 });
    expect(fixed.driver.calls.filter(({ method }) => method === 'resize')).toEqual([]);
  });
});

describe('a stated capacity', () => {
  const withCapacity = (capacityCu: number) => ({ ...made.core, config: { ...made.core.config, capacityCu } });

  /** CU that computes of other tests hold: what a capacity has beyond that is this test's alone. */
  async function others(): Promise<number> {
    const [row] = await made.core.database.sql<{ cu: number }[]>`
      select coalesce(sum(coalesce(reserved_cu, min_cu)), 0)::float8 as cu from endpoints
      where current_state = 'active' or reserved_cu is not null`;
    return row?.cu ?? 0;
  }

  test('a compute that does not fit is refused with the numbers, and starts when there is room', async () => {
    const base = await others();
    const core = withCapacity(base + 1);
    const first = await stage(core, { minCu: 1, maxCu: 1 });
    expect(await first.row()).toMatchObject({ currentState: 'active', reservedCu: 1 });
    const second = await stage(core, { minCu: 0.5, maxCu: 0.5 });
    expect(await second.row()).toMatchObject({ currentState: 'idle', pendingState: null, reservedCu: null });
    const [operation] = await made.core.database.sql`
      select status, error from operations where endpoint_id = ${second.endpoint.id} and status = 'error' limit 1`;
    expect(operation?.error).toContain(`hold ${base + 1} of the ${base + 1} CU of this installation`);
    const start = () =>
      command({ ...made, core }, (scope) => startEndpoint(scope, made.caller, second.project.id, second.endpoint.id));
    await expect(start()).rejects.toThrow(/it needs 0.5 CU/);
    await command(made, (scope) => suspendEndpoint(scope, made.caller, first.project.id, first.endpoint.id));
    await drain(core, first.driver);
    await start();
    await drain(core, second.driver);
    expect(await second.row()).toMatchObject({ currentState: 'active', reservedCu: 0.5 });
  });

  test('growth stays within it', async () => {
    const core = withCapacity((await others()) + 1);
    const { turn, burn, row } = await stage(core, { minCu: 0.25, maxCu: 2 });
    await turn();
    await burn(8);
    const { cu } = (
      await made.core.database.sql<{ cu: number }[]>`
      select sum(coalesce(current_cu, min_cu))::float8 as cu from endpoints where current_state = 'active'`
    )[0] ?? {
      cu: 0,
    };
    expect(cu).toBeLessThanOrEqual(core.config.capacityCu);
    expect((await row())?.currentCu).toBeGreaterThan(0.25);
  });
});
