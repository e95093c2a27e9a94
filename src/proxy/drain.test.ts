/** A proxy that stops: what has begun is finished, and everybody is told. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../test/helpers/proxy.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

/** The time in which transactions may end is longer than any test takes, so that nothing ends by patience. */
const patient = { limits: { drainMs: 120_000, firstRequestMs: 0 } };
const kinds = [
  ['pooled', 'endpoint=ep-a-pooler'],
  ['direct', 'endpoint=ep-a'],
] as const;
/** Among advisory locks, of this file alone. */
const lockKey = 47_110_815;
type Client = Awaited<ReturnType<typeof proxies.client>>;

const endOf = (client: Client) =>
  new Promise<string | undefined>((resolve) =>
    client.once('error', (error) => resolve('code' in error ? String(error.code) : undefined)),
  );

describe.each(kinds)('a %s client', (_, options) => {
  it('finishes its transaction, and is then told', async () => {
    const proxy = await proxies.start({}, patient);
    const client = await proxies.client(proxy, { options });
    await client.query('begin');
    const ended = endOf(client);
    let isClosed = false;
    const closing = proxy.close().then(() => {
      isClosed = true;
    });
    const { rows } = await client.query('select 1 as one');
    expect([rows, isClosed]).toEqual([[{ one: 1 }], false]);
    await client.query('commit');
    expect(await ended).toBe('57P01');
    await closing;
  });

  it('gets the answer to a request under way', async () => {
    const proxy = await proxies.start({}, patient);
    const client = await proxies.client(proxy, { options });
    const ended = endOf(client);
    const holder = await proxies.direct.reserve();
    await holder`select pg_advisory_lock(${lockKey})`;
    const answer = client.query(`select 'answer' as given from pg_advisory_xact_lock(${lockKey})`);
    await eventually(async () => {
      const [row] = await holder`select count(*)::int from pg_locks where objid = ${lockKey} and not granted`;
      expect(row?.count).toBe(1);
    });
    const closing = proxy.close();
    await holder`select pg_advisory_unlock(${lockKey})`;
    holder.release();
    expect((await answer).rows).toEqual([{ given: 'answer' }]);
    expect(await ended).toBe('57P01');
    await closing;
  });

  it('is told at once when it is idle', async () => {
    const proxy = await proxies.start({}, patient);
    const client = await proxies.client(proxy, { options });
    const ended = endOf(client);
    await proxy.close();
    expect(await ended).toBe('57P01');
  });

  it('that has just logged in may send its first request', async () => {
    const proxy = await proxies.start({}, { limits: { drainMs: 120_000, firstRequestMs: 60_000 } });
    const client = await proxies.client(proxy, { options });
    const closing = proxy.close();
    expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
    client.end().catch(() => {});
    await closing;
  });

  it('does not keep the proxy for longer than is allowed', async () => {
    const proxy = await proxies.start({}, { limits: { drainMs: 50, firstRequestMs: 0, closeMs: 100 } });
    const client = await proxies.client(proxy, { options });
    await client.query('begin');
    const ended = endOf(client);
    await proxy.close();
    expect(await ended).toBe('57P01');
  });
});

it('nobody gets in any more', async () => {
  const proxy = await proxies.start({}, patient);
  const client = await proxies.client(proxy);
  await client.query('begin');
  const closing = proxy.close();
  // On Bun the proxy is a process of its own, which hears of it a moment later.
  await eventually(() => expect(proxies.client(proxy)).rejects.toThrow(/ECONNREFUSED/));
  await client.query('commit').catch(() => {});
  await closing;
});
