import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually, stays } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import type { Database } from '../db/client.ts';
import { selectEndpointInAnyState } from '../db/endpoints.ts';
import type { EndpointId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { jobRegistry } from '../operations/registry.ts';
import { abandon, type Step } from '../operations/step.ts';
import { routeOf } from './connection.ts';
import type { Core } from './context.ts';
import { suspendEndpoint } from './endpoint.ts';
import { createWaker, Sleepers, type Waker, type WakerOptions } from './wake.ts';

let made: TestCore;
const driver = new FakeDriver();
const log = createLogger({ level: 'silent', process: 'test' });
const wakers: Waker[] = [];
beforeAll(async () => {
  made = await makeCore();
});
afterEach(async () => {
  await Promise.all(wakers.splice(0).map((waker) => waker.close()));
});
afterAll(() => made.close());

async function makeWaker(options: Partial<WakerOptions> = {}, core: Core = made.core): Promise<Waker> {
  const waker = await createWaker(core, { log, ...options });
  wakers.push(waker);
  return waker;
}

async function makeSleeper() {
  const { project, endpoint } = await makeProject(made);
  const nap = async () => {
    await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
    await drain(made.core, driver);
  };
  await drain(made.core, driver);
  await nap();
  const row = async () => {
    const found = await selectEndpointInAnyState(made.core.database.sql, endpoint.id);
    if (found === undefined) throw new Error('the endpoint is gone');
    return found;
  };
  return { id: endpoint.id, projectId: project.id, nap, row };
}

const queued = (id: EndpointId) => made.core.database.sql`
  select job from operations where endpoint_id = ${id} and finished_at is null`;

const untilQueued = (id: EndpointId) => eventually(async () => expect(await queued(id)).toHaveLength(1));

/** The core of a process that gets only the notifications that the test sends. */
function deafCore() {
  const listeners: { channel: string; onMessage: (payload: string) => void }[] = [];
  const listen: Database['listen'] = async (channel, onMessage) => {
    listeners.push({ channel, onMessage });
    return async () => {};
  };
  /** Statements are counted, since a client waits for each. */
  let statements = 0;
  const sql = new Proxy(made.core.database.sql, {
    apply: (target, self, args) => {
      statements++;
      return Reflect.apply(target, self, args);
    },
  });
  const notify = (channel: string, payload: string) => {
    for (const listener of listeners) if (listener.channel === channel) listener.onMessage(payload);
  };
  const core: Core = { ...made.core, database: { ...made.core.database, sql, listen } };
  return { core, notify, statements: () => statements };
}

const routeNews = (id: EndpointId, path: string) =>
  JSON.stringify({ endpointId: id, route: { kind: 'unix', path, sessions: 7 } });

describe('a sleeping endpoint', () => {
  test('is queued once and gets its route from the notification', async () => {
    const { id, row } = await makeSleeper();
    const waker = await makeWaker();
    const waking = waker.wake(id);
    await untilQueued(id);
    await drain(made.core, driver);
    const { route, wasAsleep } = await waking;
    expect(wasAsleep).toBe(true);
    expect(route).toEqual(routeOf(await row()));
    expect(await waker.wake(id)).toEqual({ route, wasAsleep: false });
  });

  test('that is queued costs no other statement when its route is announced', async () => {
    const { id, row } = await makeSleeper();
    const { core, notify, statements } = deafCore();
    const sleepers = new Sleepers();
    const waker = await makeWaker({ sleepers }, core);
    sleepers.note(await row());
    const waking = waker.wake(id);
    await untilQueued(id);
    const whenQueued = statements();
    notify('catnap_routes', routeNews(id, '/announced'));
    expect(await waking).toEqual({ route: { kind: 'unix', path: '/announced', sessions: 7 }, wasAsleep: true });
    expect(statements()).toBe(whenQueued);
    expect(sleepers.take(id)).toBeUndefined();
    await drain(made.core, driver);
  });

  test('is asked for over the connection that is kept for it', async () => {
    const { id } = await makeSleeper();
    const { core, statements } = deafCore();
    const waker = await makeWaker({ connection: made.core.database }, core);
    const waking = waker.wake(id);
    await untilQueued(id);
    await drain(made.core, driver);
    await waking;
    expect(statements()).toBe(0);
  });

  test('comes up although the notification was lost', async () => {
    const { id, row } = await makeSleeper();
    const { core } = deafCore();
    const waking = (await makeWaker({}, core)).wake(id);
    await untilQueued(id);
    await drain(made.core, driver);
    expect((await waking).route).toEqual(routeOf(await row()));
  });

  test('wakes for two who ask, each by itself', async () => {
    const { id, row } = await makeSleeper();
    const waker = await makeWaker();
    const both = [waker.wake(id), waker.wake(id)];
    await untilQueued(id);
    await drain(made.core, driver);
    const route = routeOf(await row());
    for (const { route: found } of await Promise.all(both)) expect(found).toEqual(route);
    expect(
      await made.core.database.sql`
      select 1 from operations where endpoint_id = ${id} and job = 'start_compute' and priority > 0`,
    ).toHaveLength(1);
  });
});

describe('news about an earlier wake', () => {
  test('is not taken for this one', async () => {
    const { id, row } = await makeSleeper();
    const { core, notify } = deafCore();
    // Announced while this wake is still being requested.
    const begin = async () => {
      const asleep = await row();
      const sleepers = new Sleepers();
      sleepers.note(asleep);
      const waker = await makeWaker({ sleepers }, core);
      const waking = waker.wake(id);
      notify('catnap_routes', routeNews(id, '/earlier'));
      return waking;
    };
    const waking = begin();
    await untilQueued(id);
    // The rows are read because of that news, and say that it still wakes.
    const ended = vi.fn();
    void waking.then(ended);
    await stays(() => expect(ended).not.toHaveBeenCalled(), 100);
    await drain(made.core, driver);
    expect((await waking).route).toEqual(routeOf(await row()));
  });

  test('of another endpoint is not taken for this one', async () => {
    const { id, row } = await makeSleeper();
    const other = await makeSleeper();
    const { core, notify } = deafCore();
    const waking = (await makeWaker({}, core)).wake(id);
    await untilQueued(id);
    notify('catnap_routes', routeNews(other.id, '/other'));
    await drain(made.core, driver);
    expect((await waking).route).toEqual(routeOf(await row()));
  });
});

describe('a wake that fails', () => {
  const failing: Step = async () => abandon('no room on this machine');
  const broken = {
    ...jobRegistry,
    start_compute: {
      ...jobRegistry.start_compute,
      steps: Object.fromEntries(Object.keys(jobRegistry.start_compute.steps).map((name) => [name, failing])),
    },
  };

  test('says which operation failed, to the client, and why, to the log', async () => {
    const { id } = await makeSleeper();
    const waker = await makeWaker();
    const waking = waker.wake(id).catch((error: unknown) => error);
    await untilQueued(id);
    await drain(made.core, driver, broken);
    const [operation] = await made.core.database.sql`
      select id, status from operations where endpoint_id = ${id} order by sequence desc limit 1`;
    expect(operation?.status).toBe('error');
    const error = await waking;
    expect(error).toMatchObject({ kind: 'unavailable', cause: 'no room on this machine' });
    expect(String(error)).toContain('the compute could not be started');
    expect(String(error)).toContain(operation?.id);
    // The failure belongs to one wake: the next one is requested anew.
    const again = waker.wake(id);
    await untilQueued(id);
    await drain(made.core, driver);
    expect((await again).wasAsleep).toBe(true);
  });

  test('is refused for a disabled endpoint, and for one that is not there', async () => {
    const { id } = await makeSleeper();
    const waker = await makeWaker();
    await made.core.database.sql`update endpoints set disabled = true where id = ${id}`;
    await expect(waker.wake(id)).rejects.toMatchObject({
      kind: 'precondition_failed',
      message: 'endpoint is disabled',
    });
    await made.core.database.sql`delete from endpoints where id = ${id}`;
    await expect(waker.wake(id)).rejects.toMatchObject({ kind: 'not_found' });
  });

  test('ends when its endpoint is deleted meanwhile', async () => {
    const { id } = await makeSleeper();
    const waking = (await makeWaker()).wake(id).catch((error: unknown) => error);
    await untilQueued(id);
    await made.core.database.sql`delete from endpoints where id = ${id}`;
    expect(await waking).toMatchObject({ kind: 'not_found' });
    await made.core.database.sql`delete from operations where finished_at is null`;
  });
});

test('as many sleepers are remembered as wakes can need, and not more', async () => {
  const { row } = await makeSleeper();
  const seen = await row();
  const sleepers = new Sleepers();
  const ids = Array.from({ length: 1_001 }, (_, at) => `ep-${at}` as EndpointId);
  for (const id of ids) sleepers.note({ ...seen, id });
  expect(ids.filter((id) => sleepers.take(id) !== undefined)).toEqual(['ep-1000']);
});
