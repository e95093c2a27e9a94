import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { meterCpu, meterEnd, meterWritten, type Written } from './consumption.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('what a server wrote is charged once, though an earlier measurement arrives after a later one', async () => {
  const { branch } = await makeProject(made);
  const charge = async (written: Written) => {
    const parts = await made.core.database.transaction((tx) => meterWritten(tx, new Map([[branch.id, written]])));
    return parts.map((part) => part.written);
  };
  await charge({ bytes: 100, position: 1_000 });
  expect(await charge({ bytes: 300, position: 1_200 })).toEqual([200]);
  expect(await charge({ bytes: 250, position: 1_150 })).toEqual([]);
  expect(await charge({ bytes: 310, position: 1_210 })).toEqual([10]);
  // A crash resets the sum, and never the position.
  expect(await charge({ bytes: 40, position: 1_260 })).toEqual([40]);
});

test('the CPU of a compute that falls asleep is charged once, though it was sampled meanwhile', async () => {
  const { project, endpoint } = await makeProject(made);
  const { sql } = made.core.database;
  const used = async () => {
    const [row] = await sql`select coalesce(sum(cpu_seconds), 0) as cpu from consumption_hours
      where project_id = ${project.id}`;
    return row?.cpu;
  };
  const [sampled] = await made.core.database.transaction((tx) => meterCpu(tx, new Map([[endpoint.id, 10.5]])));
  expect(sampled?.cpu).toBe(10.5);
  await made.core.database.transaction((tx) =>
    meterEnd(tx, endpoint.id, made.core.clock.now(), { cpuSeconds: 10.4, wal: null }),
  );
  expect(await used()).toBe(0);
  await made.core.database.transaction((tx) =>
    meterEnd(tx, endpoint.id, made.core.clock.now(), { cpuSeconds: 2, wal: null }),
  );
  expect(await used()).toBe(2);
});
