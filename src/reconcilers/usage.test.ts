import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { usageAt } from '../db/consumption.ts';
import { selectConsumption } from '../db/consumption-history.ts';
import { lockProject } from '../db/projects.ts';
import { thinSamples } from '../db/samples.ts';
import { insertTransfers } from '../db/transfers.ts';
import { createLogger } from '../lib/log.ts';
import { makeUsage } from './usage.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => made.close());

/** A compute of 0.25 CU, measured when the test asks for it. */
async function stage() {
  const driver = new FakeDriver();
  const { project, branch, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const usage = makeUsage();
  const begin = new Date('2026-03-10T10:00:01Z').getTime();
  await sql`update endpoints set started_at = ${new Date(begin)} where id = ${endpoint.id}`;
  await sql`update branches set logical_size = 3600000 where id = ${branch.id}`;
  const coreAt = (seconds: number) => {
    const clock = { ...made.core.clock, now: () => new Date(begin + seconds * 1_000) };
    return { ...made.core, clock };
  };
  const turnAt = (seconds: number) => usage.turn({ core: coreAt(seconds), driver, log });
  const suspendAt = async (seconds: number) => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(coreAt(seconds), driver);
  };
  const samples = () => sql`select * from endpoint_samples where endpoint_id = ${endpoint.id} order by at`;
  const hours = () => sql`select * from consumption_hours where branch_id = ${branch.id} order by hour`;
  const counters = async () => {
    const [row] = await sql`
      select p.usage as of_project, b.usage as of_branch from projects p join branches b on b.project_id = p.id
      where b.id = ${branch.id}`;
    return row;
  };
  /** Bytes times hours, by hour. */
  const storedAt = async (seconds: number) => {
    const range = {
      from: new Date('2026-03-10T10:00:00Z'),
      to: new Date('2026-03-10T12:00:00Z'),
      unit: 'hour',
    } as const;
    const of = { projectIds: [project.id], branchIds: [branch.id], by: 'branch' } as const;
    const rows = await selectConsumption(sql, { ...of, ...range, now: coreAt(seconds).clock.now() });
    return rows.map(({ rootByteHours }) => Math.round(rootByteHours));
  };
  const parts = { driver, project, branch, endpoint, begin, sql };
  return { ...parts, coreAt, turnAt, suspendAt, samples, hours, storedAt, counters };
}

