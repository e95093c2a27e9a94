import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import type { RoomObservation } from '../compute/interface/measures.ts';
import type { Core } from '../core/context.ts';
import { startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { createRole } from '../core/role.ts';
import { requestWake } from '../core/wake.ts';
import { selectEndpointInAnyState } from '../db/endpoints.ts';
import { createLogger } from '../lib/log.ts';
import { makeDiskRoom } from './disk-room.ts';
import { makeSizeQuotas } from './size-quotas.ts';

const log = createLogger({ level: 'silent', process: 'test' });
let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

/** The room is one for all computes, and so is the driver that they run on. */
const driver = new FakeDriver();

/** One compute that is awake, beside those of earlier tests. */
async function stage() {
  const { project, branch, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const reconcilers = [makeDiskRoom(), makeSizeQuotas()];
  const turn = async (level: RoomObservation['level'], core: Core = made.core) => {
    driver.room = { ...driver.room, level };
    for (const reconciler of reconcilers) await reconciler.turn({ core, driver, log }).catch(() => undefined);
    await drain(made.core, driver);
  };
  const compute = () => driver.computes.get(endpoint.id);
  const writes = () => compute()?.settings.default_transaction_read_only ?? 'allowed';
  const row = () => selectEndpointInAnyState(made.core.database.sql, endpoint.id);
  const count = (method: string) =>
    driver.calls.filter((call) => call.method === method && call.subject === endpoint.id).length;
  const start = () => command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
  return { project, branch, endpoint, turn, compute, writes, row, count, start };
}

describe('while the disk is nearly full', () => {
  test('writes are off without a restart, and back when there is room', async () => {
    const { turn, writes, row, count } = await stage();
    await turn('enough');
    expect(writes()).toBe('allowed');
    await turn('low');
    await turn('low');
    expect(writes()).toBe('on');
    expect(await row()).toMatchObject({ diskGuard: 'read_only', currentState: 'active' });
    await turn('enough');
    expect(writes()).toBe('allowed');
    expect(await row()).toMatchObject({ diskGuard: null, server: expect.not.objectContaining({ writesOff: true }) });
    expect({ reloads: count('reload'), ended: count('endWriters') }).toEqual({ reloads: 2, ended: 0 });
  });

  test('a compute that wakes meanwhile gets its writes off too', async () => {
    const { endpoint, project, turn, writes, start } = await stage();
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
    await turn('low');
    await start();
    await drain(made.core, driver);
    await turn('low');
    expect(writes()).toBe('on');
    await turn('enough');
    expect(writes()).toBe('allowed');
  });
});

describe('when room is critical', () => {
  test('a session that writes is ended once, and its compute stays', async () => {
    const { endpoint, turn, row, count } = await stage();
    driver.writers.set(endpoint.id, 1);
    await turn('critical');
    expect(count('endWriters')).toBe(1);
    driver.writers.delete(endpoint.id);
    await turn('critical');
    expect(await row()).toMatchObject({ diskGuard: 'read_only', currentState: 'active' });
  });

  test('a compute on which they come again is suspended, and nothing starts it before there is room', async () => {
    const { endpoint, project, branch, turn, compute, row, start } = await stage();
    driver.writers.set(endpoint.id, 1);
    await turn('critical');
    await turn('critical');
    expect(compute()?.process).toBeNull();
    expect(await row()).toMatchObject({ diskGuard: 'held', currentState: 'idle' });
    await turn('low');
    const refused = { kind: 'disk_full', message: expect.stringContaining('stays suspended until there is room') };
    await expect(start()).rejects.toMatchObject(refused);
    await expect(requestWake(made.core, endpoint.id)).rejects.toMatchObject(refused);
    const sleeper = { id: endpoint.id, projectId: project.id, branchId: branch.id, type: 'read_write' } as const;
    await expect(requestWake(made.core, endpoint.id, sleeper)).rejects.toMatchObject(refused);
    // A change of its roles waits for the next start.
    const input = { projectId: project.id, branchId: branch.id, name: 'late', noLogin: false };
    const role = await command(made, (scope) => createRole(scope, made.caller, input));
    expect(role.operations).toEqual([]);
    await turn('enough');
    await start();
    await drain(made.core, driver);
    expect(await row()).toMatchObject({ diskGuard: null, currentState: 'active' });
    expect(compute()?.settings.default_transaction_read_only).toBeUndefined();
  });

  test('a compute whose log goes on growing is suspended, although no session has a transaction that writes', async () => {
    const { turn, row } = await stage();
    const { room } = driver;
    // The log of a fake grows by 1 kB with each look.
    driver.room = { ...room, lowBytes: 8 * 2_048 };
    for (let looks = 0; looks < 3; looks++) await turn('critical');
    expect(await row()).toMatchObject({ diskGuard: 'read_only', currentState: 'active' });
    await turn('critical');
    expect(await row()).toMatchObject({ diskGuard: 'held', currentState: 'idle' });
    driver.room = room;
    await turn('enough');
  });

  test('a compute is stopped even if the system database cannot write', async () => {
    const { endpoint, turn, compute } = await stage();
    await turn('low');
    driver.writers.set(endpoint.id, 1);
    const full = Object.assign(new Error('could not extend file'), { code: '53100' });
    const database = { ...made.core.database, transaction: () => Promise.reject(full) };
    driver.room = { ...driver.room, level: 'critical' };
    const reconciler = makeDiskRoom();
    for (let i = 0; i < 2; i++) await reconciler.turn({ core: { ...made.core, database }, driver, log });
    expect(compute()?.process).toBeNull();
  });
});
