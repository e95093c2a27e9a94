/** The proxy between real drivers and a real Postgres; only the control plane is scripted. */
import { execFile, execFileSync } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { learnVerifier } from '../../test/helpers/learn-verifier.ts';
import { type Certificates, ensureCertificates } from '../lib/certificates.ts';
import { systemClock } from '../lib/clock.ts';
import { CatnapError } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { buildVerifier } from '../lib/scram-verifier.ts';
import type { ControlPlane, DialAddress } from './kit/control-plane.ts';
import { type ProxyOptions, type RunningProxy, startProxy } from './listener.ts';
import { MessageStream } from './protocol/message-stream.ts';
import {
  type BackendKey,
  cancelRequest,
  parseBackendKeyData,
  parseErrorResponse,
  startupMessage,
} from './protocol/messages.ts';
import { cstring, encodeMessage } from './protocol/wire.ts';

const system = inject('systemDatabase');
const compute: DialAddress = { kind: 'unix', path: system.path };
const host = 'ep-a.local.localhost';
const role = { user: system.username, password: system.password, database: system.database };
const psqlVersion = findPsql();

let directory: string;
let certificates: Certificates;
let verifier: string;
/** A session that does not go through the proxy. */
let direct: postgres.Sql;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'catnap-proxy-'));
  certificates = await ensureCertificates({ directory, domain: 'localhost', region: 'local', clock: systemClock });
  verifier = await learnVerifier(system);
  direct = postgres({ ...system, max: 1 });
});
afterAll(async () => {
  await direct.end();
  await rm(directory, { recursive: true, force: true });
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function findPsql(): number {
  try {
    const version = execFileSync('psql', ['--version'], { encoding: 'utf8' });
    return Number(/ (\d+)/.exec(version)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

interface Started extends RunningProxy {
  readonly wakes: string[];
  readonly activity: Map<string, Date>;
}

async function start(plane: Partial<ControlPlane> = {}, options: Partial<ProxyOptions> = {}): Promise<Started> {
  const wakes: string[] = [];
  const activity = new Map<string, Date>();
  const wake = plane.wake ?? (async () => compute);
  const proxy = await startProxy({
    controlPlane: {
      findLogin: async (endpointId, user) =>
        endpointId === 'ep-a'
          ? { verifier: user === system.username ? verifier : null, disabled: false, allowedIps: [] }
          : null,
      findAddress: async () => null,
      reportActivity: async (seen) => {
        for (const [id, at] of seen) activity.set(id, at);
      },
      ...plane,
      wake: (endpointId) => {
        wakes.push(endpointId);
        return wake(endpointId);
      },
    },
    ...{ bind: '127.0.0.1', port: 0, tls: () => certificates, clock: systemClock },
    ...{ domain: 'localhost', region: 'local', log: createLogger({ level: 'silent', process: 'proxy' }) },
    ...options,
  });
  cleanups.push(() => proxy.close());
  return { ...proxy, wakes, activity };
}

function pgClient(proxy: RunningProxy, options: pg.ClientConfig = {}): pg.Client {
  const client = new pg.Client({ host: '127.0.0.1', port: proxy.port, ...role, ...options });
  client.on('error', () => {});
  cleanups.push(() => client.end().catch(() => {}));
  return client;
}

/** What the driver keeps to itself. */
function connectionOf(client: pg.Client): EventEmitter & { stream: Socket } {
  return (client as pg.Client & { connection: EventEmitter & { stream: Socket } }).connection;
}

/** `servername` stands for a name service that knows the endpoint's host. */
const overTls = { ssl: { servername: host, rejectUnauthorized: false } };
const byOptions = { options: 'endpoint=ep-a' };

async function connected(proxy: RunningProxy, options: pg.ClientConfig = byOptions): Promise<pg.Client> {
  const client = pgClient(proxy, options);
  await client.connect();
  return client;
}

async function failure(proxy: RunningProxy, options: pg.ClientConfig): Promise<{ code?: string; message: string }> {
  return pgClient(proxy, options)
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

  it('connects with TLS by the server name, pooled host too, and checks our certificate', async () => {
    const proxy = await start();
    const ca = certificates.cert;
    for (const servername of [host, 'ep-a-pooler.local.localhost']) {
      const client = await connected(proxy, { ssl: { servername, ca, rejectUnauthorized: true } });
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    }
  });

  it('binds its login to the TLS channel when it is told to', async () => {
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

  it('hears the same for a wrong password, an unknown role and an unknown endpoint, and nothing wakes', async () => {
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

  it('hears the plain authentication error when the password was changed in the compute', async () => {
    const findLogin = async () => ({ verifier: buildVerifier(role.password), disabled: false, allowedIps: [] });
    const proxy = await start({ findLogin });
    expect(await failure(proxy, byOptions)).toMatchObject({ code: '28P01' });
  });

  it('hears what the compute itself says', async () => {
    const proxy = await start();
    expect(await failure(proxy, { ...byOptions, database: 'absent' })).toEqual({
      code: '3D000',
      message: 'database "absent" does not exist',
    });
  });

  it('hears why a wake failed, and when it took too long', async () => {
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
  it('connects by URL, with parameters that it sends on to the server', async () => {
    const proxy = await start();
    const query = 'options=endpoint%3Dep-a&channel_binding=prefer';
    const sql = postgres(`postgres://${role.user}:${role.password}@localhost:${proxy.port}/${role.database}?${query}`, {
      max: 1,
    });
    cleanups.push(() => sql.end());
    expect(await sql`select ${'x'}::text as x`).toEqual([{ x: 'x' }]);
  });

  it('connects with sslmode=require', async () => {
    const proxy = await start();
    const sql = postgres({
      ...{ host: '127.0.0.1', port: proxy.port, username: role.user, password: role.password, database: role.database },
      ...{ ssl: { servername: host, rejectUnauthorized: false }, max: 1 },
    });
    cleanups.push(() => sql.end());
    expect(await sql`select count(*)::int as n from generate_series(1, 1000)`).toEqual([{ n: 1000 }]);
  });
});

describe.skipIf(psqlVersion === 0)('psql', () => {
  const local = 'hostaddr=127.0.0.1';
  it.each([
    ['plaintext', `${local} sslmode=disable options=endpoint=ep-a`],
    ['sslmode=require', `host=${host} ${local} sslmode=require`],
    ['channel_binding=require', `host=${host} ${local} sslmode=require channel_binding=require`],
    ['channel_binding=disable', `host=${host} ${local} sslmode=require channel_binding=disable`],
  ])('connects: %s', async (_name, conninfo) => {
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it('accepts our certificate in full', async () => {
    const conninfo = `host=${host} ${local} sslmode=verify-full sslrootcert=${certificates.caPath}`;
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it.skipIf(psqlVersion < 17)('connects with TLS from the first byte', async () => {
    const conninfo = `host=${host} ${local} sslmode=require sslnegotiation=direct`;
    expect(await psql(await start(), conninfo, 'select 40 + 2')).toBe('42');
  });

  it('is refused without TLS where plaintext is not allowed', async () => {
    const proxy = await start({}, { allowPlaintext: false });
    const said = await psql(proxy, `${local} sslmode=disable options=endpoint=ep-a`, 'select 1');
    expect(said).toContain('connection is insecure (try using `sslmode=require`)');
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
    const clients = Array.from({ length: 50 }, () => pgClient(proxy, byOptions));
    const proven = clients.map((client) => once(connectionOf(client), 'authenticationSASLFinal'));
    const connecting = Promise.all(clients.map((client) => client.connect()));
    await Promise.all(proven);
    expect(proxy.wakes).toEqual(['ep-a']);
    answer(compute);
    await connecting;
    const results = await Promise.all(clients.map((client) => client.query('select 1 as one')));
    expect(results.every(({ rows }) => rows[0].one === 1)).toBe(true);
    expect(proxy.wakes).toEqual(['ep-a']);
  });
});

/** Protocol by hand, for what drivers hide. */
async function openRaw(proxy: RunningProxy): Promise<{ messages: MessageStream; socket: Socket; key: BackendKey }> {
  const socket = connectTcp(proxy.port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  const messages = new MessageStream(socket, 100_000_000);
  messages.write(
    startupMessage([
      ['user', role.user],
      ['database', role.database],
    ]),
  );
  await messages.readMessage();
  messages.write(encodeMessage('p', cstring(`endpoint=ep-a;${role.password}`)));
  let key: BackendKey = { processId: 0, secret: 0 };
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') throw new Error(parseErrorResponse(body).message);
    if (type === 'K') key = parseBackendKeyData(body);
    if (type === 'Z') return { messages, socket, key };
  }
}

async function sendCancel(proxy: RunningProxy, key: BackendKey): Promise<void> {
  const socket = connectTcp(proxy.port, '127.0.0.1');
  socket.end(cancelRequest(key));
  socket.resume();
  await once(socket, 'close');
}

async function untilSleeping(application: string): Promise<void> {
  const active = () => direct`
    select 1 from pg_stat_activity where application_name = ${application} and wait_event = 'PgSleep'`;
  await expect.poll(async () => (await active()).length, { timeout: 20_000 }).toBe(1);
}

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
    await sendCancel(proxy, { ...first.key, secret: first.key.secret ^ 1 });
    await sendCancel(proxy, first.key);
    expect(await nextError(first.messages)).toMatchObject({ sqlState: '57014' });
    const others = await direct`select state from pg_stat_activity where application_name = 'cancel-second'`;
    expect(others).toEqual([{ state: 'active' }]);
    await sendCancel(proxy, second.key);
    expect(await nextError(second.messages)).toMatchObject({ sqlState: '57014' });
  });

  it('does nothing with the key of a session that is over', async () => {
    const proxy = await start();
    const raw = await openRaw(proxy);
    raw.messages.write(encodeMessage('X'));
    await once(raw.socket, 'close');
    await sendCancel(proxy, raw.key);
    const client = await connected(proxy);
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

async function nextError(messages: MessageStream): Promise<{ sqlState: string; message: string }> {
  for (;;) {
    const { type, body } = await messages.readMessage();
    if (type === 'E') return parseErrorResponse(body);
  }
}

/** Memory of buffers that somebody still holds; what has passed through and awaits collection does not count. */
function retainedBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

describe('bytes', () => {
  it('come through whole; a slow reader slows the compute down instead of filling memory', async () => {
    const proxy = await start();
    const { messages, socket } = await openRaw(proxy);
    messages.write(encodeMessage('Q', cstring("set application_name = 'slow-reader'")));
    while ((await messages.readMessage()).type !== 'Z');
    messages.release();
    const before = retainedBytes();
    socket.write(encodeMessage('Q', cstring("select repeat('x', 1000) from generate_series(1, 50000)")));
    const isBlocked = async () => {
      const rows = await direct`select wait_event from pg_stat_activity where application_name = 'slow-reader'`;
      return rows[0]?.wait_event;
    };
    await expect.poll(isBlocked, { timeout: 20_000 }).toBe('ClientWrite');
    // The rest of the result waits in the compute and, a few MB of it, in the kernel.
    await expect.poll(() => retainedBytes() - before, { timeout: 10_000 }).toBeLessThan(2_000_000);
    await expect.poll(isBlocked, { timeout: 20_000 }).toBe('ClientWrite');
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
    const { messages, socket } = await openRaw(await start());
    messages.write(encodeMessage('Q', cstring("select repeat('x', 100) from pg_sleep(0.05)")));
    socket.end();
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

  it('count as activity of the endpoint when they come from the client', async () => {
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
    await expect.poll(() => backends('leaver'), { timeout: 10_000 }).toBe(0);
  });

  it('of a backend ends its client, with the words of the backend', async () => {
    const proxy = await start();
    const client = await connected(proxy, { ...byOptions, application_name: 'victim' });
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    const said = new Promise<Error>((resolve) => client.once('error', resolve));
    await direct`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim'`;
    expect((await said).message).toBe('terminating connection due to administrator command');
    await ended;
  });

  it('of the proxy is told to an idle client at once', async () => {
    const proxy = await start({}, { limits: { closeMs: 20_000 } });
    const clients = [
      await connected(proxy, { ...byOptions, application_name: 'idle-one' }),
      await connected(proxy, { ...overTls, application_name: 'idle-one' }),
    ];
    const told = clients.map((client) => new Promise<{ code?: string }>((resolve) => client.once('error', resolve)));
    await proxy.close();
    expect((await Promise.all(told)).map(({ code }) => code)).toEqual(['57P01', '57P01']);
    await expect.poll(() => backends('idle-one'), { timeout: 10_000 }).toBe(0);
  });

  it('of the proxy never tears a message apart', async () => {
    const proxy = await start({}, { limits: { closeMs: 20_000 } });
    const { messages, socket } = await openRaw(proxy);
    messages.write(encodeMessage('Q', cstring("set application_name = 'busy-one'")));
    while ((await messages.readMessage()).type !== 'Z');
    messages.release();
    socket.write(encodeMessage('Q', cstring("select repeat('x', 1000) from generate_series(1, 20000)")));
    const isBlocked = async () => {
      const rows = await direct`select wait_event from pg_stat_activity where application_name = 'busy-one'`;
      return rows[0]?.wait_event;
    };
    await expect.poll(isBlocked, { timeout: 20_000 }).toBe('ClientWrite');
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
    await expect.poll(() => backends('busy-one'), { timeout: 10_000 }).toBe(0);
  });

  it('of the proxy cuts an answer short that has no end, and says why', async () => {
    const proxy = await start({}, { limits: { closeMs: 2_000 } });
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
