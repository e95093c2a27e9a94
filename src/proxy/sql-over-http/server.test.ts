/** SQL over HTTP between a plain HTTP client and a real Postgres; only the control plane is scripted. */
import { Agent, type IncomingHttpHeaders, request as openRequest } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../../test/helpers/proxy.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';

const proxies = new PostgresProxies();
const { system, direct } = proxies;
let wakes: string[];

beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

const socketPath = () => join(proxies.directory, 'sql');

async function start(plane: Partial<ControlPlane> = {}, limits: Partial<ProxyLimits> = {}): Promise<void> {
  ({ wakes } = await proxies.start(plane, { siblings: { number: 0, sockets: [socketPath()] }, limits }));
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly body: any;
}

const url = (changes: { password?: string; user?: string; hostname?: string; path?: string } = {}) => {
  const { password = system.password, user = system.username, hostname = 'ep-a.local.localhost' } = changes;
  return `postgresql://${user}:${encodeURIComponent(password)}@${hostname}/${changes.path ?? system.database}`;
};

function send(body: unknown, headers: Record<string, string> = {}, method = 'POST', path = '/sql'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = openRequest({
      socketPath: socketPath(),
      path,
      method,
      headers: { 'neon-connection-string': url(), ...headers },
    });
    request.on('error', reject);
    request.on('response', async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const parsed: unknown = text === '' ? undefined : JSON.parse(text);
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parsed });
    });
    request.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

const select = (query: string, params: unknown[] = [], headers: Record<string, string> = {}) =>
  send({ query, params }, headers);

