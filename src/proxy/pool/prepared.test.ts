/** Prepared statements of pooled clients whose tables change, and that SQL deallocates. */
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bind, closeStatement, execute, flush, parse, query, sync } from '../../../test/helpers/postgres-messages.ts';
import { PostgresProxies, type RawClient, type StartedProxy } from '../../../test/helpers/proxy.ts';
import { parseErrorResponse } from '../protocol/messages.ts';

const proxies = new PostgresProxies();
const { direct } = proxies;

beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());
afterEach(() => proxies.cleanUp());

/** With one server connection, or several. */
const startWith = (sessions: number) => proxies.start({ wake: async () => ({ ...proxies.compute, sessions }) });

async function makeTable(definition: string): Promise<void> {
  await direct.unsafe(`create table pool_changed (${definition})`);
  proxies.onCleanup(() => direct`drop table pool_changed`);
}

describe('a text that servers have prepared is prepared anew for a new client', () => {
  it.each([
    ['whose parameter has another type', 'insert into pool_changed (name) values ($1)'],
    ['whose operator has another type', 'select name from pool_changed where name = $1'],
    ['whose columns have other types', 'select * from pool_changed where $1::text is not null'],
  ])('%s', async (_, text) => {
    const proxy = await startWith(2);
    await makeTable('name text');
    const before = await proxies.client(proxy);
    await before.query({ name: 'old', text, values: ['1'] });
    await direct`alter table pool_changed alter column name type int using name::int`;
    for (const name of ['old', 'new', 'newest']) {
      const client = await proxies.client(proxy);
      await client.query({ name, text, values: ['2'] });
      await client.query('begin');
      await client.query({ name: `${name} again`, text, values: ['3'] });
      await client.query('commit');
    }
    // The client that prepared it before the change can do the same.
    const again = await before.query({ name: 'prepared again', text, values: ['4'] });
    expect(['INSERT', 'SELECT']).toContain(again.command);
  });

  it('and on every server that the new client uses later', async () => {
    const proxy = await startWith(10);
    await makeTable('name text');
    const text = 'insert into pool_changed (name) values ($1)';
    const [one, other] = [await proxies.client(proxy), await proxies.client(proxy)];
    await Promise.all(
      [one, other].map(async (client) => {
        await client.query('begin');
        await client.query({ name: 's', text, values: ['1'] });
        await client.query('select pg_sleep(0.1)');
        await client.query('commit');
      }),
    );
    await direct`alter table pool_changed alter column name type int using name::int`;
    const client = await proxies.client(proxy);
    await client.query({ name: 's', text, values: ['2'] });
    const first = await client.query('select pg_backend_pid() as pid');
    // Another client takes that server, so the next transaction gets the other one.
    await one.query('begin');
    expect((await one.query('select pg_backend_pid() as pid')).rows).toEqual(first.rows);
    await client.query({ name: 's', text, values: ['3'] });
    expect((await client.query('select pg_backend_pid() as pid')).rows).not.toEqual(first.rows);
    await one.query('rollback');
    expect(await direct`select name from pool_changed order by 1`).toMatchObject(
      [1, 1, 2, 3].map((name) => ({ name })),
    );
  });

  it('so that a driver that prepares again after an error succeeds', async () => {
    const proxy = await startWith(2);
    await makeTable('name text');
    const sql = postgres(proxies.uri(proxy), { max: 1, onnotice: () => {} });
    proxies.onCleanup(() => sql.end({ timeout: 1 }));
    await sql`select * from pool_changed`;
    await direct`alter table pool_changed add column more int`;
    // As on a plain server, postgres.js sees 0A000 and prepares the text again by itself.
    expect((await sql`select * from pool_changed`).columns.map(({ name }) => name)).toEqual(['name', 'more']);
  });
});

/** What the client gets up to the next ReadyForQuery: errors by SQLSTATE, commands by tag. */
async function ask(client: RawClient, ...requests: Buffer[]): Promise<string[]> {
  client.messages.write(Buffer.concat(requests));
  const got: string[] = [];
  for (;;) {
    const { type, body } = await client.messages.readMessage();
    if (type === 'E') got.push(parseErrorResponse(body).sqlState);
    else if (type === 'C') got.push(body.toString('latin1', 0, body.length - 1));
    else if (type === 'Z') return [...got, `ready ${body.toString()}`];
    else got.push(type);
  }
}

const use = (name: string) => [bind(name), execute(), sync];
const bindAndExecute = async (client: RawClient, name: string) => ask(client, ...use(name));

