/** The proxy as an unauthenticated client sees it, byte by byte, with a scripted control plane and no Postgres. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectTcp, createServer } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { closed, isOnBun, readError, scramFinal, TestProxies } from '../../test/helpers/proxy.ts';
import { CatnapError } from '../lib/errors.ts';
import type { ControlPlane, DialAddress, PastRequest } from './kit/control-plane.ts';
import { noMetrics, type ProxyMetrics } from './kit/metrics.ts';
import type { RunningProxy } from './listener.ts';
import { MessageStream } from './protocol/message-stream.ts';
import {
  parseAuthentication,
  parseErrorResponse,
  requestCodes,
  saslInitialResponse,
  saslResponse,
  startupMessage,
} from './protocol/messages.ts';
import { scramMechanism, scramPlusMechanism, startClientExchange } from './protocol/scram.ts';
import { cstring, encodeMessage, int32 } from './protocol/wire.ts';

const proxies = new TestProxies();
const start = proxies.start.bind(proxies);

beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

async function open(proxy: RunningProxy, allowHalfOpen = false): Promise<MessageStream> {
  return new MessageStream(await proxies.connect(proxy, allowHalfOpen), 1_000_000);
}

/** Counts as the proxy reports them. */
function countConnections(): { metrics: ProxyMetrics; open: () => number } {
  let open = 0;
  const metrics = {
    ...noMetrics,
    connectionOpened: () => void open++,
    connectionClosed: () => void open--,
  };
  return { metrics, open: () => open };
}

