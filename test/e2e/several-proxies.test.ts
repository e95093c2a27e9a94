/** Two proxy processes on one port, in the whole program: clients are on either, and notice nothing of it. */
import { readFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cancelRequest } from '../../src/proxy/protocol/messages.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const proxies = 2;
let program: Program;
let projectId: string;
let endpointId: string;
let uri: string;
let pooledUri: string;
const clients: pg.Client[] = [];

beforeAll(async () => {
  program = await Program.create({ CATNAP_PROXIES: String(proxies), CATNAP_SUSPEND_MIN_SECONDS: '1' });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'several' } });
  projectId = body.project.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  pooledUri = uri.replace(endpointId, `${endpointId}-pooler`);
  await program.settle(projectId);
  // Catnap is ready with the first proxy; on a busy machine the other one comes later.
  await eventually(() => connectOnBoth(uri, 1));
});
afterEach(() => Promise.all(clients.splice(0).map((client) => client.end().catch(() => {}))));
afterAll(() => program.destroy());

const path = (rest = '') => `/projects/${projectId}/endpoints/${endpointId}${rest}`;

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

/** The number of its proxy is in the secret half of the key that a client could cancel with. */
const proxyOf = (client: pg.Client) => (Number('secretKey' in client ? client.secretKey : Number.NaN) >>> 0) % proxies;

/** As many clients on each proxy; which one a client gets is the system's choice. */
async function connectOnBoth(connectionString: string, each: number): Promise<[pg.Client[], pg.Client[]]> {
  const found: [pg.Client[], pg.Client[]] = [[], []];
  for (let tries = 0; Math.min(found[0].length, found[1].length) < each; tries++) {
    if (tries === 500) throw new Error(`of 500 clients one proxy got ${found[0].length}, the other ${found[1].length}`);
    const client = await connect(connectionString);
    const mine = found[proxyOf(client) === 0 ? 0 : 1];
    if (mine.length < each) mine.push(client);
    else await client.end();
  }
  return found;
}

const look = async () => (await program.api('GET', path())).body.endpoint;
const stops = [
  ['a restart', () => program.api('POST', path('/restart'))],
  [
    'a resize',
    () => program.api('PATCH', path(), { endpoint: { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 0.5 } }),
  ],
  ['a suspend', () => program.api('POST', path('/suspend'))],
] as const;

async function setTimeoutTo(seconds: number): Promise<void> {
  const reply = await program.api('PATCH', path(), { endpoint: { suspend_timeout_seconds: seconds } });
  expect(reply.status).toBe(200);
  await program.settle(projectId);
}

async function pidOfProxy(number: number): Promise<number> {
  for (const pid of await program.processPids('proxy')) {
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (words[words.indexOf('proxy') + 1] === String(number)) return pid;
  }
  throw new Error(`there is no proxy ${number}`);
}

async function starts(): Promise<number> {
  const { body } = await program.api('GET', `/projects/${projectId}/operations?limit=1000`);
  return body.operations.filter(({ action }: { action: string }) => action === 'start_compute').length;
}

async function suspend(): Promise<void> {
  await program.api('POST', path('/suspend'));
  await program.settle(projectId);
  expect((await look()).current_state).toBe('idle');
}

