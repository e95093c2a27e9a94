/** Workers that share a duty: one has it, another takes over, and one that was held up knows. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makeDatabase, type TestDatabase } from '../../test/helpers/database.ts';
import { eventually, stays } from '../../test/helpers/eventually.ts';
import { createLogger } from '../lib/log.ts';
import { machineWatches, type Watches } from '../lib/steady-time.ts';
import { Duty } from './duty.ts';

let made: TestDatabase;
const started: Duty[] = [];
beforeAll(async () => {
  made = await makeDatabase();
});
afterEach(() => Promise.all(started.splice(0).map((duty) => duty.stop())));
afterAll(() => made.drop());

const log = createLogger({ level: 'silent', process: 'test' });

/** `heldMs` is long where nobody is to take over by patience. */
async function start(workerId: string, heldMs = 60_000, watches: Watches = machineWatches): Promise<Duty> {
  const duty = new Duty({ name: 'work', workerId, database: made.database, log, heldMs, watches });
  started.push(duty);
  await duty.start();
  return duty;
}

const isHeld = (duty: Duty) => eventually(() => expect(duty.isHeld).toBe(true));

test('one of two workers has the duty, and the other has it as soon as the first one stops', async () => {
  const first = await start('one');
  await isHeld(first);
  const second = await start('two');
  await stays(() => expect(second.isHeld).toBe(false), 200);
  const waits = second.untilHeld(new AbortController().signal);
  await first.stop();
  await waits;
  expect(second.isHeld).toBe(true);
});

/** What a worker leaves that is killed: nobody renews it, and nobody gives it up. */
async function leaveBehind(workerId: string, seconds: number): Promise<void> {
  const until = made.database.sql`now() + ${seconds} * interval '1 s'`;
  await made.database.sql`insert into duties values ('work', ${workerId}, ${until})`;
}

test('the process in the place of one that has died has its duty at once', async () => {
  await leaveBehind('one', 3_600);
  const successor = await start('one');
  await eventually(() => expect(successor.isHeld).toBe(true));
});

test('another worker takes over when the time is over', async () => {
  await leaveBehind('one', 1);
  const other = await start('two', 300);
  await isHeld(other);
  expect([...(await made.database.sql`select worker_id from duties`)]).toEqual([{ workerId: 'two' }]);
});

test('a worker that was held up knows that it may have lost the duty', async () => {
  let aheadMs = 0;
  const watches = { clockMs: () => Date.now() + aheadMs, passedMs: machineWatches.passedMs };
  const duty = await start('one', 60_000, watches);
  await isHeld(duty);
  aheadMs = 61_000;
  expect(duty.isHeld).toBe(false);
});

test('waiting for the duty ends with the signal', async () => {
  const holder = await start('one');
  await isHeld(holder);
  const second = await start('two');
  const stopping = new AbortController();
  const waits = second.untilHeld(stopping.signal);
  stopping.abort();
  await waits;
  expect(second.isHeld).toBe(false);
});
