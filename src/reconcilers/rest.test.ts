import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { eventually, stays } from '../../test/helpers/eventually.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { suspendEndpoint } from '../core/endpoint.ts';
import { isAnythingGoingOn } from '../db/going-on.ts';
import { operationsChannel } from '../db/operations.ts';
import { createLogger } from '../lib/log.ts';
import { startReconcilers } from './reconciler.ts';
import { Rest } from './rest.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const longMs = 3_600_000;

let made: TestCore;
const driver = new FakeDriver();
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

const goesOn = () => isAnythingGoingOn(made.core.database.sql, made.core.clock.now());

async function makeSleeper() {
  const { project, endpoint, branch } = await makeProject(made);
  await drain(made.core, driver);
  await command(made, (scope) => suspendEndpoint(scope, made.caller, project.id, endpoint.id));
  await drain(made.core, driver);
  return { project, endpoint, branch };
}

/** A loop that counts its turns, and may rest for an hour. */
async function startCounting(lookMs: number) {
  const rest = new Rest({ core: made.core, log });
  await rest.start(lookMs);
  const turns = { count: 0 };
  const turn = async () => void turns.count++;
  const loops = startReconcilers(
    [{ name: 'count', everyMs: 10, restMs: longMs, turn }],
    { ...made, driver, log },
    rest,
    { isHeld: true, untilHeld: async () => {} },
  );
  const stop = async () => {
    await rest.stop();
    await loops.stop();
  };
  /** Resolves when it rests. */
  const untilRest = () =>
    eventually(async () => {
      const before = turns.count;
      await stays(() => expect(turns.count).toBe(before), 100);
    });
  return { turns, stop, stopLoops: () => loops.stop(), untilRest };
}

test('nothing goes on when everything sleeps, and something does as soon as a compute is awake', async () => {
  const { endpoint } = await makeSleeper();
  const { sql } = made.core.database;
  expect(await goesOn()).toBe(false);
  await sql`update endpoints set current_state = 'active' where id = ${endpoint.id}`;
  expect(await goesOn()).toBe(true);
  await sql`update endpoints set current_state = 'idle' where id = ${endpoint.id}`;
  expect(await goesOn()).toBe(false);
});

test('something goes on when the time of a sleeping branch has come', async () => {
  const { branch } = await makeSleeper();
  const { sql } = made.core.database;
  await sql`update branches set expires_at = now() + interval '1 hour' where id = ${branch.id}`;
  expect(await goesOn()).toBe(false);
  await sql`update branches set expires_at = now() - interval '1 hour' where id = ${branch.id}`;
  expect(await goesOn()).toBe(true);
  await sql`update branches set expires_at = null where id = ${branch.id}`;
});

test('loops rest while all sleeps, and a notification ends that at once', async () => {
  await makeSleeper();
  const { turns, stop, untilRest } = await startCounting(20);
  try {
    await untilRest();
    const before = turns.count;
    await made.core.database.sql`select pg_notify(${operationsChannel}, '')`;
    await eventually(() => expect(turns.count).toBeGreaterThan(before));
    await untilRest();
  } finally {
    await stop();
  }
});

test('a compute that is awake ends the rest even if no notification came', async () => {
  const { endpoint } = await makeSleeper();
  const { turns, stop, untilRest } = await startCounting(20);
  const { sql } = made.core.database;
  try {
    await untilRest();
    const before = turns.count;
    await sql`update endpoints set current_state = 'active' where id = ${endpoint.id}`;
    await eventually(() => expect(turns.count).toBeGreaterThan(before + 5));
    await sql`update endpoints set current_state = 'idle' where id = ${endpoint.id}`;
    await untilRest();
  } finally {
    await stop();
  }
});

test('a loop ends in the middle of its rest, whether or not the rest is over', async () => {
  const { stopLoops, stop, untilRest } = await startCounting(20);
  await untilRest();
  await stopLoops();
  await stop();
  expect(await goesOn()).toBe(false);
});

test('turns wait for each other while all sleeps, and for nothing once something goes on', async () => {
  await makeSleeper();
  let ends = 0;
  const rest = new Rest({ core: made.core, log, onEnd: () => void ends++ });
  await rest.start(20);
  try {
    await eventually(() => expect(rest.isQuiet).toBe(true));
    const begun: string[] = [];
    const finish = new Map<string, () => void>();
    const turn = (name: string) =>
      rest.turn(() => {
        begun.push(name);
        return new Promise((resolve) => finish.set(name, resolve));
      });
    const turns = ['first', 'second', 'third'].map(turn);
    await eventually(() => expect(begun).toEqual(['first']));
    await stays(() => expect(begun).toEqual(['first']), 50);
    finish.get('first')?.();
    await eventually(() => expect(begun).toEqual(['first', 'second']));
    expect(ends).toBe(0);
    await made.core.database.sql`select pg_notify(${operationsChannel}, '')`;
    await eventually(() => expect(begun).toEqual(['first', 'second', 'third']));
    expect(ends).toBe(1);
    for (const end of finish.values()) end();
    await Promise.all(turns);
  } finally {
    await rest.stop();
  }
});
