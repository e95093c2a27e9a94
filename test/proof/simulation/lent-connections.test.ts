import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeDatabase, type TestDatabase } from '../../helpers/database.ts';
import { eventually } from '../../helpers/eventually.ts';
import { type Client, LentConnections, openClient } from './lent-connections.ts';

let made: TestDatabase;
let connections: LentConnections;
beforeAll(async () => {
  made = await makeDatabase(1);
  connections = new LentConnections(made.options);
});
afterAll(async () => {
  await connections.close();
  await made.drop();
});

const pidOf = async (client: Client) => (await client<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid ?? 0;

/** Resolves when it waits for a lock that `holder` has; the wait ends with the holder's session. */
async function waitFor(holder: Client, key: number) {
  await holder`select pg_advisory_lock(${key})`;
  const { client } = connections.take();
  const pid = await pidOf(client);
  const waiting = client`select pg_advisory_lock(${key})`.execute();
  await eventually(async () => {
    const [lock] = await connections.control`select 1 from pg_locks where pid = ${pid} and not granted`;
    expect(lock).toBeDefined();
  });
  return { pid, waiting };
}

it('the connection that came back last is lent first', () => {
  const [one, other] = [connections.take(), connections.take()];
  connections.giveBack(one);
  connections.giveBack(other);
  expect(connections.take()).toBe(other);
  expect(connections.take()).toBe(one);
});

it('a server that waits for another one of the ground is locked, and one that is at rest is not', async () => {
  const { client: holder } = connections.take();
  connections.pids.add(await pidOf(holder));
  const { pid, waiting } = await waitFor(holder, 1);
  await eventually(async () => expect(await connections.areLocked([pid])).toBe(true));
  expect(await connections.areLocked([pid, await pidOf(holder)])).toBe(false);
  await holder`select pg_advisory_unlock(1)`;
  await waiting;
  expect(await connections.areLocked([pid])).toBe(false);
});

it('a server that waits for somebody elsewhere goes on by itself', async () => {
  const elsewhere = openClient(made.options, 'elsewhere');
  const { pid, waiting } = await waitFor(elsewhere, 2);
  expect(await connections.areLocked([pid])).toBe(false);
  await elsewhere.end();
  await waiting;
});
