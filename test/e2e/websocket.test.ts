/** The serverless driver over WebSockets through the whole program, with nothing set but where Catnap is. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { Client, neonConfig, Pool, type PoolClient } from '@neondatabase/serverless';
import { PrismaNeon } from '@prisma/adapter-neon';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/neon-serverless';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startBrowser } from '../helpers/browser.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';

let program: Program;
let projectId: string;
let endpointId: string;
let uri: string;
const before = { wsProxy: neonConfig.wsProxy, useSecureWebSocket: neonConfig.useSecureWebSocket };
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'websocket' } });
  projectId = body.project.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  neonConfig.webSocketConstructor = WebSocket;
  neonConfig.wsProxy = `127.0.0.1:${program.httpPort}/v2`;
  neonConfig.useSecureWebSocket = false;
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  Object.assign(neonConfig, { ...before, webSocketConstructor: undefined });
  await program.destroy();
});

const pooled = () => uri.replace(endpointId, `${endpointId}-pooler`);

function newPool(connectionString: string, max = 5): Pool {
  const pool = new Pool({ connectionString, max });
  pool.on('error', () => {});
  cleanups.push(() => pool.end());
  return pool;
}

async function newClient(connectionString: string, changes: Partial<Client['neonConfig']> = {}): Promise<Client> {
  const client = new Client(connectionString);
  Object.assign(client.neonConfig, changes);
  client.on('error', () => {});
  await client.connect();
  cleanups.push(() => client.end().catch(() => {}));
  return client;
}

async function suspend(): Promise<void> {
  const path = `/projects/${projectId}/endpoints/${endpointId}`;
  await program.settle(projectId);
  await program.api('POST', `${path}/suspend`);
  await eventually(async () =>
    expect((await program.api('GET', path)).body.endpoint).toMatchObject({ current_state: 'idle' }),
  );
}

async function inTransaction(client: PoolClient, work: () => Promise<unknown>): Promise<void> {
  await client.query('begin');
  try {
    await work();
    await client.query('commit');
  } catch (thrown) {
    await client.query('rollback');
    throw thrown;
  }
}

describe.each([
  ['direct', () => uri],
  ['pooled', pooled],
])('the serverless driver on the %s host', (name, uriOf) => {
  it('wakes a sleeping compute with its first query, which it sends with the password', async () => {
    await suspend();
    const pool = newPool(uriOf());
    const { rows } = await pool.query('select $1::text as name, $2::int[] as list', ['Åsa', [1, 2]]);
    expect(rows).toEqual([{ name: 'Åsa', list: [1, 2] }]);
  });

  it('runs transactions whole or not at all', async () => {
    const pool = newPool(uriOf());
    await pool.query(`create table t_${name} (id int primary key)`);
    const client = await pool.connect();
    await inTransaction(client, () => client.query(`insert into t_${name} values (1)`));
    await expect(
      inTransaction(client, async () => {
        await client.query(`insert into t_${name} values (2)`);
        await client.query(`insert into t_${name} values (1)`);
      }),
    ).rejects.toMatchObject({ code: '23505' });
    client.release();
    expect((await pool.query(`select id from t_${name}`)).rows).toEqual([{ id: 1 }]);
  });

  it('is told of a wrong password and of an unknown endpoint in the same words', async () => {
    const wrong = { code: '28P01', message: "password authentication failed for user 'neondb_owner'" };
    await expect(newPool(uriOf().replace(/:[^:@]+@/, ':wrong@')).query('select 1')).rejects.toMatchObject(wrong);
    await expect(newPool(uriOf().replace(endpointId, 'ep-none')).query('select 1')).rejects.toMatchObject(wrong);
  });

  it('gets a result that is larger than every buffer, and sends a parameter that is', async () => {
    const client = await newClient(uriOf());
    const { rows } = await client.query("select repeat('x', 1000) as text from generate_series(1, 20000)");
    expect(rows).toHaveLength(20_000);
    const long = 'y'.repeat(5_000_000);
    expect((await client.query('select length($1) as length', [long])).rows[0].length).toBe(long.length);
  });

  it('cancels a query', async () => {
    const client = await newClient(uriOf());
    const running = client.query('select pg_sleep(60)').catch((error) => error);
    await untilRunning('pg_sleep(60)');
    const canceller = new Client(uriOf());
    Reflect.get(canceller, 'cancel').call(canceller, client, Reflect.get(client, 'activeQuery'));
    expect(await running).toMatchObject({ code: '57014' });
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('serves Drizzle', async () => {
    const table = pgTable(`drizzle_${name}`, { id: integer('id').primaryKey() });
    const db = drizzle(newPool(uriOf()));
    await db.execute(sql`create table ${table} (id int primary key)`);
    await db.transaction(async (tx) => tx.insert(table).values([{ id: 1 }, { id: 2 }]));
    await expect(
      db.transaction(async (tx) => {
        await tx.insert(table).values({ id: 3 });
        tx.rollback();
      }),
    ).rejects.toThrow('Rollback');
    expect(await db.select().from(table).orderBy(table.id)).toEqual([{ id: 1 }, { id: 2 }]);
  });
});

async function untilRunning(query: string): Promise<void> {
  const pool = newPool(uri, 1);
  await eventually(async () => {
    const { rows } = await pool.query("select from pg_stat_activity where query like $1 and state = 'active'", [
      `select ${query}%`,
    ]);
    expect(rows).toHaveLength(1);
  });
}

it('is a session on the direct host: settings stay and notifications arrive', async () => {
  const client = await newClient(uri);
  await client.query("set search_path = 'here'");
  expect((await client.query('show search_path')).rows).toEqual([{ search_path: 'here' }]);
  const heard: unknown[] = [];
  client.on('notification', ({ channel, payload }) => heard.push([channel, payload]));
  await client.query('listen news');
  await newPool(uri).query("notify news, 'hello'");
  await eventually(() => expect(heard).toEqual([['news', 'hello']]));
});

it('ends with the other open sessions when its address is no longer allowed', async () => {
  const ended: string[] = [];
  // Not ended by the test: the drivers would wait for an end that has been.
  for (const [name, client] of [
    ['WebSocket', new Client(uri)],
    ['direct', new pg.Client(uri)],
    ['pooled', new pg.Client(pooled())],
  ] as const) {
    client.on('error', (error: Error) => {
      if (error.message.includes('is not allowed to connect')) ended.push(name);
    });
    await client.connect();
  }
  const allow = async (ips: readonly string[]) =>
    (await program.api('PATCH', `/projects/${projectId}`, { project: { settings: { allowed_ips: { ips } } } })).status;
  expect(await allow(['192.0.2.1'])).toBe(200);
  try {
    await eventually(() => expect([...ended].sort()).toEqual(['WebSocket', 'direct', 'pooled']));
  } finally {
    expect(await allow([])).toBe(200);
  }
});

it('serves the adapter of Prisma', async () => {
  const adapter = await new PrismaNeon({ connectionString: pooled() }).connect();
  cleanups.push(() => adapter.dispose());
  const statement = (text: string) => ({ sql: text, args: [], argTypes: [] });
  await adapter.executeRaw(statement('create table prisma (id int primary key)'));
  const transaction = await adapter.startTransaction();
  await transaction.executeRaw(statement('insert into prisma values (1)'));
  await transaction.commit();
  expect(await adapter.queryRaw(statement('select id from prisma'))).toMatchObject({ rows: [[1]] });
});

describe('wss', () => {
  const certificate = (name: string) => readFile(join(program.home.path, 'certificates', name), 'utf8');
  /** The string for clients that know the endpoint's own host, which need not resolve here. */
  const byHostname = () => uri.replace(/@localhost:\d+/, `@${endpointId}.local.localhost`).replace(/\?.*/, '');

  it('through a reverse proxy needs nothing but the defaults of the driver', async () => {
    const [pem, ca] = await Promise.all(['server.pem', 'ca/ca.crt'].map(certificate));
    const proxy = createTlsServer({ cert: pem, key: pem }, (client) => {
      const catnap = connect(program.httpPort, '127.0.0.1');
      client.on('error', () => catnap.destroy()).pipe(catnap);
      catnap.on('error', () => client.destroy()).pipe(client);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    cleanups.push(() => proxy.close());
    // Trusts Catnap's own authority, and resolves what a name server would.
    const lookup: LookupFunction = (_hostname, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    class TrustingWebSocket extends WebSocket {
      constructor(url: string) {
        super(url, { ca, lookup });
      }
    }
    const { port } = proxy.address() as AddressInfo;
    const client = await newClient(byHostname(), {
      webSocketConstructor: TrustingWebSocket,
      // The default, except for the port, which would be 443.
      wsProxy: (host: string) => `${host}:${port}/v2`,
      useSecureWebSocket: true,
    });
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

/** Bundles the page as a person would, for a browser. */
async function bundlePage(): Promise<string> {
  const entry = fileURLToPath(new URL('../fixtures/serverless-page.ts', import.meta.url));
  const built = await build({
    configFile: false,
    logLevel: 'error',
    build: { write: false, minify: false, lib: { entry, formats: ['iife'], name: 'page' } },
  });
  const [output] = [built].flat();
  const chunk = output && 'output' in output ? output.output[0] : undefined;
  if (chunk?.type !== 'chunk') throw new Error('there is no bundle');
  return chunk.code;
}

it('serves a page of another origin in a browser', async () => {
  const code = await bundlePage();
  const site = createServer((request, response) => {
    const isScript = request.url === '/page.js';
    response.setHeader('content-type', `text/${isScript ? 'javascript' : 'html'}; charset=utf-8`);
    response.end(isScript ? code : '<!doctype html><title>page</title><script src="/page.js"></script>');
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  cleanups.push(() => site.close());
  const browser = await startBrowser();
  cleanups.push(() => browser.close());
  const visitor = await browser.visit({ baseURL: `http://127.0.0.1:${(site.address() as AddressInfo).port}` });
  const page = await visitor.newPage();
  await page.goto('/');
  const call = `runInPage(${JSON.stringify(uri)}, '127.0.0.1:${program.httpPort}/v2')`;
  expect(await page.evaluate(call)).toEqual({
    found: [{ name: 'Åsa' }],
    kept: [{ id: 1 }, { id: 2 }],
    refused: '42703',
  });
});
