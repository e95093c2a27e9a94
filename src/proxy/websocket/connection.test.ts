/** Clients of the proxy that come over a WebSocket, through a socket as the API uses it, in front of real Postgres. */
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createWebSocketStream, WebSocket } from 'ws';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies, readError, type StartedProxy } from '../../../test/helpers/proxy.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import { MessageStream } from '../protocol/message-stream.ts';
import { startupMessage } from '../protocol/messages.ts';
import { cstring, encodeMessage, int32 } from '../protocol/wire.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

interface Served {
  readonly proxy: StartedProxy;
  readonly socketPath: string;
}

let count = 0;

async function start(plane: Partial<ControlPlane> = {}, limits: Partial<ProxyLimits> = {}): Promise<Served> {
  count += 1;
  const socketPath = join(proxies.directory, `ws-${count}`);
  const siblings = { number: 0, sockets: [socketPath] };
  return { proxy: await proxies.start(plane, { siblings, limits }), socketPath };
}

interface Arrival {
  readonly path?: string;
  readonly host?: string;
  readonly address?: string;
}

async function open({ socketPath }: Served, { path = '/v2', host = 'localhost', address = '127.0.0.1' }: Arrival = {}) {
  const headers = { host, 'x-catnap-client-address': address };
  const client = new WebSocket(`ws+unix://${socketPath}:${path}`, { headers });
  client.on('error', () => {});
  proxies.onCleanup(() => client.terminate());
  // Listens from the start: a refusal may arrive with the answer to the handshake.
  const stream = createWebSocketStream(client);
  stream.on('error', () => {});
  const messages = new MessageStream(stream, 1_000_000);
  await once(client, 'open');
  return { client, messages };
}

/** A session that has done its first query. */
async function openSession(served: Served) {
  const opened = await open(served);
  logIn(opened.messages, 'endpoint=ep-a');
  await untilReady(opened.messages);
  await untilReady(opened.messages);
  return opened;
}

/** The same, with a name by which its server process can be found. */
async function openNamedSession(served: Served) {
  const opened = await openSession(served);
  opened.messages.write(query("set application_name = 'ws-test'"));
  await untilReady(opened.messages);
  return opened;
}

function logIn(messages: MessageStream, options: string | null, password: string = proxies.role.password): void {
  const { user, database } = proxies.role;
  const startup = startupMessage([
    ['user', user],
    ['database', database],
    ...(options === null ? [] : [['options', options] as const]),
  ]);
  // All at once, as the driver does: it does not wait to be asked.
  messages.write(Buffer.concat([startup, encodeMessage('p', cstring(password)), query('select 42 as answer')]));
}

const query = (sql: string) => encodeMessage('Q', cstring(sql));

/** The types of all messages up to the next end of a reply. */
async function untilReady(messages: MessageStream): Promise<string> {
  let types = '';
  while (!types.endsWith('Z')) types += (await messages.readMessage()).type;
  return types;
}

const backends = async () => {
  const [row] = await proxies.direct`select count(*)::int from pg_stat_activity where application_name = 'ws-test'`;
  return row?.count;
};

