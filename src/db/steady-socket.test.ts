import { once } from 'node:events';
import { type AddressInfo, connect as connectSocket, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { connect } from './client.ts';

/** Passes on to the tests' own database, and breaks a connection off, as a network does, when it is asked to sleep. */
let relay: Server;
beforeAll(async () => {
  const { path } = inject('systemDatabase');
  relay = createServer((client) => {
    const server = connectSocket(path);
    client.on('error', () => {}).on('close', () => server.destroy());
    server.on('error', () => {}).on('close', () => client.destroy());
    client.on('data', (chunk) => (chunk.includes('pg_sleep') ? client.resetAndDestroy() : server.write(chunk)));
    server.pipe(client);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
});
afterAll(() => relay.close());

function open(poolSize = 1) {
  const { username, password, database } = inject('systemDatabase');
  const { port } = relay.address() as AddressInfo;
  return connect({ url: `postgres://127.0.0.1:${port}`, username, password, database }, poolSize, 'test');
}

test('a statement that comes right behind a broken connection is carried out or fails, and the next ones go on', async () => {
  const sql = open();
  for (let round = 0; round < 10; round++) {
    const later = await sql`select pg_sleep(1)`.catch(() => Promise.allSettled([sql`select 1`, sql`select 2`]));
    expect(later).toHaveLength(2);
    expect(await sql`select 3 as n`).toEqual([{ n: 3 }]);
  }
  await sql.end({ timeout: 0 });
});

test('so is a transaction', async () => {
  const sql = open();
  const lastWord = await sql`select pg_sleep(1)`.catch(() => Promise.allSettled([sql.begin((tx) => tx`select 1`)]));
  expect(lastWord).toHaveLength(1);
  expect(await sql.begin((tx) => tx`select 3 as n`)).toEqual([{ n: 3 }]);
  await sql.end({ timeout: 0 });
});

test('every statement comes to an end, however many connections break', async () => {
  const sql = open(3);
  const ask = (index: number) => (index % 7 === 3 ? sql`select pg_sleep(1)` : sql`select ${index}::int`);
  for (let round = 0; round < 30; round++) {
    const together = Promise.allSettled(Array.from({ length: 20 }, (_, index) => ask(index)));
    const after = Promise.allSettled([ask(3).catch(() => ask(4)), sql.begin((tx) => tx`select 1`)]);
    expect([...(await together), ...(await after)]).toHaveLength(22);
    expect(await sql`select 3 as n`.catch(() => sql`select 3 as n`)).toEqual([{ n: 3 }]);
  }
  await sql.end({ timeout: 0 });
});
