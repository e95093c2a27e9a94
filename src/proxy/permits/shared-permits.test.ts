/** Two proxies with a broker between them, in front of a real Postgres: the connections that they have together. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies, type StartedProxy } from '../../../test/helpers/proxy.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import { PermitBroker, type PermitHolder } from './broker.ts';
import type { PermitAnswer, PermitChannel } from './messages.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());
afterEach(() => proxies.cleanUp());

interface SharingProxy extends StartedProxy {
  /** As when the parent process sees the proxy die. */
  leaveBroker(): void;
}

async function startTwo(sessions: number, limits: Partial<ProxyLimits> = {}): Promise<[SharingProxy, SharingProxy]> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-share-'));
  proxies.onCleanup(() => rm(directory, { recursive: true, force: true }));
  const brokers = {
    servers: new PermitBroker({ permit: 'servers', poolShare: 0.9, ahead: 4 }),
    clients: new PermitBroker({ permit: 'clients', poolShare: 1, ahead: 64 }),
  };
  const sockets = [join(directory, '0'), join(directory, '1')];
  const start = async (number: number): Promise<SharingProxy> => {
    const listeners: ((answer: PermitAnswer) => void)[] = [];
    const holder: PermitHolder = {
      send: (answer) => setImmediate(() => listeners.forEach((listener) => void listener(answer))),
    };
    const permits: PermitChannel = {
      send: (request) => setImmediate(() => brokers[request.permit].handle(holder, request)),
      onAnswer: (listener) => listeners.push(listener),
    };
    const wake = async () => ({ ...proxies.compute, sessions });
    const proxy = await proxies.start({ wake }, { siblings: { number, sockets }, permits, limits });
    return { ...proxy, leaveBroker: () => Object.values(brokers).forEach((broker) => void broker.remove(holder)) };
  };
  return [await start(0), await start(1)];
}

const name = 'shared-permits';
const pooled = (proxy: StartedProxy) => proxies.client(proxy, { application_name: name });
const straight = (proxy: StartedProxy) => proxies.client(proxy, { application_name: name, options: 'endpoint=ep-a' });
const value = async (client: pg.Client, text: string) => Object.values((await client.query(text)).rows[0])[0];

async function servers(): Promise<number> {
  const rows = await proxies.direct`select count(*)::int as n from pg_stat_activity where application_name = ${name}`;
  return Number(rows[0]?.n);
}

it('one pool has nine tenths of the permits in both proxies together, and direct sessions the rest', async () => {
  const [one, other] = await startTwo(10);
  const clients = await Promise.all(Array.from({ length: 24 }, (_, n) => pooled(n % 2 === 0 ? one : other)));
  let begun = 0;
  const all = clients.map((client) => client.query('begin').then(() => (begun += 1)));
  await eventually(() => expect(begun).toBe(9));
  await straight(other);
  expect(await servers()).toBe(10);
  await expect(straight(one)).rejects.toMatchObject({ code: '53300', message: 'sorry, too many clients already' });
  expect(begun).toBe(9);
  // Each transaction that ends lets another one begin, in either proxy.
  await Promise.all(clients.map((client, n) => all[n]?.then(() => client.query('commit'))));
  expect(begun).toBe(24);
  expect(await servers()).toBeLessThanOrEqual(10);
});

it('idle connections of one proxy are closed for the other', async () => {
  const [one, other] = await startTwo(4);
  const clients = await Promise.all([pooled(one), pooled(one), pooled(one)]);
  // In transactions, so that each has a server connection of its own, however busy the machine is.
  for (const client of clients) await client.query('begin');
  expect(await servers()).toBe(3);
  for (const client of clients) await client.query('commit');
  const [first, second] = [await pooled(other), await pooled(other)];
  await first.query('begin');
  await second.query('begin');
  const direct = await straight(other);
  expect(await value(direct, 'select 5')).toBe(5);
  expect(await servers()).toBeLessThanOrEqual(4);
  const held = clients[0]?.query('select 6 as n');
  await first.query('commit');
  expect((await held)?.rows).toEqual([{ n: 6 }]);
});

it('the permits of a proxy are free when it is gone', async () => {
  const [one, other] = await startTwo(2);
  const sessions = [await straight(one), await straight(one)];
  await expect(straight(other)).rejects.toMatchObject({ code: '53300' });
  for (const session of sessions) await session.end();
  one.leaveBroker();
  expect(await value(await straight(other), 'select 7')).toBe(7);
});

it('the clients of an endpoint are counted over both proxies', async () => {
  const [one, other] = await startTwo(4, { pooledPerEndpoint: 3 });
  const clients = [await pooled(one), await pooled(other), await pooled(one)];
  const refusal = { code: '53300', message: 'no more connections allowed' };
  await expect(pooled(one)).rejects.toMatchObject(refusal);
  await expect(pooled(other)).rejects.toMatchObject(refusal);
  await clients[0]?.end();
  await eventually(async () => expect(await value(await pooled(other), 'select 8')).toBe(8));
});