describe('a statement', () => {
  it('is answered with typed rows, its fields and its count', async () => {
    await start();
    const { status, body, headers } = await select(
      `select 1::int4 as i, 2::int8 as big, 1.5::float8 as f, true as b, null as n, '{1,2}'::int4[] as a,
       '{"x":[1]}'::jsonb as j, 'é'::text as t`,
    );
    expect(status).toBe(200);
    expect(body.rows).toEqual([{ i: 1, big: '2', f: 1.5, b: true, n: null, a: [1, 2], j: { x: [1] }, t: 'é' }]);
    expect(body).toMatchObject({ command: 'SELECT', rowCount: 1, rowAsArray: false });
    expect(body.fields[0]).toEqual({
      name: 'i',
      dataTypeID: 23,
      tableID: 0,
      columnID: 0,
      dataTypeSize: 4,
      dataTypeModifier: -1,
      format: 'text',
    });
    expect(headers['access-control-allow-origin']).toBe('*');
    expect(headers['neon-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('gives text and arrays on request, by header and for itself', async () => {
    await start();
    const modes = { 'neon-raw-text-output': 'true', 'neon-array-mode': 'true' };
    const both = await select('select 1 as a, true as b, null as c', [], modes);
    expect(both.body.rows).toEqual([['1', 't', null]]);
    expect(both.body.rowAsArray).toBe(true);
    const own = await send({ query: 'select 1 as a', arrayMode: false }, modes);
    expect(own.body.rows).toEqual([{ a: '1' }]);
    const notQuiteTrue = await select('select 1 as a', [], { 'neon-array-mode': '1' });
    expect(notQuiteTrue.body.rows).toEqual([{ a: 1 }]);
  });

  it('takes parameters of every kind', async () => {
    await start();
    const { body } = await send(
      '{"query": "select $1::int8 as big, $2::text as t, $3::int4[] as a, $4::jsonb as j, $5::bool as b, $6::text as n",' +
        '"params": [9007199254740993, "x\\"y", [1, null, 3], {"k": 9007199254740993}, true, null]}',
    );
    expect(body.rows[0]).toMatchObject({ big: '9007199254740993', t: 'x"y', a: [1, null, 3], b: true, n: null });
    const raw = await select(`select $1::jsonb as j`, [{ a: [1, 'two'] }], { 'neon-raw-text-output': 'true' });
    expect(raw.body.rows).toEqual([{ j: '{"a": [1, "two"]}' }]);
  });

  it('reports its command and its count of rows', async () => {
    await start();
    const inserted = await select('with r as (select 1) insert into pg_temp.nothing select 1');
    expect(inserted.body.code).toBe('42P01');
    expect((await select('select 1 where false')).body).toMatchObject({ rows: [], rowCount: 0, command: 'SELECT' });
    expect((await select('create temp table t (a int)')).body).toMatchObject({ command: 'CREATE', rowCount: null });
    expect((await select('')).body).toMatchObject({ command: '', rowCount: null, rows: [], fields: [] });
  });

  it('shows the last of columns with one name, and all of them in arrays', async () => {
    await start();
    expect((await select('select 1 as a, 2 as a')).body.rows).toEqual([{ a: 2 }]);
    expect((await select('select 1 as a, 2 as a', [], { 'neon-array-mode': 'true' })).body.rows).toEqual([[1, 2]]);
  });

  it('that Postgres refuses is a 400 with all its fields', async () => {
    await start();
    const { status, body } = await select('select nothing from nowhere');
    expect(status).toBe(400);
    expect(body).toMatchObject({
      message: 'relation "nowhere" does not exist',
      code: '42P01',
      severity: 'ERROR',
      position: '21',
      detail: null,
      hint: null,
      constraint: null,
      where: null,
      internalQuery: null,
    });
    expect(body.file).toMatch(/\.c$/);
    expect(Object.keys(body)).toHaveLength(17);
    const raised = await select(
      `do $$ begin raise exception 'no' using errcode = 'P1234', detail = 'd', hint = 'h', constraint = 'c',
       table = 't', schema = 's', column = 'k', datatype = 'y'; end $$`,
    );
    expect(raised.body).toMatchObject({
      message: 'no',
      code: 'P1234',
      detail: 'd',
      hint: 'h',
      constraint: 'c',
      table: 't',
      schema: 's',
      column: 'k',
      dataType: 'y',
    });
    expect(raised.body.where).toContain('PL/pgSQL');
  });

  it('cannot be two, open a transaction, or copy', async () => {
    await start();
    expect((await select('select 1; select 2')).body.code).toBe('42601');
    expect((await select('begin')).body.message).toContain('a transaction needs a batch');
    expect((await select('copy (select 1) to stdout')).body.message).toBe('COPY TO STDOUT is not possible over HTTP');
    const copied = await send({
      queries: [{ query: 'create temp table t (a int)' }, { query: 'copy t from stdin' }],
    });
    expect(copied.body.message).toContain('COPY FROM STDIN is not possible over HTTP');
    expect((await select('select 1 as a')).body.rows).toEqual([{ a: 1 }]);
  });
});

it('sessions are used again, and keep nothing of earlier callers', async () => {
  await start();
  const pids = new Set<number>();
  for (let turn = 0; turn < 10; turn++) {
    const { body } = await send({
      queries: [
        { query: `select pg_backend_pid() as pid, current_setting('my.mark', true) as mark` },
        { query: `select set_config('my.mark', 'left', false)` },
        { query: 'create temp table left_behind (a int)' },
      ],
    });
    const [row] = body.results[0].rows;
    expect(row.mark || null).toBeNull();
    pids.add(row.pid);
  }
  expect(pids.size).toBeLessThan(5);
});

it('so too after single statements, failed ones among them', async () => {
  await start();
  const pids = new Set<number>();
  for (let turn = 0; turn < 10; turn++) {
    const { body } = await select(
      `select pg_backend_pid() as pid, current_setting('my.mark', true) as mark, set_config('my.mark', 'left', false)`,
    );
    expect(body.rows[0].mark || null).toBeNull();
    pids.add(body.rows[0].pid);
    await select('create temp table left_behind (a int)');
    expect((await select('select * from left_behind')).body.code).toBe('42P01');
  }
  expect(pids.size).toBeLessThan(5);
});

describe('a batch', () => {
  it('is one transaction with the modes of its headers, which are echoed', async () => {
    await start();
    const { status, body, headers } = await send(
      {
        queries: [
          { query: `select current_setting('transaction_isolation') as level` },
          { query: `select current_setting('transaction_read_only') as ro, $1::int4 as p`, params: [7] },
          { query: `select current_setting('transaction_deferrable') as d`, arrayMode: true },
        ],
      },
      {
        'neon-batch-isolation-level': 'Serializable',
        'neon-batch-read-only': 'true',
        'neon-batch-deferrable': 'true',
      },
    );
    expect(status).toBe(200);
    expect(body.results.map((result: { rows: unknown }) => result.rows)).toEqual([
      [{ level: 'serializable' }],
      [{ ro: 'on', p: 7 }],
      [['on']],
    ]);
    expect(headers).toMatchObject({
      'neon-batch-isolation-level': 'Serializable',
      'neon-batch-read-only': 'true',
      'neon-batch-deferrable': 'true',
    });
  });

  it('changes nothing when a statement fails, nor when the commit does', async () => {
    await start();
    await direct`drop table if exists sql_http`;
    await direct`create table sql_http (a int primary key deferrable initially deferred)`;
    proxies.onCleanup(() => direct`drop table if exists sql_http`);
    const insert = { query: 'insert into sql_http values ($1)', params: [1] };
    const failed = await send({ queries: [insert, { query: 'select 1/0' }, insert] });
    expect(failed).toMatchObject({ status: 400, body: { code: '22012', queryIndex: 1 } });
    const late = await send({ queries: [insert, insert] });
    expect(late).toMatchObject({ status: 400, body: { code: '23505', constraint: 'sql_http_pkey' } });
    expect(await direct`select * from sql_http`).toHaveLength(0);
    expect((await send({ queries: [insert] })).body.results[0]).toMatchObject({ command: 'INSERT', rowCount: 1 });
    expect(await direct`select * from sql_http`).toHaveLength(1);
    expect((await send({ queries: [insert], extra: 1 }, { 'neon-batch-read-only': 'true' })).body.code).toBe('25006');
  });

  it('may be empty, may not end its transaction, and knows four levels', async () => {
    await start();
    expect((await send({ queries: [] })).body).toEqual({ results: [] });
    const ending = await send({ queries: [{ query: 'create table sql_ended ()' }, { query: 'commit' }] });
    expect(ending).toMatchObject({
      status: 400,
      body: { code: '0A000', message: expect.stringContaining('queries[1]') },
    });
    expect(await direct`select to_regclass('sql_ended') as made`).toEqual([{ made: null }]);
    const wrong = await send({ queries: [] }, { 'neon-batch-isolation-level': 'serializable' });
    expect(wrong).toMatchObject({ status: 400 });
    expect(wrong.body.message).toContain('invalid isolation level');
  });
});

describe('a batch that begins with BEGIN', () => {
  const script = (...queries: string[]) => ({ queries: queries.map((query) => ({ query })) });

  async function startWithTable(): Promise<void> {
    await start();
    await direct`create table sql_script (a int)`;
    proxies.onCleanup(() => direct`drop table sql_script`);
  }

  const rows = async () => (await direct`select a from sql_script order by a`).map(({ a }) => a);

  /** Every session is idle, or in no transaction. */
  async function expectNoTransaction(): Promise<void> {
    await eventually(async () => {
      const open = await direct`select query from pg_stat_activity where state like 'idle in%'`;
      expect(open).toEqual([]);
    });
  }

  it('ends its own transactions, and each statement has its result', async () => {
    await startWithTable();
    const { status, body } = await send(
      script(
        '-- first\nbegin',
        'insert into sql_script values (1)',
        'savepoint s',
        'insert into sql_script values (2)',
        'rollback to s',
        'commit',
        'start transaction',
        'insert into sql_script values (3)',
        'rollback',
        'insert into sql_script values (4) returning a',
      ),
    );
    expect(status).toBe(200);
    expect(body.results.map(({ command }: { command: string }) => command)).toEqual([
      'BEGIN',
      'INSERT',
      'SAVEPOINT',
      'INSERT',
      'ROLLBACK',
      'COMMIT',
      'START',
      'INSERT',
      'ROLLBACK',
      'INSERT',
    ]);
    expect(body.results.at(-1)).toMatchObject({ rows: [{ a: 4 }] });
    expect(await rows()).toEqual([1, 4]);
  });

  it('leaves no transaction open when a statement fails, and says which', async () => {
    await startWithTable();
    const reply = await send(
      script(
        'begin',
        'insert into sql_script values (1)',
        'commit',
        'begin',
        'insert into sql_script values (2)',
        'no',
      ),
    );
    expect(reply).toMatchObject({ status: 400, body: { code: '42601', queryIndex: 5 } });
    await expectNoTransaction();
    expect(await rows()).toEqual([1]);
  });

  it('fails if it does not end its last transaction, which is rolled back', async () => {
    await startWithTable();
    const reply = await send(script('begin', 'insert into sql_script values (1)'));
    expect(reply).toMatchObject({ status: 400, body: { code: '0A000' } });
    expect(reply.body.message).toContain('no COMMIT or ROLLBACK');
    await expectNoTransaction();
    expect(await rows()).toEqual([]);
  });

  it('obeys the headers of a batch, which the next caller does not inherit', async () => {
    await startWithTable();
    const write = script('begin', 'insert into sql_script values (1)', 'commit');
    const headers = { 'neon-batch-read-only': 'true', 'neon-batch-isolation-level': 'RepeatableRead' };
    expect((await send(write, headers)).body).toMatchObject({ code: '25006', queryIndex: 1 });
    const level = await send(script('begin', 'show transaction_isolation', 'commit'), headers);
    expect(level.body.results[1].rows).toEqual([{ transaction_isolation: 'repeatable read' }]);
    expect((await send(write)).status).toBe(200);
    expect(await rows()).toEqual([1]);
  });
});

describe('a request that is not right', () => {
  it('gets an error that names the missing part of the connection string', async () => {
    await start();
    const cases: [string, string][] = [
      ['', 'invalid header: neon-connection-string'],
      ['nonsense', 'invalid header: neon-connection-string'],
      [url().replace('postgresql:', 'mysql:'), 'incorrect scheme'],
      [url({ path: '' }), 'missing database name'],
      ['postgres://:pw@ep-a.local.localhost/db', 'missing username'],
      ['postgres://u@ep-a.local.localhost/db', 'missing authentication credentials: required password'],
      ['postgres://u:p%@ep-a.local.localhost/db', 'invalid header: neon-connection-string'],
      [url({ hostname: 'localhost' }), 'Endpoint ID is not specified'],
    ];
    for (const [text, message] of cases) {
      const { status, body } = await send({ query: 'select 1' }, { 'neon-connection-string': text });
      expect([text, status]).toEqual([text, 400]);
      expect(body.message).toContain(message);
    }
    expect(wakes).toEqual([]);
  });

  it('gets an error that names the wrong part of the body', async () => {
    await start();
    const cases: [unknown, string][] = [
      ['{', 'not valid JSON'],
      ['[]', '`query` or `queries`'],
      [{}, '`query` must be a string'],
      [{ query: 'a\0b' }, 'zero byte'],
      [{ query: 'select 1', params: {} }, '`params` must be an array'],
      [{ query: 'select 1', params: Array(65_536).fill(1) }, 'at most 65535'],
      [{ query: 'select 1', arrayMode: 'yes' }, '`arrayMode` must be true or false'],
      [{ queries: {} }, '`queries` must be an array'],
      [{ queries: [{ query: 1 }] }, '`queries[0].query` must be a string'],
    ];
    for (const [body, message] of cases) {
      const reply = await send(body);
      expect([message, reply.status]).toEqual([message, 400]);
      expect(reply.body.message).toContain(message);
    }
    expect(wakes).toEqual([]);
  });

  it('finds its endpoint in the address of the request, unless the string names another', async () => {
    await start();
    const nowhere = { 'neon-connection-string': url({ hostname: 'localhost' }) };
    const ask = (endpoint: string, headers: Record<string, string> = nowhere) =>
      send({ query: 'select 1 as a' }, headers, 'POST', `/sql?endpoint=${endpoint}`);
    expect((await ask('ep-a')).body.rows).toEqual([{ a: 1 }]);
    expect((await ask('ep-a-pooler', {})).body.rows).toEqual([{ a: 1 }]);
    expect(await ask('ep-b', {})).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('different') },
    });
    expect(await ask('ep%20a')).toMatchObject({ status: 400, body: { message: expect.stringContaining('hyphen') } });
    expect((await ask('ep-none')).body.code).toBe('28P01');
  });

  it('finds its endpoint by the password where none is named, if there is but one', async () => {
    const asked: string[][] = [];
    let found = ['ep-a'];
    await start({
      findByPassword: async (role, password) => {
        asked.push([role, password]);
        return found;
      },
    });
    const unnamed = { 'neon-connection-string': url({ hostname: 'localhost' }) };
    expect((await select('select 1 as a', [], unnamed)).body.rows).toEqual([{ a: 1 }]);
    expect(asked).toEqual([['catnap', system.password]]);
    found = ['ep-a', 'ep-b'];
    const several = await send({ query: 'select 1' }, unnamed);
    expect([several.status, several.body.message]).toEqual([400, expect.stringContaining('Several branches')]);
    found = [];
    const none = await send({ query: 'select 1' }, unnamed);
    expect([none.status, none.body.message]).toEqual([400, expect.stringContaining('?endpoint=<endpoint-id>')]);
    expect(wakes).toEqual(['ep-a']);
  });

  it('counts passwords that stand for no endpoint as failed attempts', async () => {
    await start({ findByPassword: async () => [] }, { failuresPerMinute: 2 });
    const unnamed = { 'neon-connection-string': url({ hostname: 'localhost' }) };
    await send({ query: 'select 1' }, unnamed);
    await send({ query: 'select 1' }, unnamed);
    expect((await send({ query: 'select 1' }, unnamed)).body.message).toContain('Too many');
  });

  it('finds its endpoint by options too, and by the password form', async () => {
    await start();
    const byOptions = `${url({ hostname: 'localhost' })}?options=endpoint%3Dep-a`;
    expect((await select('select 1 as a', [], { 'neon-connection-string': byOptions })).body.rows).toEqual([{ a: 1 }]);
    const byPassword = url({ hostname: 'localhost', password: `endpoint=ep-a;${system.password}` });
    expect((await select('select 1 as a', [], { 'neon-connection-string': byPassword })).body.rows).toEqual([{ a: 1 }]);
  });
});