const packet = (...parts: Buffer[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([int32(body.length + 4), body]);
};
const sslRequest = packet(int32(requestCodes.ssl));
const startup = (changes: Record<string, string> = {}) =>
  startupMessage(Object.entries({ user: 'ann', options: 'endpoint=ep-a', ...changes }));

function asMessages(socket: TLSSocket): MessageStream {
  proxies.onCleanup(() => socket.destroy());
  return new MessageStream(socket, 1_000_000);
}

async function openTls(proxy: RunningProxy, servername: string): Promise<MessageStream> {
  const socket = await proxies.connect(proxy);
  socket.write(sslRequest);
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toBe('S');
  const secured = connectTls({ socket, servername, rejectUnauthorized: false });
  await once(secured, 'secureConnect');
  return asMessages(secured);
}

async function readAuthentication(messages: MessageStream) {
  const { type, body } = await messages.readMessage();
  return type === 'E' ? { kind: 'error' as const, ...parseErrorResponse(body) } : parseAuthentication(body);
}

/** Runs SCRAM as a driver does; returns every message that came. */
async function authenticate(messages: MessageStream, password: string) {
  const seen = [await readAuthentication(messages)];
  const exchange = startClientExchange();
  messages.write(saslInitialResponse(scramMechanism, exchange.first));
  const next = await readAuthentication(messages);
  seen.push(next);
  if (next.kind !== 'sasl_continue') return seen;
  messages.write(saslResponse(await scramFinal(exchange, next.data, password)));
  seen.push(await readAuthentication(messages));
  return seen;
}

const expectClosed = (messages: MessageStream) =>
  expect(messages.readMessage()).rejects.toThrow('the peer closed the connection');

describe('the first packets', () => {
  it('SSLRequest gets S, GSSENCRequest gets N, one after the other', async () => {
    const proxy = await start();
    const socket = await proxies.connect(proxy);
    socket.write(packet(int32(requestCodes.gssenc)));
    expect(String((await once(socket, 'data'))[0])).toBe('N');
    socket.write(sslRequest);
    expect(String((await once(socket, 'data'))[0])).toBe('S');
  });

  it('plaintext after an SSLRequest is refused', async () => {
    const messages = await open(await start());
    messages.write(Buffer.concat([sslRequest, startup()]));
    expect(await readError(messages)).toEqual({
      sqlState: '08P01',
      message: 'received unencrypted data after SSL request',
    });
  });

  it.each([
    ['too large', startup({ application_name: 'x'.repeat(10_000) })],
    ['huge', Buffer.from([0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0])],
    ['too short', packet(Buffer.alloc(0))],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a Terminate', encodeMessage('X')],
    ['a cancel request with more behind it', packet(int32(requestCodes.cancel), int32(1), int32(2), int32(3))],
  ])('a packet that is %s is closed without a message, as in Postgres', async (_name, bytes) => {
    const refused: string[] = [];
    const metrics = { ...noMetrics, connectionRefused: (sqlState: string) => void refused.push(sqlState) };
    const messages = await open(await start({}, { metrics }));
    messages.write(bytes);
    await expectClosed(messages);
    expect(messages.unreadBytes).toBe(0);
    expect(refused).toEqual(['08P01']);
  });

  it('the packet may come one byte at a time', async () => {
    const messages = await open(await start());
    for (const byte of startup()) messages.write(Buffer.from([byte]));
    expect(await readAuthentication(messages)).toEqual({ kind: 'sasl', mechanisms: [scramMechanism] });
  });

  it('a newer minor version and unknown extensions are negotiated down', async () => {
    const messages = await open(await start());
    const words = ['user', 'ann', '_pq_.later', 'on', 'options', 'endpoint=ep-a'].map(cstring);
    messages.write(packet(int32((3 << 16) | 2), ...words, Buffer.from([0])));
    const expected = encodeMessage('v', int32(3 << 16), int32(1), cstring('_pq_.later'));
    expect(await messages.readMessage()).toEqual({ type: 'v', body: expected.subarray(5) });
    expect(await readAuthentication(messages)).toMatchObject({ kind: 'sasl' });
  });

  it.each([
    ['no user', { user: '' }, "Parameter 'user' is missing in startup packet."],
    [
      'an invalid id',
      { options: 'endpoint=e_p' },
      "Project name ('e_p') must contain only alphanumeric characters and hyphen.",
    ],
  ])('%s', async (_name, changes, message) => {
    const messages = await open(await start());
    messages.write(startup(changes));
    expect(await readError(messages)).toEqual({ sqlState: '28000', message });
  });

  it('SNI and options must not contradict each other', async () => {
    const messages = await openTls(await start(), 'ep-b.local.localhost');
    messages.write(startup());
    expect((await readError(messages)).message).toBe(
      "Inconsistent project name inferred from SNI ('ep-b') and project option ('ep-a').",
    );
  });

  it('plaintext is refused where it is not allowed, but a cancel request is taken', async () => {
    const proxy = await start({}, { allowPlaintext: false });
    const messages = await open(proxy);
    messages.write(startup());
    expect(await readError(messages)).toEqual({
      sqlState: '28000',
      message: 'connection is insecure (try using `sslmode=require`)',
    });
    const secure = await openTls(proxy, 'ep-a.local.localhost');
    secure.write(startup());
    expect(await readAuthentication(secure)).toMatchObject({ kind: 'sasl' });
    const cancel = await open(proxy);
    cancel.write(packet(int32(requestCodes.cancel), int32(1), int32(2)));
    await expectClosed(cancel);
  });
});

describe('TLS', () => {
  it('may start without an SSLRequest when ALPN names the protocol', async () => {
    const proxy = await start();
    const socket = connectTls({
      host: '127.0.0.1',
      port: proxy.port,
      servername: 'ep-a.local.localhost',
      ALPNProtocols: ['postgresql'],
      ca: proxies.certificates.cert,
    });
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('postgresql');
    const messages = asMessages(socket);
    messages.write(startupMessage([['user', 'ann']]));
    expect(await readAuthentication(messages)).toEqual({
      kind: 'sasl',
      mechanisms: [scramPlusMechanism, scramMechanism],
    });
  });

  it.each([[undefined], [['http/1.1']]])(
    'is not accepted without an SSLRequest with ALPN %j',
    async (ALPNProtocols) => {
      const proxy = await start();
      const socket = connectTls({
        host: '127.0.0.1',
        port: proxy.port,
        rejectUnauthorized: false,
        ...(ALPNProtocols ? { ALPNProtocols } : {}),
      });
      socket.on('error', () => {});
      socket.on('secureConnect', () => socket.write(startup()));
      const received: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => received.push(chunk));
      await closed(socket);
      expect(Buffer.concat(received).length).toBe(0);
    },
  );

  it('a client that was offered channel binding and claims the opposite is refused', async () => {
    const messages = await openTls(await start(), 'ep-a.local.localhost');
    messages.write(startup());
    expect(await readAuthentication(messages)).toMatchObject({ mechanisms: [scramPlusMechanism, scramMechanism] });
    messages.write(saslInitialResponse(scramMechanism, 'y,,n=,r=abc'));
    expect(await readError(messages)).toEqual({
      sqlState: '08P01',
      message: 'SCRAM channel binding negotiation error',
    });
  });

  it('a handshake that fails closes the connection with an alert, and is not counted any more', async () => {
    const { metrics, open } = countConnections();
    const socket = await proxies.connect(await start({}, { metrics }));
    socket.write(sslRequest);
    await once(socket, 'data');
    expect(open()).toBe(1);
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.write('this is no TLS hello at all');
    await closed(socket);
    // At most a TLS alert; an ErrorResponse would be noise to a client in a handshake.
    expect([undefined, 0x15]).toContain(Buffer.concat(received)[0]);
    await expect.poll(open).toBe(0);
  });
});