describe('SQL that deallocates what the protocol has prepared', () => {
  let proxy: StartedProxy;

  async function startPrepared(): Promise<RawClient> {
    proxy = await startWith(2);
    const client = await proxies.raw(proxy);
    expect(await ask(client, parse('plan', 'select 1'), parse('Odd "name"', 'select 2'), sync)).toEqual([
      '1',
      '1',
      'ready I',
    ]);
    return client;
  }

  it.each([
    ['simple', (sql: string) => [query(sql)], []],
    ['extended', (sql: string) => [parse('', sql), ...use('')], ['1', '2']],
  ])('is understood: %s', async (_, request, before) => {
    const client = await startPrepared();
    expect(await ask(client, ...request('DEALLOCATE plan'))).toEqual([...before, 'DEALLOCATE', 'ready I']);
    expect(await bindAndExecute(client, 'plan')).toEqual(['26000', 'ready I']);
    expect(await ask(client, ...request('deallocate PREPARE "Odd ""name"""; '))).toEqual([
      ...before,
      'DEALLOCATE',
      'ready I',
    ]);
    expect(await bindAndExecute(client, 'Odd "name"')).toEqual(['26000', 'ready I']);
    // The names are free again, and what does not exist is reported by the server.
    expect(await ask(client, parse('plan', 'select 3'), ...use('plan'))).toEqual([
      '1',
      '2',
      'D',
      'SELECT 1',
      'ready I',
    ]);
    expect((await ask(client, ...request('deallocate nothing'))).slice(-2)).toEqual(['26000', 'ready I']);
  });

  it('does not do it in a failed transaction, as in Postgres', async () => {
    const client = await startPrepared();
    await ask(client, query('begin'));
    expect(await ask(client, query('select 1/0'))).toEqual(['22012', 'ready E']);
    expect(await ask(client, query('deallocate plan'))).toEqual(['25P02', 'ready E']);
    expect(await ask(client, parse('', 'deallocate plan'), sync)).toEqual(['25P02', 'ready E']);
    await ask(client, query('rollback'));
    expect(await bindAndExecute(client, 'plan')).toEqual(['2', 'D', 'SELECT 1', 'ready I']);
  });

  it('leaves the statements of other clients alone', async () => {
    const client = await startPrepared();
    const other = await proxies.raw(proxy);
    await ask(other, parse('plan', 'select 1'), sync);
    expect(await ask(client, query('deallocate plan'))).toEqual(['DEALLOCATE', 'ready I']);
    expect(await bindAndExecute(other, 'plan')).toEqual(['2', 'D', 'SELECT 1', 'ready I']);
    expect(await ask(client, query('deallocate all'))).toEqual(['DEALLOCATE ALL', 'ready I']);
    expect(await bindAndExecute(client, 'Odd "name"')).toEqual(['26000', 'ready I']);
    expect(await ask(client, query('discard all'))).toEqual(['DISCARD ALL', 'ready I']);
    expect(await bindAndExecute(other, 'plan')).toEqual(['2', 'D', 'SELECT 1', 'ready I']);
  });

  it.each(['deallocate all', 'discard all'])('drops everything: %s, extended', async (sql) => {
    const client = await startPrepared();
    expect(await ask(client, parse('', sql), ...use(''))).toEqual(['1', '2', sql.toUpperCase(), 'ready I']);
    expect(await bindAndExecute(client, 'plan')).toEqual(['26000', 'ready I']);
  });

  it('reaches a statement that SQL has prepared in the same transaction', async () => {
    const client = await startPrepared();
    expect(await ask(client, query('begin; prepare mine as select 1; deallocate mine; commit'))).toEqual([
      'BEGIN',
      'PREPARE',
      'DEALLOCATE',
      'COMMIT',
      'ready I',
    ]);
    await ask(client, query('begin'));
    await ask(client, query('prepare mine as select 1'));
    expect(await ask(client, query('deallocate mine'))).toEqual(['DEALLOCATE', 'ready T']);
  });
});

describe('an error that names a prepared statement', () => {
  const told = async (messages: RawClient['messages'], ...requests: Buffer[]): Promise<string[]> => {
    messages.write(Buffer.concat(requests));
    const errors: string[] = [];
    for (;;) {
      const { type, body } = await messages.readMessage();
      if (type === 'Z') return errors;
      if (type !== 'E') continue;
      const { sqlState, message } = parseErrorResponse(body);
      errors.push(`${sqlState} ${message}`);
    }
  };

  it.each(['plan', 'Odd "name"', 'plän', '$&'])('has the client’s own name: %s', async (name) => {
    const { messages } = await proxies.raw(await startWith(1));
    expect(await told(messages, parse('before', 'select 1'), parse(name, 'select $1::int'), sync)).toEqual([]);
    expect(await told(messages, parse(name, 'select 2'), sync)).toEqual([
      `42P05 prepared statement "${name}" already exists`,
    ]);
    expect(await told(messages, bind(name), execute(), sync)).toEqual([
      `08P01 bind message supplies 0 parameters, but prepared statement "${name}" requires 1`,
    ]);
    expect(await told(messages, bind(name, ['catnap_2']), execute(), sync)).toEqual([
      '22P02 invalid input syntax for type integer: "catnap_2"',
    ]);
    expect(await told(messages, closeStatement(name), bind(name), sync)).toEqual([
      `26000 prepared statement "${name}" does not exist`,
    ]);
  });
});