describe('unauthenticated callers', () => {
  it('get one answer, whatever is wrong, and wake nothing', async () => {
    await start();
    const tries = [{ password: 'wrong' }, { user: 'nobody' }, { hostname: 'ep-none.local.localhost' }];
    const answers = [];
    for (const changes of tries) {
      answers.push(await send({ query: 'select 1' }, { 'neon-connection-string': url(changes) }));
    }
    for (const { status, body } of answers) {
      expect(status).toBe(400);
      const text = JSON.stringify(body).replace(/user '\w+'/, "user 'x'");
      expect(text).toBe(JSON.stringify(answers[0]?.body).replace(/user '\w+'/, "user 'x'"));
      expect(body.code).toBe('28P01');
    }
    expect(wakes).toEqual([]);
  });

  it('are limited in their failures, by the address that the API names', async () => {
    await start({}, { failuresPerMinute: 2 });
    const guess = (address: string, password = 'wrong') =>
      send(
        { query: 'select 1 as a' },
        { 'neon-connection-string': url({ password }), 'x-catnap-client-address': address },
      );
    for (const status of [400, 400, 429]) expect((await guess('192.0.2.1')).status).toBe(status);
    expect((await guess('192.0.2.1', system.password)).status).toBe(429);
    expect((await guess('192.0.2.2', system.password)).status).toBe(200);
  });

  it('are refused by a project that allows other addresses only', async () => {
    const facts = { verifier: proxies.verifier, disabled: false, allowedIps: ['192.0.2.0/24'] };
    await start({ findLogin: async () => facts });
    const from = (address: string) => send({ query: 'select 1 as a' }, { 'x-catnap-client-address': address });
    expect((await from('::ffff:192.0.2.7')).status).toBe(200);
    const refused = await from('198.51.100.1');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain('This IP address 198.51.100.1 is not allowed');
    expect(wakes).toHaveLength(1);
  });

  it('are refused by a project that blocks public connections', async () => {
    const facts = { verifier: proxies.verifier, disabled: false, allowedIps: [], publicBlocked: true };
    await start({ findLogin: async () => facts });
    const from = (address: string) => send({ query: 'select 1 as a' }, { 'x-catnap-client-address': address });
    expect((await from('::ffff:100.64.0.7')).status).toBe(200);
    const refused = await from('198.51.100.1');
    expect(refused).toMatchObject({ status: 400, body: { code: '42501' } });
    expect(refused.body.message).toContain('blocks public connections');
    expect(wakes).toHaveLength(1);
  });
});