describe('unauthenticated clients', () => {
  it('cannot tell a wrong password from an unknown role or endpoint, and wake nothing', async () => {
    const proxy = await start();
    const attempt = async (changes: Record<string, string>) => {
      const messages = await open(proxy);
      messages.write(startup(changes));
      const seen = await authenticate(messages, 'wrong');
      await expectClosed(messages);
      return seen.map((message) => ({
        ...message,
        ...('data' in message ? { data: message.data.replace(/^r=[^,]{42,}/, 'r').replace(/s=[^,]{24}/, 's') } : {}),
      }));
    };
    const wrongPassword = await attempt({});
    expect(wrongPassword.map((message) => message.kind)).toEqual(['sasl', 'sasl_continue', 'error']);
    expect(wrongPassword[1]).toEqual({ kind: 'sasl_continue', data: 'r,s,i=4096' });
    expect(wrongPassword[2]).toMatchObject({
      sqlState: '28P01',
      message: "password authentication failed for user 'ann'",
    });
    expect(await attempt({ options: 'endpoint=ep-zzz' })).toEqual(wrongPassword);
    const bob = JSON.parse(JSON.stringify(wrongPassword).replace("'ann'", "'bob'"));
    expect(await attempt({ user: 'bob' })).toEqual(bob);
    expect(proxy.wakes).toEqual([]);
  });

  it('get the same salt for the same question', async () => {
    const secret = Buffer.from('survives a restart');
    const salts: string[] = [];
    for (const user of ['bob', 'bob', 'eve']) {
      const messages = await open(await start({}, { mockSecret: secret }));
      messages.write(startup({ user }));
      const [, second] = await authenticate(messages, 'wrong');
      salts.push(second && 'data' in second ? (/s=([^,]+)/.exec(second.data)?.[1] ?? '') : '');
    }
    expect(salts[0]).toBe(salts[1]);
    expect(salts[0]).not.toBe(salts[2]);
  });

  it('cannot tell them apart by the password form either', async () => {
    const proxy = await start();
    const attempt = async (password: string) => {
      const messages = await open(proxy);
      messages.write(startupMessage([['user', 'ann']]));
      expect(await readAuthentication(messages)).toEqual({ kind: 'other', code: 3 });
      messages.write(encodeMessage('p', cstring(password)));
      return readError(messages);
    };
    const refused = { sqlState: '28P01', message: "password authentication failed for user 'ann'" };
    expect(await attempt('endpoint=ep-a;wrong')).toEqual(refused);
    expect(await attempt('endpoint=ep-zzz;right')).toEqual(refused);
    expect((await attempt('right')).message).toMatch(/^Endpoint ID is not specified\. .*neon\.tech\/sni$/);
    expect(proxy.wakes).toEqual([]);
  });

  it('learn nothing about address lists or disabled endpoints', async () => {
    const facts = { verifier: proxies.verifier, disabled: true, allowedIps: ['10.0.0.1'] };
    const proxy = await start({ findLogin: async () => facts });
    const attempt = async (password: string) => {
      const messages = await open(proxy);
      messages.write(startup());
      const last = (await authenticate(messages, password)).at(-1);
      return last?.kind === 'error' ? last.message : (await readError(messages)).message;
    };
    expect(await attempt('wrong')).toBe("password authentication failed for user 'ann'");
    expect(await attempt('right')).toMatch(
      /^This IP address 127\.0\.0\.1 is not allowed to connect to this endpoint\./,
    );
    facts.allowedIps = ['127.0.0.0/8'];
    expect(await attempt('right')).toBe('Control plane request failed: endpoint is disabled');
    expect(proxy.wakes).toEqual([]);
  });

  it('learn nothing about a closed pooled host', async () => {
    const facts = { verifier: proxies.verifier, disabled: false, allowedIps: [], poolerEnabled: false };
    const proxy = await start({ findLogin: async () => facts });
    const attempt = async (password: string) => {
      const messages = await open(proxy);
      messages.write(startup({ options: 'endpoint=ep-a-pooler' }));
      const last = (await authenticate(messages, password)).at(-1);
      return last?.kind === 'error' ? last : readError(messages);
    };
    expect((await attempt('wrong')).sqlState).toBe('28P01');
    const closed = await attempt('right');
    expect(closed.sqlState).toBe('55000');
    expect(closed.message).toMatch(/^Connection pooling is disabled for this endpoint\./);
    expect(proxy.wakes).toEqual([]);
  });

  it.skipIf(isOnBun)('are refused at once after too many failures, for a minute', async () => {
    let nowMs = 0;
    const limits = { failuresPerMinute: 2 };
    const proxy = await start({}, { limits, clock: { now: () => new Date(nowMs) } });
    const attempt = async (password: string) => {
      const messages = await open(proxy);
      messages.write(startup());
      const first = await readAuthentication(messages);
      if (first.kind === 'error') return first.message;
      messages.write(saslInitialResponse(scramMechanism, 'n,,n=,r=abc'));
      await readAuthentication(messages);
      const proof = Buffer.alloc(32, password).toString('base64');
      messages.write(saslResponse(`c=biws,r=abc,p=${proof}`));
      return (await readError(messages)).message;
    };
    // A malformed exchange is no guess at a password and does not count.
    expect(await attempt('x')).toBe('malformed SCRAM message');
    for (let i = 0; i < 2; i++) {
      const messages = await open(proxy);
      messages.write(startup());
      await authenticate(messages, 'wrong');
    }
    expect(await attempt('x')).toBe('Too many connections attempts');
    nowMs = 60_000;
    expect(await attempt('x')).toBe('malformed SCRAM message');
  });

  it('get the same message whatever is wrong with the control plane', async () => {
    const findLogin = async () => {
      throw new CatnapError('not_found', 'endpoint ep-a not found in table endpoints');
    };
    const messages = await open(await start({ findLogin }));
    messages.write(startup());
    const seen = await authenticate(messages, 'right');
    expect(seen.at(-1)).toEqual({ kind: 'error', sqlState: '57P03', message: 'Control plane request failed' });
  });
});

