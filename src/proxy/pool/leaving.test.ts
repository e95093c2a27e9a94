/** Pooled clients that send Terminate in every state: no backend, transaction or lock may stay behind. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import {
  bind,
  copyData,
  execute,
  flush,
  parse,
  query,
  sync,
  terminate,
} from '../../../test/helpers/postgres-messages.ts';
import { closed, PostgresProxies, type RawClient } from '../../../test/helpers/proxy.ts';

const proxies = new PostgresProxies();
const { direct } = proxies;
const copySql = 'copy left_behind from stdin';
const insertSql = 'insert into left_behind values (1)';
const extended = (sql: string) => Buffer.concat([parse('', sql), bind(''), execute()]);

beforeAll(async () => {
  await proxies.prepare();
  await direct`create table left_behind (a text)`;
});
afterAll(async () => {
  await direct`drop table if exists left_behind`;
  await proxies.dispose();
});
beforeEach(async () => void (await direct`truncate left_behind`));
afterEach(() => proxies.cleanUp());

const start = async (): Promise<RawClient> => proxies.raw(await proxies.start(), { application_name: 'leaver' });

async function readUntil(client: RawClient, type: string): Promise<void> {
  while ((await client.messages.readMessage()).type !== type);
}

/** No backend of the client is in the middle of something, and a lock on the table is free at once. */
async function expectNothingLeft(): Promise<void> {
  await eventually(async () => {
    const busy = await direct`select state from pg_stat_activity where application_name = 'leaver' and state <> 'idle'`;
    expect(busy).toEqual([]);
  });
  await direct.begin(async (sql) => {
    await sql`set local lock_timeout = '500ms'`;
    await sql`lock table left_behind in access exclusive mode`;
  });
}

const copies: readonly (readonly [string, Buffer])[] = [
  ['a simple COPY', query(copySql)],
  ['an extended COPY', Buffer.concat([extended(copySql), sync])],
  ['an extended COPY without a Sync', Buffer.concat([extended(copySql), flush])],
];
for (const inTransaction of [false, true]) {
  for (const data of [null, copyData(10), copyData(200_000)]) {
    const where = `${inTransaction ? ' in a transaction' : ''}, after ${data?.length ?? 0} bytes of rows`;
    it.each(copies)(`in %s${where}`, async (_, request) => {
      const client = await start();
      if (inTransaction) {
        client.messages.write(query('begin'));
        await readUntil(client, 'Z');
      }
      client.messages.write(request);
      await readUntil(client, 'G');
      if (data !== null) client.messages.write(data);
      client.messages.write(terminate);
      await closed(client.messages.stream);
      await expectNothingLeft();
      expect(await direct`select 1 from left_behind`).toHaveLength(0);
    });
  }
}

it.each(copies)('in %s that has not begun', async (_, request) => {
  const client = await start();
  client.messages.write(Buffer.concat([request, terminate]));
  await closed(client.messages.stream);
  await expectNothingLeft();
  expect(await direct`select 1 from left_behind`).toHaveLength(0);
});

it.each([
  ['after a query, which is carried out', [query(insertSql)], 1],
  ['after a batch, which is carried out', [extended(insertSql), sync], 1],
  ['after a batch without a Sync, which is rolled back', [extended(insertSql)], 0],
  ['after a batch and another one without a Sync', [extended(insertSql), sync, extended(insertSql)], 1],
  ['after a Parse alone', [parse('', insertSql)], 0],
  ['after a batch that commits without a Sync', ['begin', insertSql, 'commit'].map(extended), 1],
  ['after an error that has no Sync yet', [extended('select 1/0'), flush], 0],
  ['in a transaction', [query('begin'), query(insertSql)], 0],
  ['in a failed transaction', [query('begin'), query(insertSql), query('select 1/0')], 0],
] as const)('%s', async (_, requests, rows) => {
  const client = await start();
  client.messages.write(Buffer.concat([...requests, terminate]));
  await closed(client.messages.stream);
  await expectNothingLeft();
  expect(await direct`select 1 from left_behind`).toHaveLength(rows);
});

it('in a batch without a Sync whose statement runs for long: the statement is cancelled', async () => {
  const client = await start();
  client.messages.write(Buffer.concat([extended('select pg_sleep(60), count(*) from left_behind'), terminate]));
  await eventually(async () => {
    const asleep = await direct`select 1 from pg_stat_activity where application_name = 'leaver'
      and wait_event = 'PgSleep'`;
    expect(asleep).toHaveLength(1);
  });
  await expectNothingLeft();
});
