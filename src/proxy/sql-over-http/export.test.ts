/** Files with the rows of a statement, and the details of a result, between an HTTP client and a real Postgres. */
import { type IncomingMessage, request as openRequest } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../../test/helpers/proxy.ts';
import type { ProxyLimits } from '../kit/limits.ts';

const proxies = new PostgresProxies();
const { system, direct } = proxies;

beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

const socketPath = () => join(proxies.directory, 'sql');
const start = (limits: Partial<ProxyLimits> = {}) =>
  proxies.start({}, { siblings: { number: 0, sockets: [socketPath()] }, limits });

function ask(path: string, body: object, password = system.password): Promise<IncomingMessage> {
  const uri = `postgresql://${system.username}:${encodeURIComponent(password)}@ep-a.local.localhost/${system.database}`;
  return new Promise((resolve, reject) => {
    const headers = { 'neon-connection-string': uri };
    const request = openRequest({ socketPath: socketPath(), path, method: 'POST', headers });
    request.once('error', reject);
    request.once('response', resolve);
    request.end(JSON.stringify(body));
  });
}

async function exported(format: string, query: string, params: unknown[] = []) {
  const response = await ask(`/sql/export?format=${format}`, { query, params });
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe('an export', () => {
  const rows = `select n as id, nullif('say "' || n || '", ok', 'say "2", ok') as note, '' as empty, n = 1 as "is",
    array[n, null] as list, 1.50::numeric(5, 2) as id from generate_series(1, $1::int) n`;

  it('is CSV with a head, in which NULL is nothing and an empty text is quoted', async () => {
    await start();
    const { status, headers, body } = await exported('csv', rows, [2]);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(headers['content-disposition']).toBe('attachment; filename="rows.csv"');
    expect(body).toBe(
      'id,note,empty,is,list,id\r\n1,"say ""1"", ok","",t,"{1,NULL}",1.50\r\n2,,"",f,"{2,NULL}",1.50\r\n',
    );
  });

  it('is JSON with types, and with each name once', async () => {
    await start();
    const { headers, body } = await exported('json', rows, [2]);
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).toEqual([
      { id: 1, note: 'say "1", ok', empty: '', is: true, list: [1, null], id_2: '1.50' },
      { id: 2, note: null, empty: '', is: false, list: [2, null], id_2: '1.50' },
    ]);
    expect(JSON.parse((await exported('json', rows, [0])).body)).toEqual([]);
  });

  it('is lines of JSON for programs: the fields, and then each row as Postgres writes it', async () => {
    await start();
    const { headers, body } = await exported('lines', rows, [2]);
    expect(headers['content-type']).toBe('application/x-ndjson');
    expect(headers['content-disposition']).toBe('attachment; filename="rows.jsonl"');
    const [fields, ...lines] = body.split('\n');
    const described = JSON.parse(await text(await ask('/sql', { query: rows, params: [2] })));
    expect(JSON.parse(fields ?? '')).toEqual(described.fields);
    expect(lines).toEqual([
      '["1","say \\"1\\", ok","","t","{1,NULL}","1.50"]',
      '["2",null,"","f","{2,NULL}","1.50"]',
      '',
    ]);
  });

  it('ends with the number of rows that its caller wants', async () => {
    await start();
    const query = 'select n from generate_series(1, 1000000) n';
    const response = await ask('/sql/export?format=lines', { query, maxRows: 3 });
    expect((await text(response)).split('\n').slice(1)).toEqual(['["1"]', '["2"]', '["3"]', '']);
  });

  it('may be longer than any other reply', async () => {
    await start({ httpResponseBytes: 10_000 });
    const { status, body } = await exported('csv', "select repeat('x', 99) from generate_series(1, 20000)");
    expect([status, body.length]).toEqual([200, 'repeat\r\n'.length + 20_000 * 101]);
  });

  it('holds no more rows than its caller reads, and ends its query when the caller leaves', async () => {
    await start();
    const query = "select n, repeat('x', 10000) from generate_series(1, 1000000) n /* endless */";
    const response = await ask('/sql/export', { query });
    const isRunning = () =>
      direct`select 1 from pg_stat_activity where query = ${query} and wait_event = 'ClientWrite'`;
    // It waits for us, with almost all of its rows still unsent.
    await eventually(async () => expect(await isRunning()).toHaveLength(1));
    expect(response.readableLength).toBeLessThan(2_000_000);
    response.destroy();
    const left = () => direct`select 1 from pg_stat_activity where query = ${query} and state = 'active'`;
    await eventually(async () => expect(await left()).toEqual([]));
  });

  it('changes nothing, and leaves nothing behind', async () => {
    await start();
    await direct`create table exported (id int)`;
    const refused = await exported('csv', 'insert into exported values (1) returning id');
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([400, { code: '25006' }]);
    expect(await direct`select id from exported`).toEqual([]);
    // The session is free again and outside of a transaction.
    expect((await exported('csv', "select current_setting('transaction_read_only') as x")).body).toBe('x\r\non\r\n');
    const plain = await ask('/sql', { query: 'insert into exported values (2) returning id' });
    expect(JSON.parse(await text(plain))).toMatchObject({ rows: [{ id: 2 }] });
    await direct`drop table exported`;
  });

  it.each([
    ['a wrong statement', '/sql/export', { query: 'select nonsense' }, 'column "nonsense" does not exist'],
    ['no rows', '/sql/export', { query: 'set work_mem = 64' }, 'the statement returns no rows'],
    ['COPY', '/sql/export', { query: 'copy (select 1) to stdout' }, 'COPY TO STDOUT is not possible over HTTP'],
    ['another format', '/sql/export?format=xml', { query: 'select 1' }, 'invalid format; allowed: csv, json, lines'],
    ['a batch', '/sql/export', { queries: [] }, 'only a single `query` can be exported, not `queries`'],
  ])('is refused in words for %s', async (_, path, body, message) => {
    await start();
    const response = await ask(path, body);
    expect([response.statusCode, JSON.parse(await text(response)).message]).toEqual([400, message]);
  });

  it('needs the password like everything else', async () => {
    await start();
    const response = await ask('/sql/export', { query: 'select 1' }, 'wrong');
    expect(response.statusCode).toBe(400);
    expect(await text(response)).toContain('28P01');
  });

  it('that fails in the middle is cut off, and not taken for whole', async () => {
    await start();
    const query =
      "select case when n < 99999 then repeat('x', 99) else (1 / (n - n))::text end from generate_series(1, 99999) n";
    const response = await ask('/sql/export', { query });
    expect(response.statusCode).toBe(200);
    await expect(text(response)).rejects.toThrow('aborted');
  });
});

