/** Quotas of the month, with a fake driver and a clock that the test moves: used up, refused, raised, over. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { commandScope } from '../core/context.ts';
import { queueStart, startEndpoint } from '../core/endpoint.ts';
import { restartEndpoint } from '../core/endpoint-update.ts';
import { updateProjectOf } from '../core/project.ts';
import { requestWake } from '../core/wake.ts';
import { updateEndpoint } from '../db/endpoints.ts';
import { insertTransfers } from '../db/transfers.ts';
import { createLogger } from '../lib/log.ts';
import { quotas } from './quotas.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => made.close());

/** A project with a quota, whose one compute of 0.25 CU has been awake since `begin`. */
async function stage(quota: Record<string, number>) {
  const driver = new FakeDriver();
  const { project, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const begin = new Date('2026-03-10T10:00:00Z').getTime();
  await sql`update endpoints set started_at = ${new Date(begin)} where id = ${endpoint.id}`;
  const coreAt = (seconds: number) => {
    const clock = { ...made.core.clock, now: () => new Date(begin + seconds * 1_000) };
    return { ...made.core, clock };
  };
  const setQuota = (next: Record<string, number>) =>
    command(made, (scope) => updateProjectOf(scope, made.caller, project.id, { settings: { quota: next } }));
  await setQuota(quota);
  const at = (seconds: number) => {
    const core = coreAt(seconds);
    const act = <T>(work: Parameters<typeof made.core.database.transaction<T>>[0]) => core.database.transaction(work);
    return {
      turn: async () => {
        await quotas.turn({ core, driver, log });
        await drain(core, driver);
      },
      start: () => act((tx) => startEndpoint(commandScope(core, tx), made.caller, project.id, endpoint.id)),
      restart: () => act((tx) => restartEndpoint(commandScope(core, tx), made.caller, project.id, endpoint.id)),
      wake: async () => {
        const { kind } = await requestWake(core, endpoint.id);
        await drain(core, driver);
        return kind;
      },
      /** As the loop does that finds a server gone. */
      recover: async () => {
        const asleep = { currentState: 'idle', address: null } as const;
        await act(async (tx) => queueStart(commandScope(core, tx), await updateEndpoint(tx, endpoint.id, asleep)));
        await drain(core, driver);
      },
    };
  };
  const state = async () => {
    const [row] = await sql`select current_state from endpoints where id = ${endpoint.id}`;
    return row?.currentState;
  };
  const usage = async () => (await sql`select usage from projects where id = ${project.id}`)[0]?.usage;
  const errors = () => sql`select error from operations where endpoint_id = ${endpoint.id} and status = 'error'`;
  return { driver, project, endpoint, at, state, usage, errors, setQuota, sql };
}

const usedUp = (name: string, numbers: string) => expect.stringContaining(`used up its quota ${name} (${numbers})`);

describe('a quota of the month', () => {
  test('suspends the computes once it is used up, and refuses wakes and starts with the reason', async () => {
    const { at, state, usage } = await stage({ active_time_seconds: 60 });
    await at(59).turn();
    expect(await state()).toBe('active');
    await at(61).turn();
    expect(await state()).toBe('idle');
    expect(await usage()).toMatchObject({ active: 61, compute: 61 / 4 });
    const refusal = { kind: 'active_time_quota', message: usedUp('active_time_seconds', '61 of 60 seconds') };
    await expect(at(70).wake()).rejects.toMatchObject(refusal);
    await expect(at(70).start()).rejects.toMatchObject(refusal);
    await expect(at(70).wake()).rejects.toThrow('suspended until 2026-04-01T00:00:00Z, when the next period begins');
    // Nothing that was refused has cost anything.
    expect(await usage()).toMatchObject({ active: 61 });
  });

  test('is over with the month', async () => {
    const { at, state } = await stage({ compute_time_seconds: 10 });
    await at(41).turn();
    expect(await state()).toBe('idle');
    await expect(at(50).wake()).rejects.toMatchObject({ kind: 'compute_time_quota' });
    expect(await at(30 * 86_400).wake()).toBe('waking');
    expect(await state()).toBe('active');
  });

  test.each([
    ['higher', { compute_time_seconds: 11 }],
    ['zero', { compute_time_seconds: 0 }],
    ['absent', {}],
  ])('that becomes %s lets the next client in', async (_, next) => {
    const { at, setQuota, state } = await stage({ compute_time_seconds: 10 });
    await at(41).turn();
    await expect(at(50).wake()).rejects.toMatchObject({ kind: 'compute_time_quota' });
    await setQuota(next);
    expect(await at(51).wake()).toBe('waking');
    await at(52).turn();
    expect(await state()).toBe('active');
  });

  test('counts what proxies sent and servers wrote', async () => {
    const sent = await stage({ data_transfer_bytes: 1_000 });
    const bytes = new Map([[String(sent.endpoint.id), 1_000]]);
    await sent.at(1).turn();
    expect(await sent.state()).toBe('active');
    await insertTransfers(sent.sql, { reporter: randomUUID(), sequence: 1, bytes });
    await sent.at(6).turn();
    expect(await sent.state()).toBe('idle');
    await expect(sent.at(7).start()).rejects.toMatchObject({
      kind: 'data_transfer_quota',
      message: usedUp('data_transfer_bytes', '1000 of 1000 bytes'),
    });
    // The fake writes a kilobyte between two measurements.
    const wrote = await stage({ written_data_bytes: 2_048 });
    for (const seconds of [1, 6, 11]) await wrote.at(seconds).turn();
    expect(await wrote.state()).toBe('idle');
    await expect(wrote.at(12).wake()).rejects.toMatchObject({ kind: 'written_data_quota' });
  });

  test('refuses a restart, and no other way around it starts a server', async () => {
    const { driver, at, endpoint, errors, sql } = await stage({ active_time_seconds: 60 });
    await sql`update projects set usage = '{"period": "2026-03", "active": 60}' where id = ${endpoint.projectId}`;
    await expect(at(61).restart()).rejects.toMatchObject({ kind: 'active_time_quota' });
    // Its server dies before it can be suspended: recovery does not bring it back.
    driver.kill(endpoint.id);
    await at(61).recover();
    expect(driver.computes.get(endpoint.id)?.process).toBeNull();
    expect(await errors()).toMatchObject([{ error: usedUp('active_time_seconds', '60 of 60 seconds') }]);
  });

  test('leaves projects without one, and other projects, alone', async () => {
    const { at, state } = await stage({ active_time_seconds: 0, logical_size_bytes: 1 });
    const other = await stage({ active_time_seconds: 10 });
    await at(1_000_000).turn();
    expect(await state()).toBe('active');
    expect(await other.state()).toBe('idle');
  });
});
