/** Two proxies of one port: cancel requests that arrive at one and are meant for the other. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies, type RawClient, type StartedProxy } from '../../../test/helpers/proxy.ts';
import { cstring, encodeMessage } from '../protocol/wire.ts';

const proxies = new PostgresProxies();
beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());
afterEach(() => proxies.cleanUp());

async function startTwo(): Promise<[StartedProxy, StartedProxy]> {
  const directory = await mkdtemp(join(tmpdir(), 'catnap-two-'));
  proxies.onCleanup(() => rm(directory, { recursive: true, force: true }));
  const sockets = [join(directory, '0'), join(directory, '1')];
  const start = (number: number) => proxies.start({}, { siblings: { number, sockets } });
  const both: [StartedProxy, StartedProxy] = [await start(0), await start(1)];
  for (const path of sockets) expect((await stat(path)).mode & 0o777).toBe(0o600);
  return both;
}

async function sleepOn(client: RawClient, name: string): Promise<void> {
  client.messages.write(encodeMessage('Q', cstring('select pg_sleep(60)')));
  await eventually(async () => {
    const rows = await proxies.direct`select 1 from pg_stat_activity where application_name = ${name}
      and wait_event = 'PgSleep'`;
    expect(rows).toHaveLength(1);
  });
}

async function answerOf(client: RawClient): Promise<string> {
  for (let types = ''; ; ) {
    types += (await client.messages.readMessage()).type;
    if (types.endsWith('Z')) return types;
  }
}

it.each([
  ['pooled', 'ep-a-pooler'],
  ['direct', 'ep-a'],
])('a cancel request at the other proxy cancels the query of its own client only: %s', async (_, endpoint) => {
  const [first, second] = await startTwo();
  const one = await proxies.raw(first, { application_name: 'sibling-one' }, endpoint);
  const other = await proxies.raw(second, { application_name: 'sibling-other' }, endpoint);
  expect([one.key.secret & 1, other.key.secret & 1]).toEqual([0, 1]);
  await sleepOn(one, 'sibling-one');
  await sleepOn(other, 'sibling-other');
  // None of these keys was issued: a wrong secret, the number of the other proxy, and a process that nobody has.
  for (const proxy of [first, second]) {
    await proxies.cancel(proxy, { ...one.key, secret: one.key.secret ^ 2 });
    await proxies.cancel(proxy, { ...one.key, secret: one.key.secret ^ 1 });
    await proxies.cancel(proxy, { ...one.key, processId: one.key.processId ^ 1 });
    await proxies.cancel(proxy, { processId: -1, secret: 0 });
  }
  await proxies.cancel(second, one.key);
  expect(await answerOf(one)).toContain('E');
  const rows = await proxies.direct`select wait_event from pg_stat_activity where application_name = 'sibling-other'`;
  expect(rows).toEqual([expect.objectContaining({ wait_event: 'PgSleep' })]);
  await proxies.cancel(first, other.key);
  expect(await answerOf(other)).toContain('E');
});

it('a cancel request for a proxy that is gone is closed like any other, and cancels nothing', async () => {
  const [first, second] = await startTwo();
  const { key } = await proxies.raw(second);
  const other = await proxies.raw(first, { application_name: 'sibling-left' });
  await sleepOn(other, 'sibling-left');
  await second.close();
  const askedAt = performance.now();
  await proxies.cancel(first, key);
  // At once, and not when the time for dialling a sibling is over.
  expect(performance.now() - askedAt).toBeLessThan(5_000);
  const rows = await proxies.direct`select wait_event from pg_stat_activity where application_name = 'sibling-left'`;
  expect(rows).toEqual([expect.objectContaining({ wait_event: 'PgSleep' })]);
  await proxies.cancel(first, other.key);
  expect(await answerOf(other)).toContain('E');
});
