/** Quotas with real servers and real clients: used up, refused everywhere, raised; and a branch that is too large. */
import { Client as ServerlessClient } from '@neondatabase/serverless';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';

let program: Program;
const clients: pg.Client[] = [];

beforeAll(async () => {
  program = await Program.create({ CATNAP_PROXIES: '2' });
  await program.start();
});
afterAll(async () => {
  for (const client of clients) await client.end().catch(() => {});
  await program.destroy();
});

async function makeProject(quota: Record<string, number>) {
  const { body } = await program.api('POST', '/projects', { project: { settings: { quota } } });
  const [base, endpointId, uri] = [
    `/projects/${body.project.id}`,
    body.endpoints[0].id,
    new URL(body.connection_uris[0].connection_uri),
  ];
  const pooled = new URL(String(uri).replace(endpointId, `${endpointId}-pooler`));
  const look = async () => (await program.api('GET', `${base}/endpoints/${endpointId}`)).body.endpoint;
  return {
    base,
    uri: String(uri),
    pooled: String(pooled),
    look,
    project: async () => (await program.api('GET', base)).body.project,
    branch: async () => (await program.api('GET', `${base}/branches/${body.branch.id}`)).body.branch,
    start: () => program.api('POST', `${base}/endpoints/${endpointId}/start`),
    setQuota: (next: object) => program.api('PATCH', base, { project: { settings: { quota: next } } }),
    untilIdle: () => eventually(async () => expect((await look()).current_state).toBe('idle'), { everyMs: 100 }),
  };
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

/** One statement over a WebSocket. */
async function askOverWebSocket(uri: string, text: string): Promise<void> {
  const client = new ServerlessClient(uri);
  const wsProxy = `127.0.0.1:${program.httpPort}/v2`;
  Object.assign(client.neonConfig, { webSocketConstructor: WebSocket, wsProxy, useSecureWebSocket: false });
  client.on('error', () => {});
  await client.connect();
  await client.query(text).finally(() => client.end());
}

async function sqlOverHttp(uri: string, ...queries: readonly string[]) {
  const statements = queries.map((query) => ({ query, params: [] }));
  const response = await fetch(`http://127.0.0.1:${program.httpPort}/sql`, {
    method: 'POST',
    headers: { 'neon-connection-string': uri, 'content-type': 'application/json' },
    body: JSON.stringify(statements.length === 1 ? statements[0] : { queries: statements }),
  });
  return { status: response.status, body: (await response.json()) as { results?: { command: string }[] } };
}

const bytes = (count: number) => `select repeat('x', ${count}) as x`;

describe.concurrent('a quota of the month', () => {
  it('on transfer counts both hosts, WebSockets and /sql, cuts and refuses everybody, and ends when it is raised', async () => {
    const made = await makeProject({ data_transfer_bytes: 1_200_000 });
    // On a busy machine the proxies may be slow to agree on how many clients there are, and refuse the first.
    const [direct, pooled] = [await connect(made.uri), await eventually(() => connect(made.pooled))];
    await direct.query(bytes(300_000));
    await pooled.query(bytes(300_000));
    await askOverWebSocket(made.uri, bytes(300_000));
    expect((await made.project()).quota_exceeded).toBeUndefined();
    const cut = new Promise<{ code?: string }>((resolve) => direct.once('error', resolve));
    expect((await sqlOverHttp(made.uri, bytes(300_000))).status).toBe(200);
    await made.untilIdle();
    expect((await cut).code).toBe('57P01');
    const { data_transfer_bytes: used, quota_exceeded: exceeded } = await made.project();
    expect(used).toBeGreaterThan(1_200_000);
    expect(used).toBeLessThan(1_210_000);
    expect(exceeded).toMatchObject({ name: 'data_transfer_bytes', limit: 1_200_000 });
    // The farewell of the server may be counted a moment later.
    await eventually(async () =>
      expect((await made.branch()).data_transfer_bytes).toBe((await made.project()).data_transfer_bytes),
    );
    const message = expect.stringMatching(/used up its quota data_transfer_bytes \(\d+ of 1200000 bytes\)/);
    const refusal = { code: '53400', message };
    await expect(connect(made.uri)).rejects.toMatchObject(refusal);
    await expect(pooled.query('select 1')).rejects.toMatchObject(refusal);
    expect((await sqlOverHttp(made.uri, 'select 1')).body).toMatchObject(refusal);
    const started = await made.start();
    expect([started.status, started.body]).toMatchObject([422, { code: 'DATA_TRANSFER_QUOTA_EXCEEDED', message }]);
    await made.setQuota({ data_transfer_bytes: 2_000_000 });
    expect((await (await connect(made.uri)).query('select 1 as n')).rows).toEqual([{ n: 1 }]);
  });

  it('on time suspends a busy compute, and refuses it until the quota is gone', async () => {
    const made = await makeProject({ active_time_seconds: 5 });
    const busy = connect(made.uri).then((client) => client.query('select pg_sleep(60)'));
    await expect(busy).rejects.toMatchObject({ code: '57P01' });
    await made.untilIdle();
    await expect(connect(made.uri)).rejects.toMatchObject({
      code: '53400',
      message: expect.stringMatching(/used up its quota active_time_seconds \(\d+ of 5 seconds\)/),
    });
    await made.setQuota({});
    expect((await (await connect(made.uri)).query('select 1 as n')).rows).toEqual([{ n: 1 }]);
  });
});

describe('what was sent', () => {
  it('is counted once over the death of a proxy', async () => {
    const made = await makeProject({ data_transfer_bytes: 1_000_000_000 });
    const counted = (low: number) =>
      eventually(async () => expect((await made.project()).data_transfer_bytes).toBeGreaterThan(low), {
        everyMs: 100,
      });
    await (await connect(made.uri)).query(bytes(1_000_000));
    await counted(1_000_000);
    const before = await program.processPids('proxy');
    for (const pid of before) process.kill(pid, 'SIGKILL');
    const again = await eventually(() => connect(made.uri), { everyMs: 50 });
    await again.query(bytes(1_000_000));
    await counted(2_000_000);
    expect((await made.project()).data_transfer_bytes).toBeLessThan(2_010_000);
  });
});

describe('a branch over its size quota', () => {
  it('refuses writes, is read and emptied, and takes writes again', async () => {
    const made = await makeProject({ logical_size_bytes: 60_000_000 });
    const client = await connect(made.uri);
    await client.query('create table t (x text)');
    const fill = (rows: number) =>
      client.query(`insert into t select repeat('x', 1000) from generate_series(1, ${rows})`);
    await fill(60_000);
    const outcome = () =>
      fill(1).then(
        () => 'written',
        ({ code }) => code,
      );
    await eventually(async () => expect(await outcome()).toBe('25006'), { everyMs: 200 });
    const off = { quota: 'logical_size_bytes', enforcement: 'session' };
    await eventually(async () => expect((await made.look()).writes_off).toMatchObject(off));
    expect((await made.branch()).size_quota).toEqual({ limit_bytes: 60_000_000, exceeded: true });
    expect((await client.query('select count(*) > 0 as any from t')).rows).toEqual([{ any: true }]);
    // A session that lifts it to write on is ended.
    const stubborn = await connect(made.uri);
    await stubborn.query('set default_transaction_read_only = off');
    const growing = stubborn.query(`insert into t select repeat('y', 1000) from generate_series(1, 20000000)`);
    await expect(growing).rejects.toMatchObject({ code: '57P01' });
    const overHttp = await sqlOverHttp(made.uri, 'set transaction read write', "delete from t where x like 'y%'");
    expect([overHttp.status, overHttp.body.results?.[1]?.command]).toEqual([200, 'DELETE']);
    await client.query('vacuum t');
    await client.query('begin read write');
    await client.query('truncate t');
    await client.query('commit');
    await eventually(async () => expect(await outcome()).toBe('written'), { everyMs: 200 });
    expect((await made.branch()).size_quota.exceeded).toBe(false);
    await eventually(async () => expect((await made.look()).writes_off).toBeUndefined());
  });
});
