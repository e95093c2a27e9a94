import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeDatabase, type TestDatabase } from '../../test/helpers/database.ts';
import { eventually, letRun } from '../../test/helpers/eventually.ts';
import type { Database } from './client.ts';
import { type Followed, type Follower, follow, followKeys, type Interest } from './follow.ts';

/** Longer than any of these tests lasts: what happens was not caused by the poll. */
const neverMs = 600_000;

/** Notifications without a database: those that a test sends, and no others. */
function makeListens() {
  const listeners = new Map<string, Set<(payload: string) => void>>();
  const listen: Database['listen'] = async (channel, onMessage) => {
    if (channel === 'broken') throw new Error('the system database is away');
    const ofChannel = listeners.get(channel) ?? new Set();
    listeners.set(channel, ofChannel.add(onMessage));
    return async () => void ofChannel.delete(onMessage);
  };
  const notify = (channel: string, payload = 'x') => {
    for (const onMessage of listeners.get(channel) ?? []) onMessage(payload);
  };
  const count = () => [...listeners.values()].reduce((sum, { size }) => sum + size, 0);
  return { listen, notify, count };
}

/** Work that the test ends. */
function makeWork() {
  const ends: (() => void)[] = [];
  let most = 0;
  let begun = 0;
  return {
    run: async () => {
      begun++;
      most = Math.max(most, ends.length + 1);
      await new Promise<void>((resolve) => ends.push(resolve));
    },
    end: () => ends.shift()?.(),
    begun: () => begun,
    most: () => most,
  };
}

const tick = () => letRun(5);

describe('follow', () => {
  const running: Follower[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((follower) => follower.stop()));
  });
  const start = async (listens: Pick<Database, 'listen'>, given: Partial<Followed>) => {
    const follower = await follow(listens, {
      channels: ['a'],
      pollMs: neverMs,
      run: async () => {},
      onFailure: (error) => {
        throw error;
      },
      ...given,
    });
    running.push(follower);
    return follower;
  };
  const counting = () => {
    let runs = 0;
    const run = async () => {
      runs++;
    };
    return { run, runs: () => runs };
  };

  test('runs at once, and again with each notification on any channel, whatever it says', async () => {
    const listens = makeListens();
    const { run, runs } = counting();
    await start(listens, { channels: ['a', 'b'], run });
    expect(runs()).toBe(1);
    listens.notify('a');
    await tick();
    expect(runs()).toBe(2);
    listens.notify('b');
    await tick();
    expect(runs()).toBe(3);
    // The subscription was broken and is made anew.
    listens.notify('a', '');
    await tick();
    expect(runs()).toBe(4);
    await tick();
    expect(runs()).toBe(4);
  });

  test('starts a run before a timer could fire', async () => {
    const listens = makeListens();
    const { run, runs } = counting();
    await start(listens, { run });
    await tick();
    listens.notify('a');
    await new Promise((resolve) => setImmediate(resolve));
    expect(runs()).toBe(2);
  });

  test('polls for what no notification announced', async () => {
    const { run, runs } = counting();
    await start(makeListens(), { run, pollMs: 5 });
    await eventually(() => expect(runs()).toBeGreaterThan(3));
  });

  test('runs at once when it is nudged', async () => {
    const { run, runs } = counting();
    const follower = await start(makeListens(), { run });
    follower.nudge();
    await tick();
    expect(runs()).toBe(2);
  });

  test('never runs twice at a time, and once more for all that came during a run', async () => {
    const listens = makeListens();
    const work = makeWork();
    const follower = await start(listens, { run: work.run });
    listens.notify('a');
    listens.notify('a');
    follower.nudge();
    await tick();
    expect(work.begun()).toBe(1);
    work.end();
    await tick();
    expect([work.begun(), work.most()]).toEqual([2, 1]);
    work.end();
    await tick();
    expect(work.begun()).toBe(2);
  });

  test('reports a run that failed, and goes on', async () => {
    const listens = makeListens();
    const failures: unknown[] = [];
    let runs = 0;
    const run = async () => {
      runs++;
      throw new Error(`run ${runs}`);
    };
    await start(listens, { run, onFailure: (error) => failures.push(error) });
    await tick();
    listens.notify('a');
    await tick();
    expect(failures).toEqual([new Error('run 1'), new Error('run 2')]);
  });

  test('gathers a burst into one run, which a trickle does not put off', async () => {
    const listens = makeListens();
    const { run, runs } = counting();
    await start(listens, { run, gatherMs: 60 });
    const begunAt = performance.now();
    const trickle = setInterval(() => listens.notify('a'), 5);
    try {
      await eventually(() => expect(runs()).toBe(2), { everyMs: 1 });
      expect(performance.now() - begunAt).toBeGreaterThan(55);
      await eventually(() => expect(runs()).toBe(3), { everyMs: 1 });
    } finally {
      clearInterval(trickle);
    }
  });

  test('stops after the run that is under way, which can see it coming', async () => {
    const listens = makeListens();
    const work = makeWork();
    let signal: AbortSignal | undefined;
    const run = (stopping: AbortSignal) => {
      signal = stopping;
      return work.run();
    };
    const follower = await start(listens, { run });
    let isStopped = false;
    const stopped = follower.stop().then(() => {
      isStopped = true;
    });
    await tick();
    expect([isStopped, signal?.aborted]).toEqual([false, true]);
    work.end();
    await stopped;
    expect(listens.count()).toBe(0);
    follower.nudge();
    await tick();
    expect(work.begun()).toBe(1);
  });

  test('leaves no subscription behind when one of them cannot be made', async () => {
    const listens = makeListens();
    const { run, runs } = counting();
    await expect(start(listens, { channels: ['a', 'broken'], run })).rejects.toThrow('is away');
    expect([listens.count(), runs()]).toEqual([0, 0]);
  });
});