describe('limits', () => {
  it.each([
    ['sends nothing', Buffer.alloc(0)],
    ['stops in the middle of its packet', startup().subarray(0, 10)],
    ['does not answer the challenge', startup()],
  ])('a client that %s is timed out', async (_name, bytes) => {
    const messages = await open(await start({}, { limits: { authenticationMs: 50 } }));
    messages.write(bytes);
    expect(await readError(messages)).toEqual({ sqlState: '28000', message: 'Authentication timed out' });
    await expectClosed(messages);
  });

  it('clients do not wait for ever for a control plane that hangs', async () => {
    const findLogin = () => new Promise<never>(() => {});
    const messages = await open(await start({ findLogin }, { limits: { authenticationMs: 1_000 } }));
    messages.write(startup());
    const seen = await authenticate(messages, 'right');
    expect(seen.at(-1)).toEqual({ kind: 'error', sqlState: '28000', message: 'Authentication timed out' });
  });

  it('a client that hangs in the TLS handshake is cut off, and is not counted any more', async () => {
    const { metrics, open } = countConnections();
    // Long enough to read the request on a busy machine.
    const proxy = await start({}, { metrics, limits: { authenticationMs: 2_000 } });
    const socket = await proxies.connect(proxy);
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.write(sslRequest);
    await closed(socket);
    // Nothing but the answer to the SSLRequest: an ErrorResponse could not be read in the middle of a handshake.
    expect(Buffer.concat(received).toString()).toBe('S');
    await expect.poll(open).toBe(0);
  });

  it('one connection too many is refused, and there is room again when one goes', async () => {
    const proxy = await start({}, { limits: { connections: 1 } });
    const first = await open(proxy);
    first.write(startup());
    await readAuthentication(first);
    const second = await open(proxy);
    expect(await readError(second)).toMatchObject({ sqlState: '53300' });
    first.stream.destroy();
    await expect
      .poll(async () => {
        const next = await open(proxy);
        next.write(startup());
        return (await readAuthentication(next)).kind;
      })
      .toBe('sasl');
  });

  it('a flood of silent connections is ended from its oldest on, and a client still logs in', async () => {
    for (const limits of [{ unauthenticatedPerAddress: 3 }, { unauthenticated: 3 }]) {
      const proxy = await start({ wake: () => new Promise(() => {}) }, { limits });
      const authenticated = await open(proxy);
      authenticated.write(startup());
      await authenticate(authenticated, 'right');
      const flood: MessageStream[] = [];
      for (let i = 0; i < 30; i++) flood.push(await open(proxy));
      const fresh = await open(proxy);
      fresh.write(startup());
      expect((await authenticate(fresh, 'right')).at(-1)).toMatchObject({ kind: 'sasl_final' });
      const isOpen = () => flood.map(({ stream }) => !stream.destroyed);
      await eventually(() => expect(isOpen().filter((one) => one)).toHaveLength(2));
      expect(isOpen().slice(-2)).toEqual([true, true]);
      expect(authenticated.stream.destroyed).toBe(false);
    }
  });

  it('an endpoint has its own limit, counted after authentication', async () => {
    const proxy = await start(
      { wake: () => new Promise(() => {}) },
      { limits: { connectionsPerEndpoint: 1, closeMs: 50 } },
    );
    const [first, second, third] = [await open(proxy), await open(proxy), await open(proxy)];
    for (const messages of [first, second, third]) messages.write(startup());
    await authenticate(first, 'right');
    await expect.poll(() => proxy.wakes.length).toBe(1);
    await authenticate(second, 'right');
    expect(await readError(second)).toEqual({
      sqlState: '53300',
      message: 'Too many connections to this endpoint. Please try again later.',
    });
    expect((await authenticate(third, 'wrong')).at(-1)).toMatchObject({ sqlState: '28P01' });
  });

  const facts = async () => ({ verifier: proxies.verifier, disabled: false, allowedIps: [], endpointId: 'ep-a' });
  const askFor = async (options: string, plane: Partial<ControlPlane>, password = 'right') => {
    const proxy = await start({ findLogin: facts, ...plane }, { limits: { unreachableMs: 0, wakeMs: 200 } });
    const messages = await open(proxy);
    messages.write(startup({ options }));
    const [...answers] = await authenticate(messages, password);
    return { proxy, answers, error: () => readError(messages) };
  };

  it('a connection to the past is refused rather than served from the present', async () => {
    const { error } = await askFor('endpoint=ep-a neon_lsn:0/1', {});
    expect(await error()).toMatchObject({ sqlState: '0A000' });
  });

  it('a moment of the past leads to the compute that serves it, with what the client has proved', async () => {
    const asked: PastRequest[] = [];
    const openPast = async (request: PastRequest) => {
      asked.push(request);
      return 'look-a';
    };
    const { proxy, error } = await askFor('endpoint=br-a neon_timestamp:2026-01-01T00:00:00Z', { openPast });
    await error();
    expect(asked).toEqual([
      { name: 'br-a', moment: { timestamp: '2026-01-01T00:00:00Z' }, role: 'ann', verifier: proxies.verifier },
    ]);
    expect(new Set(proxy.wakes)).toEqual(new Set(['look-a']));
  });

  it('a moment that cannot be given is refused with the reason, to those who know the password', async () => {
    const openPast = async () => {
      throw new CatnapError('unprocessable', 'neon_lsn is outside the history');
    };
    const refused = await askFor('endpoint=ep-a neon_lsn:0/1', { openPast });
    expect(await refused.error()).toEqual({ sqlState: '22023', message: 'neon_lsn is outside the history' });
    const twice = await askFor('endpoint=ep-a neon_lsn:0/1 neon_lsn:0/1', { openPast });
    expect(await twice.error()).toEqual({ sqlState: '22023', message: 'neon_lsn is given twice' });
    const wrong = await askFor('endpoint=ep-a neon_lsn:0/1', { openPast }, 'wrong');
    expect(wrong.answers.at(-1)).toMatchObject({ sqlState: '28P01' });
  });

  it('a client that waits too long for the past is told to try again', async () => {
    const { error } = await askFor('endpoint=ep-a neon_lsn:0/1', { openPast: () => new Promise(() => {}) });
    expect(await error()).toMatchObject({ sqlState: '57P03' });
  });

  it('the name of a branch is for its past alone', async () => {
    const { proxy, error } = await askFor('endpoint=br-a', {});
    expect(await error()).toMatchObject({ sqlState: '22023', message: expect.stringContaining('neon_timestamp:') });
    expect(proxy.wakes).toEqual([]);
  });
});

