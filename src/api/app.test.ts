import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../test/helpers/contract.ts';
import { eventually, letRun } from '../../test/helpers/eventually.ts';
import { createLogger } from '../lib/log.ts';
import { buildApp } from './app.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

const json = { 'content-type': 'application/json' };
const raw = (method: 'POST' | 'DELETE', url: string, payload: string | Buffer, headers: Record<string, string>) =>
  api.app.inject({ method, url, payload, headers: { authorization: `Bearer ${api.token}`, ...headers } });

describe('request ids', () => {
  test('a sane one is taken over and echoed, also in the error body', async () => {
    const reply = await api.call('GET', '/api/v2/projects/none', { headers: { 'x-request-id': 'abc.DEF_1-2' } });
    expect(reply.headers).toMatchObject({ 'x-request-id': 'abc.DEF_1-2', 'x-neon-ret-request-id': 'abc.DEF_1-2' });
    expect(reply.json()).toEqual({ request_id: 'abc.DEF_1-2', code: '', message: 'project not found' });
  });

  test.each(['', 'a b', 'x'.repeat(129), 'ä', '<script>'])('%j is replaced by a new one', async (id) => {
    const reply = await api.call('GET', '/healthz', { headers: { 'x-request-id': id } });
    expect(reply.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('authentication', () => {
  test.each([
    ['no header', {}],
    ['an unknown key', { authorization: 'Bearer napi_nobody' }],
    ['another scheme', { authorization: 'Basic abc' }],
    ['an empty key', { authorization: 'Bearer ' }],
    ['an overlong key', { authorization: `Bearer ${'x'.repeat(300)}` }],
  ])('%s is a 401', async (_name, headers) => {
    const reply = await api.call('GET', '/api/v2/projects', { token: null, headers });
    expect(reply.statusCode).toBe(401);
    expect(reply.headers['www-authenticate']).toBe('Bearer');
    expect(reply.json()).toMatchObject({ code: '', message: 'supplied credentials do not pass authentication' });
  });

  test('the key counts in the header only, and foreign cookies do no harm', async () => {
    const cookie = `zenith=${api.token}; keycloak_token=${api.token}`;
    expect((await api.call('GET', '/api/v2/auth', { token: null, headers: { cookie } })).statusCode).toBe(401);
    expect((await api.call('GET', '/api/v2/auth', { headers: { cookie: 'zenith=garbage' } })).statusCode).toBe(200);
    const lower = await api.call('GET', '/api/v2/auth', {
      token: null,
      headers: { authorization: `bearer ${api.token}` },
    });
    expect(lower.statusCode).toBe(200);
  });

  test('comes before the body is looked at', async () => {
    const reply = await api.app.inject({ method: 'POST', url: '/api/v2/projects', payload: '{', headers: json });
    expect(reply.statusCode).toBe(401);
  });
});

describe('paths and methods', () => {
  test('an unknown path is a 404 in JSON', async () => {
    for (const path of ['/nowhere', '/api/v2/nowhere', '/api/v3/projects']) {
      const reply = await api.call('GET', path);
      expect(reply.statusCode).toBe(404);
      expect(reply.json()).toMatchObject({ code: '', message: 'path not found' });
    }
  });

  test('a wrong method names the right ones', async () => {
    const reply = await api.call('PUT', '/api/v2/projects/some-project');
    expect(reply.statusCode).toBe(405);
    expect(reply.headers.allow).toBe('DELETE, GET, HEAD, PATCH');
    expect((await api.call('OPTIONS', '/api/v2/projects')).statusCode).toBe(405);
  });

  test('a trailing slash does not matter, a literal path wins over a parameter', async () => {
    expect((await api.call('GET', '/api/v2/projects/')).statusCode).toBe(200);
    expect((await api.call('GET', '/api/v2/projects/shared')).json()).toEqual({ projects: [] });
  });

  test('a path that cannot be decoded is a 400', async () => {
    const reply = await api.call('GET', '/api/v2/projects/%zz');
    expect(reply.statusCode).toBe(400);
    expect(reply.headers['x-request-id']).toBeDefined();
  });

  test('a parameter too long for any id is a 400', async () => {
    expect((await api.call('GET', `/api/v2/projects/${'a'.repeat(61)}`)).statusCode).toBe(400);
    expect((await api.call('GET', `/api/v2/projects/${'a'.repeat(600)}`)).statusCode).toBe(400);
  });

  test('HEAD answers like GET, without a body', async () => {
    const reply = await api.call('HEAD', '/api/v2/regions');
    expect([reply.statusCode, reply.body]).toEqual([200, '']);
  });
});

describe('bodies', () => {
  test.each(['{', '{"project":}', 'null,', '{"__proto__":{}}', '\u0000'])(
    'malformed JSON %j is a 400',
    async (text) => {
      const reply = await raw('POST', '/api/v2/projects', text, json);
      expect(reply.statusCode).toBe(400);
      expect(reply.json()).toMatchObject({ code: '', message: 'invalid request: the body is not valid JSON' });
    },
  );

  test('an announced but empty JSON body is no body', async () => {
    const project = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
    const branches = `/api/v2/projects/${project.project.id}/branches`;
    const made = await raw('POST', branches, '', json);
    expect(made.statusCode).toBe(201);
    const send = { headers: json };
    expect((await api.call('DELETE', `${branches}/${made.json().branch.id}`, send)).statusCode).toBe(200);
    expect((await api.call('POST', `${branches}/${project.branch.id}/set_as_default`, send)).statusCode).toBe(200);
  });

  test('an empty body where one is needed names the missing field', async () => {
    const reply = await raw('POST', '/api/v2/projects', '', json);
    expect(reply.json().message).toBe('invalid request: body.project (field required)');
  });

  test('more than a mebibyte is a 413', async () => {
    const reply = await raw('POST', '/api/v2/projects', JSON.stringify({ a: 'x'.repeat(1024 * 1024) }), json);
    expect(reply.statusCode).toBe(413);
    expect(reply.json().message).toBe('request body is larger than 1048576 bytes');
  });

  test.each([
    ['text/plain', 'hello'],
    ['application/x-www-form-urlencoded', 'a=b'],
    ['multipart/form-data', 'x'],
    ['nonsense', '{}'],
  ])('a body of type %s is a 415', async (type, text) => {
    const reply = await raw('POST', '/api/v2/projects', text, { 'content-type': type });
    expect(reply.statusCode).toBe(415);
    expect(reply.json().message).toContain('application/json');
  });

  test('one that nobody reads does no harm, however deep', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    expect((await raw('POST', '/api/v2/projects/p/endpoints/ep-a/start', deep, json)).statusCode).toBe(404);
    expect((await raw('POST', '/api/v2/projects', `{"project":${deep}}`, json)).statusCode).toBe(400);
  });

  test('an empty body of another type is no body', async () => {
    const reply = await raw('POST', '/api/v2/projects', '', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(reply.json().message).toBe('invalid request: body.project (field required)');
  });
});

describe('headers', () => {
  test('API replies are not cached, sniffed or framed, and no origin is let in', async () => {
    const { headers } = await api.call('GET', '/api/v2/regions', { headers: { origin: 'https://example.org' } });
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-type': 'application/json; charset=utf-8',
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
    expect(headers['strict-transport-security']).toBeUndefined();
  });
});

test('bytes that are not HTTP get an answer in JSON', async () => {
  const address = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(address.port), address.hostname);
  socket.write('nonsense\r\n\r\n');
  const reply = await text(socket);
  expect(reply).toMatch(/^HTTP\/1\.1 400 Bad Request/);
  expect(JSON.parse(reply.split('\r\n\r\n')[1] ?? '')).toMatchObject({
    code: '',
    message: 'invalid request: bad request',
  });
});

describe('failures that nobody expected', () => {
  test('are answered blandly and logged once, with cause and request id', async () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'info', process: 'test', destination: { write: (line) => lines.push(line) } });
    const broken = { ...api.core, database: { ...api.core.database, sql: api.core.database.sql } };
    const app = await buildApp({ ...api.parts, log, metrics: new Registry(), core: broken }, (instance) => {
      instance.get('/broken', async () => {
        throw new Error('the secret reason', { cause: new Error('the deeper one') });
      });
      instance.get('/full', async () => {
        throw Object.assign(new Error('could not extend file "base/5/1259"'), { code: '53100' });
      });
    });
    const reply = await app.inject({ url: '/broken', headers: { 'x-request-id': 'r1' } });
    expect(reply.statusCode).toBe(500);
    expect(reply.body).not.toContain('secret');
    expect(reply.json()).toMatchObject({ request_id: 'r1', code: '' });
    const logged = lines.filter((line) => line.includes('secret'));
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('the deeper one');
    expect(logged[0]).toContain('"request_id":"r1"');
    const full = await app.inject('/full');
    expect([full.statusCode, full.json().message]).toEqual([507, expect.stringContaining('nothing was changed')]);
    await app.close();
  });
});

test('while the system database is away or goes away, every reply is a 503 that says when to come back', async () => {
  const codes = ['ECONNREFUSED', 'CONNECTION_CLOSED', 'ECONNRESET', '57P01', '57P03', '08006'];
  const app = await buildApp({ ...api.parts, metrics: new Registry() }, (instance) => {
    instance.get('/fails/:code', async (request) => {
      const { code } = request.params as { code: string };
      throw Object.assign(new Error(`the database said ${code}`), { code });
    });
  });
  for (const code of codes) {
    const reply = await app.inject(`/fails/${code}`);
    expect([code, reply.statusCode, reply.headers['retry-after']]).toEqual([code, 503, '1']);
    expect(reply.body).not.toContain('the database said');
  }
  expect((await app.inject('/fails/57P01')).json().message).toMatch(/look first whether a change was made/);
  expect((await app.inject('/fails/42601')).statusCode).toBe(500);
  await app.close();
});

test('a client that goes away with half of its body sent is no failure of ours', async () => {
  const lines: string[] = [];
  const log = createLogger({ level: 'info', process: 'test', destination: { write: (line) => lines.push(line) } });
  let socket: Socket | undefined;
  let answer = (_status: number) => {};
  const answered = new Promise<number>((resolve) => {
    answer = resolve;
  });
  const app = await buildApp({ ...api.parts, log, metrics: new Registry() }, (instance) => {
    const options = {
      preParsing: async () => {
        setImmediate(() => socket?.destroy());
      },
      onSend: async (_request: unknown, reply: { readonly statusCode: number }) => answer(reply.statusCode),
    };
    instance.post('/reads', options, async () => 'read');
  });
  const address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  socket = connect(Number(address.port), address.hostname);
  socket.write(
    'POST /reads HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{',
  );
  expect(await answered).toBe(400);
  expect(lines.filter((line) => line.includes('"level":50'))).toEqual([]);
  await app.close();
});

test('a body that does not end is cut off, even if its sender neither stops nor closes', async () => {
  const app = await buildApp({ ...api.parts, metrics: new Registry() });
  const address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const { headersTimeout, requestTimeout } = app.server;
  expect(headersTimeout).toBeLessThan(requestTimeout);
  Object.assign(app.server, { headersTimeout: headersTimeout / 300, requestTimeout: requestTimeout / 300 });
  const heads = [`authorization: Bearer ${api.token}\r\n`, ''];
  const senders = heads.map((head) => {
    const socket = connect({ port: Number(address.port), host: address.hostname, allowHalfOpen: true });
    socket.on('error', () => {});
    socket.resume();
    socket.write(
      `POST /api/v2/projects HTTP/1.1\r\nhost: localhost\r\n${head}content-type: application/json\r\n` +
        'content-length: 100000\r\n\r\n',
    );
    const trickle = setInterval(() => socket.write(' '), 50);
    socket.once('close', () => clearInterval(trickle));
    return socket;
  });
  await eventually(() => expect(senders.map((socket) => socket.destroyed)).toEqual([true, true]));
  await app.close();
});

test('a reply that took long is not sent to a key that was revoked meanwhile', async () => {
  const made = (await api.call('POST', '/api/v2/api_keys', { body: { key_name: 'slow' } })).json();
  const dumpSchema: typeof api.parts.dumpSchema = async () => {
    await api.call('DELETE', `/api/v2/api_keys/${made.id}`);
    await letRun(600);
    return 'create table secret ()';
  };
  const project = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  const app = await buildApp({ ...api.parts, dumpSchema, metrics: new Registry() });
  const url = `/api/v2/projects/${project.project.id}/branches/${project.branch.id}/schema?db_name=neondb`;
  const reply = await app.inject({ url, headers: { authorization: `Bearer ${made.key}` } });
  expect(reply.statusCode).toBe(401);
  expect(reply.body).not.toContain('secret');
  await app.close();
});