describe('usage', () => {
  test('time, CPU, written bytes and storage add up by hour, and in the counters of the month', async () => {
    const { driver, endpoint, turnAt, hours, storedAt, counters } = await stage();
    await turnAt(0);
    driver.usage.set(endpoint.id, { cpuSeconds: 4 });
    await turnAt(20);
    await turnAt(60);
    const [hour] = await hours();
    expect(hour).toMatchObject({ activeSeconds: 60, computeUnitSeconds: 15, cpuSeconds: 4, writtenBytes: 2048 });
    expect(await storedAt(60)).toEqual([60_000]);
    const expected = {
      period: '2026-03',
      active: 60,
      compute: 15,
      cpu: 4,
      written: 2048,
      transfer: 0,
      // It goes on: what it comes to is worked out when somebody asks.
      storage: 0,
    };
    expect(await counters()).toEqual({ ofProject: expected, ofBranch: expected });
    await turnAt(3_600);
    expect(await hours()).toHaveLength(2);
  });

  test('what proxies sent is charged once, however often it is reported, and whoever reports it', async () => {
    const { endpoint, turnAt, suspendAt, hours, counters, sql } = await stage();
    const [one, other] = [randomUUID(), randomUUID()];
    const report = (reporter: string, sequence: number, bytes: number) =>
      insertTransfers(sql, { reporter, sequence, bytes: new Map([[endpoint.id, bytes]]) });
    await report(one, 1, 100);
    await report(other, 1, 20);
    await turnAt(0);
    // Its answer was lost: by now the worker has counted it.
    await report(one, 1, 100);
    await report(one, 2, 3);
    await turnAt(15);
    expect((await hours())[0]).toMatchObject({ transferBytes: 123 });
    expect(await counters()).toMatchObject({ ofProject: { transfer: 123 }, ofBranch: { transfer: 123 } });
    await suspendAt(20);
    await insertTransfers(sql, { reporter: one, sequence: 3, bytes: new Map([['ep-gone', 5]]) });
    await report(other, 2, 7);
    await turnAt(30);
    expect(await counters()).toMatchObject({ ofProject: { transfer: 130 } });
    expect(await sql`select 1 from transfers`).toHaveLength(0);
  });

  test('a project that somebody is at work on is not waited for, and charged at the next look', async () => {
    const { project, turnAt, hours, sql } = await stage();
    await turnAt(0);
    await made.core.database.transaction(async (tx) => {
      await lockProject(tx, project.id);
      await turnAt(20);
      // None of its rows is locked either: a command that holds the project goes on to its computes.
      await tx`select 1 from endpoints where project_id = ${project.id} for update nowait`;
    });
    const seconds = async () => (await hours()).reduce((sum, { activeSeconds }) => sum + Number(activeSeconds), 0);
    expect(await seconds()).toBe(0);
    await turnAt(30);
    expect(await seconds()).toBe(30);
    expect((await sql`select 1 from projects where id = ${project.id} for update nowait`).length).toBe(1);
  });

  test('a compute is charged up to its end, also when it wakes again before anybody looked', async () => {
    const { driver, project, endpoint, coreAt, turnAt, suspendAt, hours } = await stage();
    driver.usage.set(endpoint.id, { cpuSeconds: 4 });
    await turnAt(0);
    driver.usage.set(endpoint.id, { cpuSeconds: 6 });
    await suspendAt(9);
    expect((await hours())[0]).toMatchObject({ activeSeconds: 9, computeUnitSeconds: 2.25, cpuSeconds: 6 });
    driver.usage.set(endpoint.id, { cpuSeconds: 7 });
    await command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(coreAt(9), driver);
    await turnAt(15);
    expect((await hours())[0]).toMatchObject({ activeSeconds: 15, computeUnitSeconds: 3.75, cpuSeconds: 13 });
  });

  test('a sleeping compute costs no time, and a new month begins at nothing', async () => {
    const { driver, project, endpoint, coreAt, turnAt, suspendAt, hours, counters, sql } = await stage();
    await turnAt(0);
    await suspendAt(5);
    for (const seconds of [15, 30, 600]) await turnAt(seconds);
    expect((await hours())[0]).toMatchObject({ activeSeconds: 5 });
    const later = 30 * 86_400;
    await turnAt(later);
    const before = await counters();
    expect(usageAt(before?.ofProject, coreAt(later).clock.now())).toEqual({});
    await command({ core: coreAt(later) }, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(coreAt(later), driver);
    await sql`update endpoints set started_at = ${coreAt(later).clock.now()} where id = ${endpoint.id}`;
    await suspendAt(later + 7);
    expect(await counters()).toMatchObject({ ofProject: { period: '2026-04', active: 7 } });
  });

  test('a size counts until another one is seen, in the hours in which it was there', async () => {
    const { branch, turnAt, suspendAt, storedAt, counters, sql } = await stage();
    await turnAt(0);
    await suspendAt(10);
    await sql`update branches set logical_size = 3600000 where id = ${branch.id}`;
    await turnAt(60);
    await sql`update branches set logical_size = 7200000 where id = ${branch.id}`;
    expect(await storedAt(3_609)).toEqual([3_599_000, 10_000]);
    await turnAt(3_610);
    expect(await counters()).toMatchObject({ ofProject: { storage: expect.closeTo(3_610_000, 0) } });
    expect(await storedAt(3_700)).toEqual([3_599_000, 191_000]);
  });

  test('samples carry what kernel and server say, and are thinned with age', async () => {
    const { driver, endpoint, begin, turnAt, samples, sql } = await stage();
    driver.usage.set(endpoint.id, { cpuSeconds: 4, usedBytes: 7, cacheBytes: 8, workingSetBytes: 5 });
    for (let seconds = 0; seconds < 600; seconds += 15) await turnAt(seconds);
    const rows = await samples();
    expect(rows).toHaveLength(40);
    expect(rows[0]).toMatchObject({
      resolution: 600,
      cu: 0.25,
      cpuSeconds: 4,
      memoryBytes: 7,
      cacheBytes: 8,
      workingSetBytes: 5,
      connectionsActive: 1,
      connectionsIdle: 2,
      connectionsMax: 112,
      databaseBytes: 3_600_000,
    });
    expect(rows[1]).toMatchObject({ resolution: 15, connectionsActive: null });
    expect(rows[4]).toMatchObject({ resolution: 60, transactions: 20, blocksHit: 1_800 });
    const kept = async (hoursLater: number) => {
      await thinSamples(sql, new Date(begin + hoursLater * 3_600_000));
      return (await samples()).length;
    };
    expect([await kept(0.5), await kept(2), await kept(26), await kept(8 * 24)]).toEqual([40, 10, 1, 0]);
  });

  test('a compute that is not held to its size is put right, a sleeping one is not asked', async () => {
    const { driver, endpoint, turnAt, suspendAt } = await stage();
    driver.usage.set(endpoint.id, { cpus: null });
    await turnAt(0);
    expect(driver.calls.filter(({ method }) => method === 'resize')).toHaveLength(1);
    await suspendAt(15);
    driver.calls.splice(0);
    await turnAt(60);
    expect(driver.calls.filter(({ subject }) => subject === endpoint.id)).toEqual([]);
  });
});