it('the numbers of both are among the others', async () => {
  await connectOnBoth(uri, 1);
  const text = await (await fetch(`http://127.0.0.1:${program.httpPort}/metrics`)).text();
  for (const proxy of ['0', '1']) {
    expect(text).toContain(`catnap_proxy_up{proxy="${proxy}"} 1`);
    expect(text).toMatch(new RegExp(`^catnap_proxy_connections\\{proxy="${proxy}"\\} [1-9]`, 'm'));
  }
  expect(text.match(/^# TYPE catnap_proxy_connections /gm)).toHaveLength(1);
});

describe('clients of two proxies', () => {
  it('wake a sleeping compute once', async () => {
    await suspend();
    const before = await starts();
    const woken = await Promise.all(Array.from({ length: 40 }, (_, n) => connect(n % 2 === 0 ? uri : pooledUri)));
    expect(new Set(woken.map(proxyOf))).toEqual(new Set([0, 1]));
    expect(await starts()).toBe(before + 1);
  });

  it.each(['direct', 'pooled'])('cancel their own query, %s, wherever the request arrives', async (kind) => {
    const [here, there] = await connectOnBoth(kind === 'direct' ? uri : pooledUri, 4);
    const victims = [...here.slice(1), ...there.slice(1)];
    const spared = [here[0], there[0]].map((client) => client?.query('select pg_sleep(1.5), 7 as kept'));
    const cancelled = victims.map((client) => client.query('select pg_sleep(60)').catch((error) => error.code));
    await eventually(async () => {
      const running = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
      expect(await ask(uri, running)).toBe('8');
    });
    for (const client of victims) await cancel(client);
    expect(await Promise.all(cancelled)).toEqual(victims.map(() => '57014'));
    for (const result of await Promise.all(spared)) expect(result?.rows[0]?.kept).toBe(7);
  });

  it('have no more server connections than there are, all together, and one pool nine tenths of them', async () => {
    const watch = await connect(uri);
    const sessions = async () => {
      const text = 'select count(*)::int as n from pg_stat_activity where usename = current_user';
      return (await watch.query(text)).rows[0].n;
    };
    const limit = Number(await ask(uri, "select current_setting('max_connections')")) - 7;
    const poolMax = Math.floor(limit * 0.9);
    const pooled = await Promise.all(Array.from({ length: limit + 5 }, () => connect(pooledUri)));
    expect(new Set(pooled.map(proxyOf)).size).toBe(2);
    let begun = 0;
    let most = 0;
    const all = pooled.map(async (client) => {
      await client.query('begin');
      begun += 1;
    });
    await eventually(async () => {
      most = Math.max(most, await sessions());
      expect(begun).toBe(poolMax);
    });
    // What is left is for direct sessions, and no more than that; Catnap's own sessions, a few, count as well.
    const left = limit - poolMax - 1;
    let opened = 0;
    const refusal = await (async () => {
      for (; opened <= left; opened++) await connect(uri);
    })().catch((error: { code: string }) => error.code);
    expect(refusal).toBe('53300');
    expect(opened).toBeGreaterThan(left - 7);
    expect(Math.max(most, await sessions())).toBeLessThanOrEqual(limit);
    expect(begun).toBe(poolMax);
    await Promise.all(pooled.map((client, n) => all[n]?.then(() => client.query('commit'))));
    expect(begun).toBe(pooled.length);
    expect(await sessions()).toBeLessThanOrEqual(limit);
  });

  it.each(stops)('wait through %s when they are pooled, and are told 57P01 when they are not', async (_, stop) => {
    const pooled = (await connectOnBoth(pooledUri, 3)).flat();
    const direct = (await connectOnBoth(uri, 1)).flat();
    const told = direct.map((client) => new Promise((resolve) => client.once('error', ({ code }) => resolve(code))));
    let stopped = false;
    const answers = pooled.map(() => 0);
    const loops = pooled.map(async (client, n) => {
      for (; !stopped; answers[n] = (answers[n] ?? 0) + 1) await client.query('select 1');
    });
    const everybodyGetsAnswers = async () => {
      const before = [...answers];
      await eventually(() => expect(answers.every((count, n) => count > (before[n] ?? 0) + 5)).toBe(true));
    };
    await everybodyGetsAnswers();
    expect((await stop()).status).toBe(200);
    await program.settle(projectId);
    await everybodyGetsAnswers();
    stopped = true;
    await Promise.all(loops);
    expect(await Promise.all(told)).toEqual(direct.map(() => '57P01'));
  });

  it('keep their compute awake by what they do, on whichever they are, and not by being there', async () => {
    const [[here], [there]] = await connectOnBoth(uri, 1);
    const [[pooledHere], [pooledThere]] = await connectOnBoth(pooledUri, 1);
    const usedAt = async () => Date.parse((await look()).why_awake?.sleeps_at) - 60_000;
    await setTimeoutTo(60);
    for (const client of [here, pooledThere]) {
      const startedAt = Date.now();
      // Times are in whole seconds on the wire.
      await eventually(async () => {
        await client?.query('select 1');
        expect(await usedAt()).toBeGreaterThanOrEqual(startedAt);
      });
    }
    await setTimeoutTo(1);
    for (const [client, name] of [
      [there, 'there'],
      [pooledHere, 'pooled here'],
    ] as const) {
      await client?.query(`begin; set local application_name to '${name}'`);
      await eventually(async () => {
        expect((await look()).why_awake).toMatchObject({ reason: 'transaction', application_name: name });
      });
      await client?.query('commit');
    }
    await eventually(async () => expect((await look()).current_state).toBe('idle'));
    // Asleep it stays, although four clients were there, and two still are.
    await expect(here?.query('select 1')).rejects.toThrow();
    expect((await look()).current_state).toBe('idle');
    expect((await pooledThere?.query('select 2 as n'))?.rows).toEqual([{ n: 2 }]);
    await setTimeoutTo(0);
  });

  it('notice nothing when the other one is killed, and find it again', async () => {
    const [here, there] = await connectOnBoth(pooledUri, 2);
    const [direct] = await connectOnBoth(uri, 1);
    const before = await Promise.all([pidOfProxy(0), pidOfProxy(1)]);
    const lost = there.map((client) => new Promise((resolve) => client.once('end', resolve)));
    process.kill(before[1], 'SIGKILL');
    await Promise.all(lost);
    // At once, not after the other is back.
    for (const client of [...here, ...direct]) expect((await client.query('select 5 as n')).rows).toEqual([{ n: 5 }]);
    const replies = await Promise.all(Array.from({ length: 6 }, () => sqlOverHttp('select 6 as n')));
    expect(replies).toEqual(replies.map(() => [{ n: 6 }]));
    expect(await ask(pooledUri, 'select 8')).toBe('8');
    await connectOnBoth(pooledUri, 1);
    const after = await Promise.all([pidOfProxy(0), pidOfProxy(1)]);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });
});

/** Over a connection of its own, which any proxy may get. */
async function cancel(client: pg.Client): Promise<void> {
  const { processID, secretKey } = Object(client);
  const socket = connectTcp(program.pgPort, '127.0.0.1');
  socket.end(cancelRequest({ processId: processID, secret: secretKey }));
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
}

async function sqlOverHttp(query: string): Promise<unknown> {
  const reply = await fetch(`http://127.0.0.1:${program.httpPort}/sql`, {
    method: 'POST',
    headers: { 'neon-connection-string': pooledUri },
    body: JSON.stringify({ query, params: [] }),
  });
  const body: unknown = await reply.json();
  return typeof body === 'object' && body !== null && 'rows' in body ? body.rows : body;
}