describe('a client over a WebSocket', () => {
  it.each([
    ['the address that the driver adds', { path: '/v2?address=ep-a.local.localhost:5432' }, null],
    ['the host of the WebSocket', { host: 'ep-a.local.localhost:7070' }, null],
    ['the pooled host', { host: 'ep-a-pooler.local.localhost' }, null],
    ['options', { host: 'console.local.localhost' }, 'endpoint=ep-a'],
  ])('names its endpoint by %s, and may send everything at once', async (_how, arrival, options) => {
    const served = await start();
    const { messages } = await open(served, arrival);
    logIn(messages, options);
    expect(await untilReady(messages)).toMatch(/^RRS+KZ$/);
    expect(await untilReady(messages)).toBe('TDCZ');
    expect(served.proxy.wakes).toEqual(['ep-a']);
  });

  it('names its endpoint in the password', async () => {
    const { messages } = await open(await start());
    logIn(messages, null, `endpoint=ep-a$${proxies.role.password}`);
    expect(await untilReady(messages)).toMatch(/^RRS+KZ$/);
  });

  it('is refused if address and options name different endpoints, or if nothing names one', async () => {
    const served = await start();
    const two = await open(served, { path: '/v2?address=ep-a.local.localhost:5432' });
    logIn(two.messages, 'endpoint=ep-b');
    expect(await readError(two.messages)).toMatchObject({ message: expect.stringContaining('Inconsistent') });
    const none = await open(served);
    logIn(none.messages, null);
    expect(await readError(none.messages)).toMatchObject({ message: expect.stringContaining('Endpoint ID') });
    expect(served.proxy.wakes).toEqual([]);
  });

  it('wakes nothing with a wrong password', async () => {
    const served = await start();
    const { client, messages } = await open(served);
    logIn(messages, 'endpoint=ep-a', 'wrong');
    expect(await readError(messages)).toMatchObject({ sqlState: '28P01' });
    await once(client, 'close');
    expect(served.proxy.wakes).toEqual([]);
  });

  it('is held to the allowed addresses by the address that the API reports', async () => {
    const login = { verifier: proxies.verifier, disabled: false, allowedIps: ['192.0.2.0/24'] };
    const served = await start({ findLogin: async () => login });
    const outside = await open(served, { address: '198.51.100.7' });
    logIn(outside.messages, 'endpoint=ep-a');
    expect(await readError(outside.messages)).toMatchObject({ message: expect.stringContaining('198.51.100.7') });
    const inside = await open(served, { address: '::ffff:192.0.2.9' });
    logIn(inside.messages, 'endpoint=ep-a');
    expect(await untilReady(inside.messages)).toContain('Z');
  });

  it('is held to blocked public connections in the same way', async () => {
    const login = { verifier: proxies.verifier, disabled: false, allowedIps: [], publicBlocked: true };
    const served = await start({ findLogin: async () => login });
    const outside = await open(served, { address: '198.51.100.7' });
    logIn(outside.messages, 'endpoint=ep-a');
    expect((await readError(outside.messages)).message).toMatch(/198\.51\.100\.7 .* blocks public connections/);
    const inside = await open(served, { address: '::ffff:192.168.0.9' });
    logIn(inside.messages, 'endpoint=ep-a');
    await untilReady(inside.messages);
    expect(served.proxy.wakes).toHaveLength(1);
  });

  it('is counted by that address while it has not authenticated, and has as long for it as any other', async () => {
    const served = await start({}, { unauthenticatedPerAddress: 2, authenticationMs: 3_000 });
    const address = '198.51.100.7';
    const oldest = await open(served, { address });
    const silent = await open(served, { address });
    const other = await open(served, { address: '198.51.100.8' });
    const third = await open(served, { address });
    await eventually(() => expect(oldest.client.readyState).toBe(oldest.client.CLOSED));
    for (const { messages } of [third, other]) {
      logIn(messages, 'endpoint=ep-a');
      expect(await untilReady(messages)).toContain('Z');
    }
    expect(await readError(silent.messages)).toMatchObject({ message: 'Authentication timed out' });
  });

  it('leaves no server process behind, however it goes', async () => {
    const served = await start();
    for (const leave of [
      (client: WebSocket) => client.terminate(),
      (client: WebSocket) => client.close(),
      (client: WebSocket) => client.send(encodeMessage('X')),
      (client: WebSocket) => client.send('text'),
    ]) {
      const { client } = await openNamedSession(served);
      expect(await backends()).toBe(1);
      leave(client);
      await eventually(async () => expect(await backends()).toBe(0));
    }
  });

  it('is closed when its server ends, and told why', async () => {
    const served = await start();
    const { client, messages } = await openNamedSession(served);
    const closed = once(client, 'close');
    await proxies.direct`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ws-test'`;
    expect(await readError(messages)).toMatchObject({ sqlState: '57P01' });
    expect((await closed)[0]).toBe(1000);
  });

  it('is told when the proxy closes', async () => {
    const served = await start();
    const { client, messages } = await openSession(served);
    const closed = once(client, 'close');
    const proxyClosed = served.proxy.close();
    expect(await readError(messages)).toMatchObject({ sqlState: '57P01' });
    expect((await closed)[0]).toBe(1000);
    await proxyClosed;
  });

  it('does not keep the compute awake by answering pings', async () => {
    const served = await start({}, { webSocketPingMs: 5, activityMs: 5 });
    const { client } = await openSession(served);
    await eventually(() => expect(served.proxy.activity.has('ep-a')).toBe(true));
    const last = served.proxy.activity.get('ep-a');
    let pings = 0;
    client.on('ping', () => {
      pings += 1;
    });
    await eventually(() => expect(pings).toBeGreaterThan(5));
    expect(served.proxy.activity.get('ep-a')).toEqual(last);
  });

  it('that does not read does not have its result pile up here', async () => {
    const served = await start();
    const { client, messages } = await openSession(served);
    client.pause();
    messages.write(query("/* long */ select repeat('x', 10000) from generate_series(1, 20000)"));
    const waiting = async () => {
      const [row] = await proxies.direct`
        select wait_event from pg_stat_activity where query like '/* long */%' and state = 'active'`;
      return row?.wait_event;
    };
    await eventually(async () => expect(await waiting()).toBe('ClientWrite'));
    client.resume();
    let rows = 0;
    for (;;) {
      const { type } = await messages.readMessage();
      if (type === 'D') rows += 1;
      if (type === 'Z') break;
    }
    expect(rows).toBe(20_000);
  });

  it('may not send bytes in clear before TLS that are no part of it', async () => {
    const { client, messages } = await open(await start());
    messages.write(Buffer.concat([int32(8), int32(80_877_103), Buffer.from('select')]));
    await once(client, 'close');
    expect(messages.unreadBytes).toBeLessThan(10);
  });
});