describe('waking', () => {
  const logIn = async (proxy: RunningProxy) => {
    const messages = await open(proxy);
    messages.write(startup());
    expect((await authenticate(messages, 'right')).at(-1)).toMatchObject({ kind: 'sasl_final' });
    return messages;
  };

  it('passes on the message and the SQLSTATE of a failed wake', async () => {
    const wake = async () => {
      throw new CatnapError('too_many_connections', 'all computes of the plan are in use');
    };
    const messages = await logIn(await start({ wake }));
    expect(await readError(messages)).toEqual({ sqlState: '53300', message: 'all computes of the plan are in use' });
  });

  it('gives up on a wake that takes too long', async () => {
    const messages = await logIn(await start({ wake: () => new Promise(() => {}) }, { limits: { wakeMs: 50 } }));
    expect(await readError(messages)).toMatchObject({ sqlState: '57P03' });
    await expectClosed(messages);
  });

  it('asks again when nothing answers at the address, and reports it when the time is up', async () => {
    const proxy = await start({}, { limits: { unreachableMs: 0 } });
    const messages = await logIn(proxy);
    expect(await readError(messages)).toEqual({ sqlState: '57P03', message: "Couldn't connect to compute node" });
    expect(proxy.wakes).toEqual(['ep-a', 'ep-a']);
  });

  it('does not dial for a client that left meanwhile', async () => {
    let dials = 0;
    const compute = createServer(() => {
      dials += 1;
    });
    const path = join(proxies.directory, 'compute.sock');
    await new Promise<void>((resolve) => compute.listen(path, resolve));
    proxies.onCleanup(() => compute.close());
    let answer = (_address: DialAddress) => {};
    const wake = () =>
      new Promise<DialAddress>((resolve) => {
        answer = resolve;
      });
    const { metrics, open } = countConnections();
    const proxy = await start({ wake }, { metrics });
    const messages = await logIn(proxy);
    await expect.poll(() => proxy.wakes.length).toBe(1);
    messages.stream.destroy();
    await expect.poll(open).toBe(0);
    answer({ kind: 'unix', path });
    await proxy.close();
    expect(dials).toBe(0);
  });

  it('reports the connection request as activity', async () => {
    const reported: string[] = [];
    const reportActivity = async (seen: ReadonlyMap<string, Date>) => void reported.push(...seen.keys());
    const proxy = await start({ reportActivity, wake: () => new Promise(() => {}) }, { limits: { closeMs: 50 } });
    await logIn(proxy);
    await expect.poll(() => proxy.wakes.length).toBe(1);
    await proxy.close();
    expect(reported).toEqual(['ep-a']);
  });
});

