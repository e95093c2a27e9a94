/** The proxy between real drivers and a real Postgres; only the control plane is scripted. */
import { execFile } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { closed, isOnBun, PostgresProxies, psqlVersion, readError } from '../../test/helpers/proxy.ts';
import { CatnapError } from '../lib/errors.ts';
import { buildVerifier } from '../lib/scram-verifier.ts';
import type { DialAddress } from './kit/control-plane.ts';
import type { RunningProxy } from './listener.ts';
import { MessageStream } from './protocol/message-stream.ts';
import { parseErrorResponse } from './protocol/messages.ts';
import { cstring, encodeMessage } from './protocol/wire.ts';

const proxies = new PostgresProxies();
const { role, direct } = proxies;
const start = proxies.start.bind(proxies);
const hostname = 'ep-a.local.localhost';

beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

/** A part of the driver that its types do not show. */
function connectionOf(client: pg.Client): EventEmitter & { stream: Socket } {
  return (client as pg.Client & { connection: EventEmitter & { stream: Socket } }).connection;
}

/** `servername` stands in for a name service that resolves the endpoint's hostname. */
const overTls = { ssl: { servername: hostname, rejectUnauthorized: false } };
const byOptions = { options: 'endpoint=ep-a' };

async function connected(proxy: RunningProxy, options: pg.ClientConfig = byOptions): Promise<pg.Client> {
  const client = proxies.newClient(proxy, options);
  await client.connect();
  return client;
}

async function failure(proxy: RunningProxy, options: pg.ClientConfig): Promise<{ code?: string; message: string }> {
  return proxies
    .newClient(proxy, options)
    .connect()
    .then(
      () => ({ message: 'connected' }),
      (thrown: { code?: string; message: string }) => ({
        ...(thrown.code ? { code: thrown.code } : {}),
        message: thrown.message,
      }),
    );
}

function psql(proxy: RunningProxy, conninfo: string, command: string): Promise<string> {
  const login = `user=${role.user} password=${role.password} dbname=${role.database}`;
  const full = `port=${proxy.port} connect_timeout=10 ${login} ${conninfo}`;
  return new Promise((resolve) => {
    execFile('psql', [full, '-XAtc', command], (_error, stdout, stderr) => resolve(stdout.trim() || stderr.trim()));
  });
}