describe('followKeys', () => {
  const told = (payload: string) => {
    const [key = '', value] = payload.split('=');
    return { key, told: value ?? null };
  };
  const make = async () => {
    const listens = makeListens();
    const news = await followKeys(listens, { a: told, b: told });
    return { ...listens, news };
  };
  /** True when the wait has ended before long. */
  const ends = (wait: Promise<void>) => Promise.race([wait.then(() => true), letRun(20).then(() => false)]);

  test('ends the waits for the key that the notification names, and no others', async () => {
    const { news, notify } = await make();
    const [one, same, other] = [news.interestIn('one'), news.interestIn('one'), news.interestIn('other')];
    const waits = [one, same, other].map((interest) => ends(interest.wait(neverMs)));
    notify('b', 'one');
    expect(await Promise.all(waits)).toEqual([true, true, false]);
  });

  test('ends every wait when the subscription was broken', async () => {
    const { news, notify } = await make();
    const waits = ['one', 'other'].map((key) => ends(news.interestIn(key).wait(neverMs)));
    notify('a', '');
    expect(await Promise.all(waits)).toEqual([true, true]);
  });

  test('ends a wait when its time is up', async () => {
    const { news } = await make();
    expect(await ends(news.interestIn('one').wait(1))).toBe(true);
  });

  test('keeps what came between two waits, once', async () => {
    const { news, notify } = await make();
    const interest = news.interestIn('one');
    notify('a', 'one');
    notify('a', 'one');
    expect(await ends(interest.wait(neverMs))).toBe(true);
    expect(await ends(interest.wait(neverMs))).toBe(false);
  });

  test('passes on the newest thing that was said, until it is forgotten', async () => {
    const { news, notify } = await make();
    const interest: Interest<string> = news.interestIn('one');
    notify('a', 'one=1');
    notify('a', 'one=2');
    notify('b', 'one');
    notify('a', 'other=3');
    expect(interest.told).toBe('2');
    interest.forgetTold();
    expect(interest.told).toBeNull();
    expect(await ends(interest.wait(neverMs))).toBe(true);
  });

  test('forgets an interest that has ended, and keeps the others in its key', async () => {
    const { news, notify, count } = await make();
    const [one, same] = [news.interestIn('one'), news.interestIn('one')];
    one.end();
    one.end();
    notify('a', 'one=1');
    expect([one.told, same.told]).toEqual([null, '1']);
    same.end();
    const later = news.interestIn('one');
    one.end();
    notify('a', 'one=2');
    expect(later.told).toBe('2');
    await news.close();
    expect(count()).toBe(0);
  });
});

describe('over a real connection', () => {
  let made: TestDatabase;
  beforeAll(async () => {
    made = await makeDatabase(3);
  });
  afterAll(() => made.drop());

  test('notifications arrive, also after the connection was lost', async () => {
    const { database } = made;
    let runs = 0;
    const run = async () => {
      runs++;
    };
    const follower = await follow(database, { channels: ['work'], pollMs: neverMs, run, onFailure: () => {} });
    const news = await followKeys(database, { keys: (payload) => ({ key: payload, told: null }) });
    const interest = news.interestIn('one');
    await interest.wait(20);
    const before = runs;
    await database.sql`select pg_notify('work', 'x'), pg_notify('keys', 'one')`;
    await interest.wait(neverMs);
    await eventually(() => expect(runs).toBeGreaterThan(before));
    const beforeLoss = runs;
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'`;
    // No notification is sent: the new subscription itself means that something may be lost.
    await interest.wait(neverMs);
    await eventually(() => expect(runs).toBeGreaterThan(beforeLoss));
    await follower.stop();
    await news.close();
  });
});