describe('start', () => {
  it('fails when the port is taken or the key is not the certificate’s', async () => {
    const proxy = await start();
    await expect(start({}, { port: proxy.port })).rejects.toThrow(/EADDRINUSE/);
    const { key, caPath } = proxies.certificates;
    const mixed = { key, cert: await readFile(caPath, 'utf8') };
    await expect(start({}, { tls: () => mixed })).rejects.toThrow(/key/);
  });
});

describe('close', () => {
  it('tells clients in every state and takes no new ones', async () => {
    const proxy = await start({ wake: () => new Promise(() => {}) });
    const fresh = await open(proxy);
    const asked = await open(proxy);
    asked.write(startup());
    await readAuthentication(asked);
    const waiting = await open(proxy);
    waiting.write(startup());
    await authenticate(waiting, 'right');
    await expect.poll(() => proxy.wakes.length).toBe(1);
    const closing = proxy.close();
    for (const messages of [fresh, asked, waiting]) {
      expect(await readError(messages)).toEqual({
        sqlState: '57P01',
        message: 'terminating connection due to administrator command',
      });
      messages.stream.end();
    }
    await closing;
    const late = connectTcp(proxy.port, '127.0.0.1');
    await expect(once(late, 'connect')).rejects.toThrow(/ECONNREFUSED/);
  });

  it('does not wait for ever for a client that stays', async () => {
    const proxy = await start({}, { limits: { closeMs: 50 } });
    const messages = await open(proxy, true);
    messages.write(startup());
    await readAuthentication(messages);
    await proxy.close();
    expect(await readError(messages)).toMatchObject({ sqlState: '57P01' });
  });
});
