import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../../test/helpers/core.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { eventually, stays } from '../../../test/helpers/eventually.ts';
import { testProviders } from '../../../test/helpers/providers.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { startEndpoint, suspendEndpoint } from '../../core/endpoint.ts';
import { enqueue } from '../../core/operation.ts';
import { requestWake } from '../../core/wake.ts';
import { selectEndpointInAnyState } from '../../db/endpoints.ts';
import { lockProject } from '../../db/projects.ts';
import type { ProjectId } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import { jobRegistry } from '../registry.ts';
import { OperationRunner } from '../runner.ts';
import { done, type Step } from '../step.ts';

const concurrency = 2;
const floodSize = 40;

let made: TestCore;
const driver = new FakeDriver();
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

async function makeSleeper() {
  const { project, endpoint } = await makeProject(made);
  await drain(made.core, driver);
  const suspend = () => command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
  const start = () => command(made, (scope) => startEndpoint(scope, made.caller, project.id, endpoint.id));
  const row = () => selectEndpointInAnyState(made.core.database.sql, endpoint.id);
  const wake = async () => {
    expect(await requestWake(made.core, endpoint.id)).toEqual({ kind: 'waking' });
    await eventually(async () => expect((await row())?.address).not.toBeNull());
  };
  return { suspend, start, row, wake };
}

/** Every lane but the reserved one is taken by work that does not end, and there is more of it in the queue. */
async function whileFlooded(work: () => Promise<void>): Promise<void> {
  const { project } = await makeProject(made, 'busy');
  let letGo = () => {};
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let heldUp = 0;
  const endless: Step = async () => {
    heldUp++;
    await released;
    return done();
  };
  const runner = new OperationRunner({
    core: made.core,
    driver,
    providers: testProviders(),
    concurrency,
    urgent: [made.core.database],
    log: createLogger({ level: 'silent', process: 'test' }),
    registry: { ...jobRegistry, check_availability: { steps: { record: endless }, giveUp: async () => {} } },
  });
  await command(made, (scope) => floodWith(scope, project.id));
  await runner.start();
  try {
    await eventually(() => expect(heldUp).toBe(concurrency));
    await work();
    expect(heldUp).toBe(concurrency);
  } finally {
    letGo();
    await runner.stop();
    await drain(made.core, driver);
  }
}

async function floodWith(scope: Parameters<typeof enqueue>[0], projectId: ProjectId, count = floodSize): Promise<void> {
  await lockProject(scope.tx, projectId);
  for (let i = 0; i < count; i++) await enqueue(scope, 'check_availability', { projectId });
}

test('a wake finds a lane free however much else there is to do', async () => {
  const { suspend, wake, row } = await makeSleeper();
  await suspend();
  await drain(made.core, driver);
  expect((await row())?.currentState).toBe('idle');
  await whileFlooded(wake);
  expect((await row())?.currentState).toBe('active');
});

test('one operation at a time has a connection of its own, and those beside it use the pool', async () => {
  const { project } = await makeProject(made, 'beside');
  await drain(made.core, driver);
  const own = { ...made.core.database };
  const hasOwn: boolean[] = [];
  let letGo = () => {};
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const held: Step = async ({ core }) => {
    hasOwn.push(core.database === own);
    await released;
    return done();
  };
  const runner = new OperationRunner({
    core: made.core,
    driver,
    providers: testProviders(),
    concurrency,
    own,
    log: createLogger({ level: 'silent', process: 'test' }),
    registry: { ...jobRegistry, check_availability: { steps: { record: held }, giveUp: async () => {} } },
  });
  await command(made, (scope) => floodWith(scope, project.id, 3));
  const first = runner.runNext();
  const second = runner.runNext();
  await eventually(() => expect(hasOwn).toHaveLength(2));
  letGo();
  expect(await Promise.all([first, second])).toEqual([true, true]);
  expect(await runner.runNext()).toBe(true);
  expect(hasOwn.filter(Boolean)).toHaveLength(2);
  // It is free again.
  expect(hasOwn[2]).toBe(true);
  expect(await runner.runNext()).toBe(false);
});

test('however many proxies ask for a wake at once, and whoever holds the project, one start is queued', async () => {
  const { suspend, row } = await makeSleeper();
  await suspend();
  await drain(made.core, driver);
  const { sql } = made.core.database;
  const asleep = await row();
  if (asleep === undefined) throw new Error('the endpoint is gone');
  const isHeld = made.core.database.transaction(async (tx) => {
    await lockProject(tx, asleep.projectId);
    const asked = Promise.all(Array.from({ length: 5 }, () => requestWake(made.core, asleep.id)));
    await eventually(async () => {
      const [waiting] = await sql`select count(*)::int as count from pg_locks where not granted`;
      expect(waiting?.count).toBeGreaterThan(0);
    });
    return { asked };
  });
  for (const state of await (await isHeld).asked) expect(state).toEqual({ kind: 'waking' });
  expect(await requestWake(made.core, asleep.id)).toEqual({ kind: 'waking' });
  const queued = await sql`
    select job, status, priority, exclusive_keys, shared_keys from operations
    where endpoint_id = ${asleep.id} and finished_at is null`;
  expect(queued).toHaveLength(1);
  await drain(made.core, driver);
  await suspend();
  await drain(made.core, driver);
  // In one statement, with the same effect.
  await Promise.all(Array.from({ length: 5 }, () => requestWake(made.core, asleep.id)));
  const again = await sql`
    select job, status, priority, exclusive_keys, shared_keys from operations
    where endpoint_id = ${asleep.id} and finished_at is null`;
  expect([...again]).toEqual([...queued]);
  await drain(made.core, driver);
});

test('what a wake has to wait for is hurried too', async () => {
  const { suspend, wake, row } = await makeSleeper();
  const before = (await row())?.generation ?? 0;
  await whileFlooded(async () => {
    await suspend();
    await wake();
  });
  expect((await row())?.generation).toBe(before + 1);
});

test('a start that was asked for over the API is hurried by a client who comes', async () => {
  const { suspend, start, wake, row } = await makeSleeper();
  await suspend();
  await drain(made.core, driver);
  const before = (await row())?.generation ?? 0;
  await whileFlooded(async () => {
    await start();
    await wake();
  });
  // One start: the wake has hurried the one that was queued.
  expect(await row()).toMatchObject({ currentState: 'active', generation: before + 1 });
});

test('a worker at rest leaves it to others to look for operations that nobody has announced', async () => {
  const { suspend, start, row } = await makeSleeper();
  await suspend();
  await drain(made.core, driver);
  const quiet = { isSo: true, lanesAtRest: 0 };
  const isQuiet = () => {
    quiet.lanesAtRest++;
    return quiet.isSo;
  };
  // No notification reaches it.
  const deaf = { ...made.core.database, listen: async () => async () => {} };
  const core = { ...made.core, database: deaf };
  const log = createLogger({ level: 'silent', process: 'test' });
  const parts = { core, driver, providers: testProviders(), concurrency, urgent: [deaf], log };
  const runner = new OperationRunner({ ...parts, pollMs: 20, isQuiet });
  await runner.start();
  try {
    await eventually(() => expect(quiet.lanesAtRest).toBe(concurrency + 1));
    await start();
    await stays(async () => expect((await row())?.currentState).toBe('idle'), 200);
    quiet.isSo = false;
    runner.lookAgain();
    await eventually(async () => expect((await row())?.currentState).toBe('active'));
    await suspend();
    await eventually(async () => expect((await row())?.currentState).toBe('idle'));
  } finally {
    await runner.stop();
    await drain(made.core, driver);
  }
});
