/** The ways through the proxy on each runtime that it has; `CATNAP_TEST_PROXY_RUNTIME` runs all other tests on one. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { PostgresProxies, readError } from '../../test/helpers/proxy.ts';
import { chooseProxyRuntime } from '../machine/proxy-runtime.ts';
import { cstring, encodeMessage } from './protocol/wire.ts';

const hasBun = await chooseProxyRuntime('bun').then(
  () => true,
  () => false,
);

const ways = [
  { way: 'direct', options: 'endpoint=ep-a', ssl: false },
  { way: 'direct, TLS', options: 'endpoint=ep-a', ssl: { rejectUnauthorized: false } },
  { way: 'pooled', options: 'endpoint=ep-a-pooler', ssl: false },
  { way: 'pooled, TLS', options: 'endpoint=ep-a-pooler', ssl: { rejectUnauthorized: false } },
];

describe.skipIf(!hasBun)('on Bun', () => testEachWay('bun'));
describe('on Node', () => testEachWay('node'));

function testEachWay(runtime: 'node' | 'bun'): void {
  const proxies = new PostgresProxies(runtime);
  beforeAll(() => proxies.prepare());
  afterEach(() => proxies.cleanUp());
  afterAll(() => proxies.dispose());

  test.each(ways)('a client gets short and long results: $way', async ({ options, ssl }) => {
    const client = await proxies.client(await proxies.start(), { options, ssl });
    expect((await client.query('select $1::int + 1 as sum', [41])).rows).toEqual([{ sum: 42 }]);
    const { rows } = await client.query("select repeat('x', 1000) as text from generate_series(1, 5000)");
    expect(rows.reduce((bytes, { text }) => bytes + text.length, 0)).toBe(5_000_000);
    await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' });
    expect((await client.query({ name: 'named', text: 'select $1::text as text', values: ['ü'] })).rows).toEqual([
      { text: 'ü' },
    ]);
  });

  test.each(['ep-a', 'ep-a-pooler'])('a cancel request reaches its query: %s', async (endpoint) => {
    const proxy = await proxies.start();
    const { messages, key } = await proxies.raw(proxy, {}, endpoint);
    const sleeper = `select pg_sleep(600) -- ${runtime} ${endpoint}`;
    messages.write(encodeMessage('Q', cstring(sleeper)));
    await eventually(async () => {
      const found = await proxies.direct`select from pg_stat_activity where query = ${sleeper} and state = 'active'`;
      expect(found).toHaveLength(1);
    });
    await proxies.cancel(proxy, key);
    expect(await readError(messages)).toMatchObject({ sqlState: '57014' });
  });

  test('clients that are connected when the proxy closes are told', async () => {
    const proxy = await proxies.start();
    const { messages } = await proxies.raw(proxy, {}, 'ep-a');
    const closing = proxy.close();
    expect(await readError(messages)).toMatchObject({ sqlState: '57P01' });
    await closing;
  });
}