describe('requests behind one that fails, sent before its error was read', () => {
  const read = (client: RawClient) => ask(client);

  it('prepare the new text of a name whose first text was refused or skipped', async () => {
    const client = await proxies.raw(await startWith(1));
    const refused = parse('plan', 'select nothing from nowhere');
    const skipped = [execute('missing'), parse('plan', 'select 1 / 0')];
    for (const [first, state] of [
      [[refused], '42P01'],
      [skipped, '34000'],
    ] as const) {
      const second = [parse('plan', 'select 42'), bind('plan'), execute(), closeStatement('plan'), sync];
      expect(await ask(client, ...first, sync, ...second)).toEqual([state, 'ready I']);
      expect(await read(client)).toEqual(['1', '2', 'D', 'SELECT 1', '3', 'ready I']);
    }
  });

  it('deallocate no name whose Parse was refused or skipped, by either protocol', async () => {
    const client = await proxies.raw(await startWith(1));
    const byQuery = [query('deallocate plan')];
    const inBatch = [parse('', 'deallocate plan'), bind(''), execute(), sync];
    for (const second of [byQuery, inBatch]) {
      const skipped = [execute('missing'), parse('plan', 'rollback'), sync];
      expect(await ask(client, ...skipped, ...second)).toEqual(['34000', 'ready I']);
      expect((await read(client)).slice(-2)).toEqual(['26000', 'ready I']);
      const refused = [parse('plan', 'select nothing from nowhere'), sync];
      expect(await ask(client, ...refused, ...second)).toEqual(['42P01', 'ready I']);
      expect((await read(client)).slice(-2)).toEqual(['26000', 'ready I']);
    }
  });

  it('prepare the new text of a name that DISCARD ALL has freed, in the same batch', async () => {
    const client = await proxies.raw(await startWith(1));
    const discard = [parse('', 'discard all'), bind(''), execute()];
    const renewed = [parse('plan', 'insert into nowhere values (1)'), sync];
    expect(await ask(client, parse('plan', 'select 1'), ...discard, ...renewed)).toEqual([
      '1',
      '1',
      '2',
      'DISCARD ALL',
      '42P01',
      'ready I',
    ]);
  });

  it('are refused under names that the client still has, one after the other', async () => {
    const client = await proxies.raw(await startWith(1));
    const names = ['one', 'two', 'three'];
    expect(await ask(client, ...names.map((name) => parse(name, 'select 1')), sync)).toEqual([
      '1',
      '1',
      '1',
      'ready I',
    ]);
    const again = names.map((name) => parse(name, 'select 2'));
    expect(await ask(client, query('select 1'), ...again, sync)).toEqual(['T', 'D', 'SELECT 1', 'ready I']);
    expect(await read(client)).toEqual(['42P05', 'ready I']);
    const [, two = sync] = again;
    expect(await ask(client, closeStatement('one'), two, sync)).toEqual(['3', '42P05', 'ready I']);
  });

  it('are skipped up to the Sync, simple queries too, and the server is free afterwards', async () => {
    const proxy = await startWith(1);
    const client = await proxies.raw(proxy);
    expect(await ask(client, parse('plan', 'select 1'), sync)).toEqual(['1', 'ready I']);
    expect(await ask(client, execute('missing'), flush, query('select 1'), query('deallocate plan'), sync)).toEqual([
      '34000',
      'ready I',
    ]);
    client.messages.write(Buffer.concat([execute('missing'), flush]));
    expect((await client.messages.readMessage()).type).toBe('E');
    expect(await ask(client, query('select 1'), query('deallocate plan'), sync)).toEqual(['ready I']);
    expect(await bindAndExecute(client, 'plan')).toEqual(['2', 'D', 'SELECT 1', 'ready I']);
    const other = await proxies.client(proxy);
    expect((await other.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
  });

  it('and a batch that a simple query ends needs no Sync to free its server', async () => {
    const proxy = await startWith(1);
    const client = await proxies.raw(proxy);
    expect(await ask(client, parse('', 'select 1'), query('select 2'))).toEqual(['1', 'T', 'D', 'SELECT 1', 'ready I']);
    const other = await proxies.client(proxy);
    expect((await other.query('select 3 as n')).rows).toEqual([{ n: 3 }]);
  });
});