describe('a statement with details', () => {
  const run = async (body: object) => {
    const response = await ask('/sql', body);
    return JSON.parse(await text(response));
  };

  it('stops after as many rows as were asked for, and says that there are more', async () => {
    await start();
    const query = 'select n from generate_series(1, 10) n';
    const cut = await run({ query, maxRows: 3, details: true });
    expect([cut.rows, cut.hasMore, cut.rowCount]).toEqual([[{ n: 1 }, { n: 2 }, { n: 3 }], true, null]);
    expect(await run({ query, maxRows: 10, details: true })).toMatchObject({ hasMore: true });
    expect(await run({ query, maxRows: 11, details: true })).toMatchObject({ hasMore: false, tag: 'SELECT 10' });
    expect(await run({ query })).not.toHaveProperty('hasMore');
  });

  it('carries out a write as a whole, however few rows are asked for', async () => {
    await start();
    await direct`create table written (id int)`;
    const query = 'insert into written select generate_series(1, 10) returning id';
    expect(await run({ query, maxRows: 2, details: true })).toMatchObject({
      rows: [{ id: 1 }, { id: 2 }],
      hasMore: true,
    });
    expect(await direct`select count(*)::int as n from written`).toEqual([{ n: 10 }]);
    await direct`drop table written`;
  });

  it('comes with its notices and the whole command tag, in a batch too', async () => {
    await start();
    const notice = { query: "do $$ begin raise warning 'careful' using hint = 'look'; end $$", details: true };
    const said = { severity: 'WARNING', code: '01000', message: 'careful', detail: null, hint: 'look' };
    expect(await run(notice)).toMatchObject({ tag: 'DO', notices: [said] });
    const { results } = await run({ queries: [notice, { query: 'create temp table t (a int)', details: true }] });
    expect(results).toMatchObject([{ notices: [said] }, { tag: 'CREATE TABLE', notices: [] }]);
  });

  it.each([
    ['maxRows', -1, '`maxRows` must be a whole number from 0 to 2147483647'],
    ['maxRows', 1.5, '`maxRows` must be a whole number from 0 to 2147483647'],
    ['details', 'yes', '`details` must be true or false'],
  ])('refuses %s of %s', async (name, value, message) => {
    await start();
    expect(await run({ query: 'select 1', [name]: value })).toMatchObject({ message });
  });
});