describe('pg', () => {
  it('connects without TLS by the endpoint option, and its other options arrive', async () => {
    const proxy = await start();
    const client = await connected(proxy, { options: 'endpoint=ep-a -c search_path=here', application_name: 'tester' });
    const { rows } = await client.query(
      "select current_user as who, current_setting('search_path') as path, current_setting('application_name') as app",
    );
    expect(rows).toEqual([{ who: role.user, path: 'here', app: 'tester' }]);
    expect(proxy.wakes).toEqual(['ep-a']);
  });

  it('connects with TLS by the server name, pooled or not, and checks our certificate', async () => {
    const proxy = await start();
    const ca = proxies.certificates.cert;
    for (const servername of [hostname, 'ep-a-pooler.local.localhost']) {
      const client = await connected(proxy, { ssl: { servername, ca, rejectUnauthorized: true } });
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    }
  });

  it('binds its login to the TLS channel when asked to', async () => {
    const client = await connected(await start(), { ...overTls, enableChannelBinding: true });
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('connects with the endpoint in the password, in both forms, with TLS and without', async () => {
    const proxy = await start();
    const tls = { ssl: { servername: 'localhost', rejectUnauthorized: false } };
    for (const options of [{}, tls]) {
      for (const separator of [';', '$']) {
        const client = await connected(proxy, { ...options, password: `endpoint=ep-a${separator}${role.password}` });
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      }
    }
  });

  it('gets the same error for a wrong password, an unknown role and an unknown endpoint, and nothing wakes', async () => {
    const proxy = await start();
    const refused = { code: '28P01', message: `password authentication failed for user '${role.user}'` };
    expect(await failure(proxy, { ...byOptions, password: 'wrong' })).toEqual(refused);
    expect(await failure(proxy, { ...overTls, password: 'wrong' })).toEqual(refused);
    expect(await failure(proxy, { options: 'endpoint=ep-b' })).toEqual(refused);
    expect(await failure(proxy, { password: 'endpoint=ep-a;wrong' })).toEqual(refused);
    expect(await failure(proxy, { ...byOptions, user: 'nobody' })).toEqual({
      ...refused,
      message: "password authentication failed for user 'nobody'",
    });
    expect(proxy.wakes).toEqual([]);
  });

  it('gets the ordinary authentication error when the password was changed in the compute', async () => {
    const findLogin = async () => ({ verifier: buildVerifier(role.password), disabled: false, allowedIps: [] });
    const proxy = await start({ findLogin });
    expect(await failure(proxy, byOptions)).toMatchObject({ code: '28P01' });
  });

  it('gets the error of the compute itself', async () => {
    const proxy = await start();
    expect(await failure(proxy, { ...byOptions, database: 'absent' })).toEqual({
      code: '3D000',
      message: 'database "absent" does not exist',
    });
  });

  it('gets the reason why a wake failed, also when it took too long', async () => {
    const wake = async () => {
      throw new CatnapError('unavailable', 'the branch is being restored');
    };
    const failing = await start({ wake });
    expect(await failure(failing, byOptions)).toEqual({ code: '57P03', message: 'the branch is being restored' });
    const hanging = await start({ wake: () => new Promise(() => {}) }, { limits: { wakeMs: 50 } });
    expect(await failure(hanging, byOptions)).toMatchObject({ code: '57P03' });
  });
});

describe('postgres.js', () => {
  it('connects by URL, with parameters that it passes to the server', async () => {
    const proxy = await start();
    const query = 'options=endpoint%3Dep-a&channel_binding=prefer';
    const sql = postgres(`postgres://${role.user}:${role.password}@localhost:${proxy.port}/${role.database}?${query}`, {
      max: 1,
    });
    proxies.onCleanup(() => sql.end());
    expect(await sql`select ${'x'}::text as x`).toEqual([{ x: 'x' }]);
  });

  it('connects with sslmode=require', async () => {
    const proxy = await start();
    const sql = postgres({
      host: '127.0.0.1',
      port: proxy.port,
      username: role.user,
      password: role.password,
      database: role.database,
      ssl: { servername: hostname, rejectUnauthorized: false },
      max: 1,
    });
    proxies.onCleanup(() => sql.end());
    expect(await sql`select count(*)::int as n from generate_series(1, 1000)`).toEqual([{ n: 1000 }]);
  });
});

describe.skipIf(psqlVersion === 0)('psql', () => {
  const local = 'hostaddr=127.0.0.1';
  it.each([
    ['plaintext', `${local} sslmode=disable options=endpoint=ep-a`],
    ['sslmode=require', `host=${hostname} ${local} sslmode=require`],
    ['channel_binding=require', `host=${hostname} ${local} sslmode=require channel_binding=require`],
    ['channel_binding=disable', `host=${hostname} ${local} sslmode=require channel_binding=disable`],
  ])('connects: %s', async (_name, conninfo) => {
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it('accepts our certificate in full', async () => {
    const conninfo = `host=${hostname} ${local} sslmode=verify-full sslrootcert=${proxies.certificates.caPath}`;
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it.skipIf(psqlVersion < 17)('connects with TLS from the first byte', async () => {
    const conninfo = `host=${hostname} ${local} sslmode=require sslnegotiation=direct`;
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it('is refused without TLS where plaintext is not allowed', async () => {
    const proxy = await start({}, { allowPlaintext: false });
    const output = await psql(proxy, `${local} sslmode=disable options=endpoint=ep-a`, 'select 1');
    expect(output).toContain('connection is insecure (try using `sslmode=require`)');
  });
});

describe('many clients', () => {
  it('share one wake', async () => {
    let answer = (_address: DialAddress) => {};
    const wake = () =>
      new Promise<DialAddress>((resolve) => {
        answer = resolve;
      });
    const proxy = await start({ wake });
    const clients = Array.from({ length: 50 }, () => proxies.newClient(proxy, byOptions));
    const proven = clients.map((client) => once(connectionOf(client), 'authenticationSASLFinal'));
    const connecting = Promise.all(clients.map((client) => client.connect()));
    await Promise.all(proven);
    expect(proxy.wakes).toEqual(['ep-a']);
    answer(proxies.compute);
    await connecting;
    const results = await Promise.all(clients.map((client) => client.query('select 1 as one')));
    expect(results.every(({ rows }) => rows[0].one === 1)).toBe(true);
    expect(proxy.wakes).toEqual(['ep-a']);
  });
});

/** A direct session without a driver. */
const openRaw = (proxy: RunningProxy) => proxies.raw(proxy, {}, 'ep-a');

async function untilSleeping(application: string): Promise<void> {
  const active = () => direct`
    select 1 from pg_stat_activity where application_name = ${application} and wait_event = 'PgSleep'`;
  await expect.poll(async () => (await active()).length).toBe(1);
}

describe('the process id in the key of a session', () => {
  it('is that of its backend, so that a driver knows its own notifications and can be terminated by it', async () => {
    const client = await connected(await start());
    const { processID } = client as unknown as { processID: number };
    expect((await client.query('select pg_backend_pid() as pid')).rows).toEqual([{ pid: processID }]);
    const received = new Promise<pg.Notification>((resolve) => client.on('notification', resolve));
    await client.query('listen own; notify own');
    expect(await received).toMatchObject({ channel: 'own', processId: processID });
    const ended = new Promise((resolve) => client.once('end', resolve));
    expect(await direct`select pg_terminate_backend(${processID}) as done`).toEqual([{ done: true }]);
    await ended;
  });
});

describe('cancel', () => {
  it('reaches its own backend and no other', async () => {
    const proxy = await start();
    const [first, second] = [await openRaw(proxy), await openRaw(proxy)];
    const query = (raw: typeof first, name: string, seconds: number) =>
      raw.messages.write(encodeMessage('Q', cstring(`set application_name = '${name}'; select pg_sleep(${seconds})`)));
    query(first, 'cancel-first', 60);
    query(second, 'cancel-second', 60);
    await untilSleeping('cancel-first');
    await untilSleeping('cancel-second');
    await proxies.cancel(proxy, { ...first.key, secret: first.key.secret ^ 1 });
    await proxies.cancel(proxy, first.key);
    expect(await readError(first.messages)).toMatchObject({ sqlState: '57014' });
    const others = await direct`select state from pg_stat_activity where application_name = 'cancel-second'`;
    expect(others).toEqual([{ state: 'active' }]);
    await proxies.cancel(proxy, second.key);
    expect(await readError(second.messages)).toMatchObject({ sqlState: '57014' });
  });

  it('does nothing with the key of a session that is over', async () => {
    const proxy = await start();
    const raw = await openRaw(proxy);
    raw.messages.write(encodeMessage('X'));
    await closed(raw.messages.stream);
    await proxies.cancel(proxy, raw.key);
    const client = await connected(proxy);
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

/** Memory of buffers that are still referenced, without those that only wait for collection. */
function retainedBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

describe('bytes', () => {
  it('come through whole; a slow reader slows the compute down instead of filling memory', async () => {
    const proxy = await start();
    const { messages } = await openRaw(proxy);
    const socket = messages.stream;
    messages.write(encodeMessage('Q', cstring("set application_name = 'slow-reader'")));
    while ((await messages.readMessage()).type !== 'Z');
    messages.release();
    const before = retainedBytes();
    socket.write(encodeMessage('Q', cstring("select repeat('x', 1000) from generate_series(1, 50000)")));
    const isBlocked = async () => {
      const rows = await direct`select wait_event from pg_stat_activity where application_name = 'slow-reader'`;
      return rows[0]?.wait_event;
    };
    await expect.poll(isBlocked).toBe('ClientWrite');
    // The rest of the result waits in the compute and, a few MB of it, in the kernel.
    await expect.poll(() => retainedBytes() - before).toBeLessThan(2_000_000);
    await expect.poll(isBlocked).toBe('ClientWrite');
    let received = 0;
    let tail = Buffer.alloc(0);
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
        tail = Buffer.concat([tail, chunk]).subarray(-6);
        if (tail.equals(encodeMessage('Z', Buffer.from('I')))) resolve();
      });
      socket.resume();
    });
    expect(received).toBeGreaterThan(50_000_000);
  });

  it('still come down after the client has closed its side', async () => {
    const { messages } = await openRaw(await start());
    messages.write(encodeMessage('Q', cstring("select repeat('x', 100) from pg_sleep(0.05)")));
    messages.stream.end();
    const types: string[] = [];
    while (types.at(-1) !== 'Z') types.push((await messages.readMessage()).type);
    expect(types).toEqual(['T', 'D', 'C', 'Z']);
  });

  it('go up as well as down', async () => {
    const client = await connected(await start(), overTls);
    const text = 'äöü€'.repeat(1_000_000);
    const { rows } = await client.query('select length($1) as n, md5($1) = md5($2) as same', [text, text]);
    expect(rows).toEqual([{ n: 4_000_000, same: true }]);
  });

  it.skipIf(isOnBun)('count as activity of the endpoint when they come from the client', async () => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z');
    const proxy = await start({}, { clock: { now: () => new Date(nowMs) }, limits: { activityMs: 10 } });
    const client = await connected(proxy);
    await expect.poll(() => proxy.activity.get('ep-a')?.getTime()).toBe(nowMs);
    nowMs += 60_000;
    await client.query('select 1');
    await expect.poll(() => proxy.activity.get('ep-a')?.getTime()).toBe(nowMs);
    nowMs += 60_000;
    await client.query('select 1');
    await proxy.close();
    expect(proxy.activity.get('ep-a')?.getTime()).toBe(nowMs);
  });
});

describe('the end', () => {
  const backends = async (application: string) =>
    (await direct`select 1 from pg_stat_activity where application_name = ${application}`).length;

  it('of a client ends its backend', async () => {
    const proxy = await start();
    const client = await connected(proxy, { ...byOptions, application_name: 'leaver' });
    expect(await backends('leaver')).toBe(1);
    connectionOf(client).stream.destroy();
    await expect.poll(() => backends('leaver')).toBe(0);
  });

  it('of a backend ends its client, with the error of the backend', async () => {
    const proxy = await start();
    const client = await connected(proxy, { ...byOptions, application_name: 'victim' });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    const error = new Promise<Error>((resolve) => client.once('error', resolve));
    await direct`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim'`;
    expect((await error).message).toBe('terminating connection due to administrator command');
    await ended;
  });

  it('of the proxy is reported to an idle client at once', async () => {
    const proxy = await start({}, { limits: { closeMs: 20_000 } });
    const clients = [
      await connected(proxy, { ...byOptions, application_name: 'idle-one' }),
      await connected(proxy, { ...overTls, application_name: 'idle-one' }),
    ];
    const errors = clients.map((client) => new Promise<{ code?: string }>((resolve) => client.once('error', resolve)));
    await proxy.close();
    expect((await Promise.all(errors)).map(({ code }) => code)).toEqual(['57P01', '57P01']);
    await expect.poll(() => backends('idle-one')).toBe(0);
  });

  it('of the proxy never splits a message', async () => {
    const proxy = await start({}, { limits: { closeMs: 20_000 } });
    const { messages } = await openRaw(proxy);
    const socket = messages.stream;
    messages.write(encodeMessage('Q', cstring("set application_name = 'busy-one'")));
    while ((await messages.readMessage()).type !== 'Z');
    messages.release();
    socket.write(encodeMessage('Q', cstring("select repeat('x', 1000) from generate_series(1, 20000)")));
    const isBlocked = async () => {
      const rows = await direct`select wait_event from pg_stat_activity where application_name = 'busy-one'`;
      return rows[0]?.wait_event;
    };
    await expect.poll(isBlocked).toBe('ClientWrite');
    const closing = proxy.close();
    const reader = new MessageStream(socket, 10_000);
    let rows = 0;
    for (;;) {
      const { type, body } = await reader.readMessage();
      if (type === 'D') rows += 1;
      if (type !== 'E') continue;
      expect(parseErrorResponse(body)).toMatchObject({ sqlState: '57P01' });
      break;
    }
    expect(rows).toBeGreaterThan(0);
    await closing;
    await expect.poll(() => backends('busy-one')).toBe(0);
  });

  it('of the proxy cancels an answer without end, and reports why', async () => {
    // Longer than a busy machine takes to cancel.
    const proxy = await start({}, { limits: { closeMs: 30_000 } });
    const { messages } = await openRaw(proxy);
    messages.write(encodeMessage('Q', cstring("select repeat('x', 1000), generate_series(1, 1000000000)")));
    while ((await messages.readMessage()).type !== 'D');
    const closing = proxy.close();
    const states: string[] = [];
    while (states.length < 2) {
      const { type, body } = await messages.readMessage();
      if (type === 'E') states.push(parseErrorResponse(body).sqlState);
    }
    expect(states).toEqual(['57014', '57P01']);
    await closing;
  });
});