it('requests in a row log in once, until the login has changed', async () => {
  let lookups = 0;
  let reset: (endpointId: string | null) => void = () => {};
  let verifier: string | null = proxies.verifier;
  await start({
    findLogin: async () => {
      lookups += 1;
      return { verifier, disabled: false, allowedIps: [] };
    },
    onReset: (listener) => {
      reset = listener;
    },
  });
  for (let i = 0; i < 3; i += 1) expect((await select('select 1 as a')).status).toBe(200);
  expect(lookups).toBe(1);
  verifier = null;
  reset('ep-a');
  expect((await select('select 1 as a')).body.code).toBe('28P01');
});

describe('limits', () => {
  it('of request and reply are kept, and the next request is served', async () => {
    await start({}, { httpRequestBytes: 10_000, httpResponseBytes: 10_000 });
    const long = await select('select $1::text', ['x'.repeat(20_000)]);
    expect(long).toMatchObject({ status: 413, body: { message: 'request is too large (max is 10000 bytes)' } });
    const many = await select('select i from generate_series(1, 5000) i');
    expect(many).toMatchObject({ status: 507, body: { message: 'response is too large (max is 10000 bytes)' } });
    const wide = await select(`select repeat('x', 100000)`);
    expect(wide.status).toBe(507);
    expect((await select('select 1 as a')).body.rows).toEqual([{ a: 1 }]);
  });

  it('of what is held for all requests of an endpoint are kept, and given back', async () => {
    await start({}, { httpHeldBytesPerEndpoint: 30_000 });
    const refused = { status: 429, body: { message: 'too much is being sent over HTTP at once; try again' } };
    expect(await select('select length($1::text)', ['x'.repeat(40_000)])).toMatchObject(refused);
    expect(await select('select i from generate_series(1, 5000) i')).toMatchObject(refused);
    for (let i = 0; i < 5; i += 1) {
      expect((await select('select length($1::text)', ['x'.repeat(20_000)])).status).toBe(200);
    }
  });

  it('of time end a reply that is not read', async () => {
    await start({}, { httpFetchMs: 100, httpHeldBytesPerEndpoint: 6_000_000 });
    const request = openRequest({ socketPath: socketPath(), path: '/sql', method: 'POST' });
    request.setHeader('neon-connection-string', url());
    proxies.onCleanup(() => request.destroy());
    const begun = new Promise<void>((resolve) => {
      request.on('response', (response) => {
        response.pause();
        resolve();
      });
    });
    request.end(JSON.stringify({ query: `select repeat('x', 5000000)` }));
    await begun;
    // There is no room for two of them.
    await eventually(async () => expect((await select(`select repeat('x', 5000000)`)).status).toBe(200));
  });

  it('of time for one reply do not hold for the next on the same connection', async () => {
    await start({}, { httpFetchMs: 3_000 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    proxies.onCleanup(() => agent.destroy());
    const ask = (query: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'neon-connection-string': url() };
        const request = openRequest({ socketPath: socketPath(), path: '/sql', method: 'POST', agent, headers });
        request.on('error', reject);
        request.on('response', (response) => response.resume().once('end', () => resolve(response.statusCode)));
        request.end(JSON.stringify({ query }));
      });
    expect(await ask(`select repeat('x', 5000000)`)).toBe(200);
    expect(await ask('select pg_sleep(4)')).toBe(200);
  });

  it('of sessions count here too', async () => {
    await start({}, { pooledPerEndpoint: 0 });
    expect((await select('select 1')).status).toBe(429);
  });
});

it('a page of any origin may send a preflight request', async () => {
  await start();
  const { status, headers } = await send('', {}, 'OPTIONS');
  expect(status).toBe(200);
  expect(headers).toMatchObject({ allow: 'OPTIONS, POST', 'access-control-max-age': '86400' });
  expect(headers['access-control-allow-headers']).toContain('Neon-Connection-String');
});

it('the query of a caller that leaves is cancelled', async () => {
  await start();
  const mark = `left-${Date.now()}`;
  const running = () =>
    direct`select 1 from pg_stat_activity where query like ${`select '${mark}'%`} and state = 'active'`;
  const request = openRequest({
    socketPath: socketPath(),
    path: '/sql',
    method: 'POST',
    headers: { 'neon-connection-string': url() },
  });
  request.on('error', () => {});
  request.end(JSON.stringify({ query: `select '${mark}', pg_sleep(60)` }));
  await eventually(async () => expect(await running()).toHaveLength(1));
  request.destroy();
  await eventually(async () => expect(await running()).toHaveLength(0));
});
