/** Pooled hostnames with real drivers and a real Postgres; only the control plane is scripted. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { drizzle } from 'drizzle-orm/node-postgres';
import { sql as fragment } from 'drizzle-orm/sql';
import type pg from 'pg';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { query } from '../../../test/helpers/postgres-messages.ts';
import { PostgresProxies, psqlVersion, type StartedProxy } from '../../../test/helpers/proxy.ts';
import type { ProxyLimits } from '../kit/limits.ts';

const run = promisify(execFile);
const proxies = new PostgresProxies();
const { direct } = proxies;

beforeAll(() => proxies.prepare());
afterAll(() => proxies.dispose());
afterEach(() => proxies.cleanUp());

/** A proxy whose server takes that many sessions, of which one pool may have nine tenths. */
const startWith = (sessions: number, limits: Partial<ProxyLimits> = {}) =>
  proxies.start({ wake: async () => ({ ...proxies.compute, sessions }) }, { limits });

const value = async (client: pg.Client, text: string, values: unknown[] = []) =>
  Object.values((await client.query(text, values)).rows[0])[0];
const pid = (client: pg.Client) => value(client, 'select pg_backend_pid()');

function driver(proxy: StartedProxy, options: postgres.Options<Record<string, never>> = {}): postgres.Sql {
  const sql = postgres(proxies.uri(proxy), { max: 1, onnotice: () => {}, ...options });
  proxies.onCleanup(() => sql.end({ timeout: 1 }));
  return sql;
}

/** Waits until the application's query is in `pg_sleep`. */
async function untilSleeping(application: string): Promise<void> {
  await eventually(async () => {
    const rows = await direct`select 1 from pg_stat_activity where application_name = ${application}
      and wait_event = 'PgSleep'`;
    expect(rows).toHaveLength(1);
  });
}

describe('transactions', () => {
  it('of many clients share a few servers', async () => {
    const proxy = await startWith(5);
    const clients = await Promise.all(Array.from({ length: 200 }, () => proxies.client(proxy)));
    expect(new Set(await Promise.all(clients.map(pid))).size).toBeLessThanOrEqual(4);
    const kept = await Promise.all(
      clients.map(async (client, n) => {
        await client.query('begin');
        await client.query('create temporary table mine on commit drop as select $1::int as n', [n]);
        const found = await value(client, 'select n from mine');
        await client.query('commit');
        return found;
      }),
    );
    expect(kept).toEqual(clients.map((_, n) => n));
  });

  it('keep their server from begin to commit, also after an error', async () => {
    const proxy = await startWith(10);
    const one = await proxies.client(proxy);
    const other = await proxies.client(proxy);
    await one.query('begin');
    const mine = await pid(one);
    expect(await pid(other)).not.toBe(mine);
    await expect(one.query('select 1/0')).rejects.toMatchObject({ code: '22012' });
    await expect(one.query('select 1')).rejects.toMatchObject({ code: '25P02' });
    await one.query('rollback');
    expect(await value(one, 'select 1')).toBe(1);
  });

  it.each([
    ['BEGIN READ WRITE', 'off', 'read committed'],
    ['begin isolation level repeatable read', 'off', 'repeatable read'],
    ['BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE', 'on', 'serializable'],
    ['START TRANSACTION READ ONLY', 'on', 'read committed'],
  ])('begin by %s, with what it says, and are over for the next client', async (begin, readOnly, level) => {
    // Of two sessions one pool may have one, so that the next client gets the same server.
    const proxy = await startWith(2);
    const [client, next] = [await proxies.client(proxy), await proxies.client(proxy)];
    const facts = `select current_setting('transaction_read_only') || ' ' || current_setting('transaction_isolation')`;
    await client.query(begin);
    const mine = await pid(client);
    expect(await value(client, facts)).toBe(`${readOnly} ${level}`);
    const write = client.query('create temporary table written (n int) on commit drop');
    if (readOnly === 'on') await expect(write).rejects.toMatchObject({ code: '25006' });
    else await write;
    await client.query('rollback');
    expect(await value(next, facts)).toBe('off read committed');
    expect(await pid(next)).toBe(mine);
  });

  it('of a client that dies are rolled back, and their server is not used again', async () => {
    const proxy = await startWith(10);
    await direct`create table if not exists pool_killed (n int)`;
    proxies.onCleanup(() => direct`drop table pool_killed`);
    const victim = await proxies.client(proxy);
    await victim.query('begin');
    await victim.query('insert into pool_killed values (1)');
    const mine = await pid(victim);
    const busy = await proxies.client(proxy, { application_name: 'busy-victim' });
    const sleeping = busy.query('select pg_sleep(60)').catch(() => {});
    await untilSleeping('busy-victim');
    for (const client of [victim, busy]) streamOf(client).destroy();
    await sleeping;
    await eventually(async () => {
      const rows = await direct`select 1 from pg_stat_activity where pid = ${Number(mine)}
        or (application_name = 'busy-victim' and state = 'active')`;
      expect(rows).toHaveLength(0);
    });
    const next = await proxies.client(proxy);
    expect(await value(next, 'select count(*)::int from pool_killed')).toBe(0);
  });
});

/** The socket of the driver, which is not part of its API. */
function streamOf(client: pg.Client): Duplex {
  return (client as pg.Client & { connection: { stream: Duplex } }).connection.stream;
}

describe('prepared statements', () => {
  it('of pg survive the end of a transaction and a change of server', async () => {
    const proxy = await startWith(4);
    const clients = await Promise.all(Array.from({ length: 12 }, () => proxies.client(proxy)));
    const servers = new Set<unknown>();
    for (let round = 0; round < 5; round++) {
      const results = await Promise.all(
        clients.map((client, n) =>
          client.query({
            name: 'same-name',
            text: `select $1::int + ${n} as n, pg_backend_pid() as pid`,
            values: [round],
          }),
        ),
      );
      expect(results.map(({ rows }) => rows[0].n)).toEqual(clients.map((_, n) => n + round));
      for (const { rows } of results) servers.add(rows[0].pid);
    }
    expect(servers.size).toBeGreaterThan(1);
  });

  it('of postgres.js work with its default options, pipelined too', async () => {
    const sql = driver(await startWith(4), { max: 3 });
    const numbers = Array.from({ length: 60 }, (_, n) => n);
    const found = await Promise.all(numbers.map((n) => sql`select ${n}::int as n, ${'x'.repeat(n)}::text as text`));
    expect(found.map(([row]) => row?.n)).toEqual(numbers);
    const total = await sql.begin(async (tx) => {
      const [a, b] = await Promise.all([tx`select 20::int as n`, tx`select ${22}::int as n`]);
      return a[0]?.n + b[0]?.n;
    });
    expect(total).toBe(42);
  });

  it('may be more than a server keeps', async () => {
    const proxy = await startWith(4, { statementsPerServer: 3 });
    const client = await proxies.client(proxy);
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 10; n++) {
        const { rows } = await client.query({ name: `s${n}`, text: `select ${n}::int as n` });
        expect(rows).toEqual([{ n }]);
      }
    }
    const kept = await value(client, "select count(*)::int from pg_prepared_statements where name like 'catnap_%'");
    expect(kept).toBe(3);
  });

  it('that fail report the error of Postgres, and can be prepared again', async () => {
    const client = await proxies.client(await startWith(4));
    await expect(client.query({ name: 'bad', text: 'select nothing from nowhere' })).rejects.toMatchObject({
      code: '42P01',
    });
    await expect(client.query({ name: 'typed', text: 'select $1::int as n', values: ['x'] })).rejects.toMatchObject({
      code: '22P02',
    });
    expect((await client.query({ name: 'typed', text: 'select $1::int as n', values: ['7'] })).rows).toEqual([
      { n: 7 },
    ]);
    expect((await client.query({ name: 'bad', text: 'select 1 as n' })).rows).toEqual([{ n: 1 }]);
  });

  it('are prepared again after DISCARD ALL and DEALLOCATE ALL', async () => {
    const proxy = await startWith(4);
    const sql = driver(proxy);
    for (const command of ['discard all', 'deallocate all']) {
      const client = await proxies.client(proxy);
      await client.query({ name: 'one', text: 'select 1 as n' });
      await client.query(command);
      expect((await client.query({ name: 'two', text: 'select 1 as n' })).rows).toEqual([{ n: 1 }]);
      expect(await sql`select ${5}::int as n`).toEqual([{ n: 5 }]);
    }
  });

  it('can be prepared again after their table has changed', async () => {
    const proxy = await startWith(4);
    await direct`create table if not exists pool_changing (a int)`;
    proxies.onCleanup(() => direct`drop table pool_changing`);
    const client = await proxies.client(proxy);
    const select = (name: string) => client.query({ name, text: 'select * from pool_changing' });
    await select('before');
    await direct`alter table pool_changing add column b int`;
    await expect(select('before')).rejects.toMatchObject({ code: '0A000' });
    expect((await select('after')).fields.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('work with drizzle', async () => {
    const client = await proxies.client(await startWith(4));
    const db = drizzle(client);
    const answer = await db.transaction(async (tx) => tx.execute(fragment`select ${41}::int + 1 as n`));
    expect(answer.rows).toEqual([{ n: 42 }]);
  });
});

describe('settings', () => {
  it('that servers report follow the client from server to server', async () => {
    const proxy = await startWith(4);
    const one = await proxies.client(proxy, { application_name: 'one' });
    const other = await proxies.client(proxy, { application_name: 'other' });
    await one.query("set timezone to 'Asia/Tokyo'");
    await one.query('set datestyle to german');
    for (let i = 0; i < 3; i++) {
      const settings = "select current_setting('TimeZone') || ' ' || current_setting('application_name')";
      expect(await Promise.all([value(one, settings), value(other, settings)])).toEqual([
        'Asia/Tokyo one',
        'UTC other',
      ]);
    }
    expect(await value(one, "select date '2026-02-01'::text")).toBe('01.02.2026');
  });

  it('of the startup packet are all applied', async () => {
    const proxy = await startWith(4);
    const strange = await proxies.client(proxy, { options: '-c search_path=strange endpoint=ep-a-pooler' });
    const plain = await proxies.client(proxy);
    for (let i = 0; i < 2; i++) {
      expect(await value(strange, 'show search_path')).toBe('strange');
      expect(await value(plain, 'show search_path')).not.toBe('strange');
    }
    const raw = await proxies.raw(proxy, { TimeZone: 'europe/paris', client_encoding: 'latin1' });
    expect(raw.parameters.get('TimeZone')).toBe('Europe/Paris');
    expect(raw.parameters.get('client_encoding')).toBe('LATIN1');
    expect(raw.parameters.get('server_version')).toBeDefined();
    await expect(proxies.raw(proxy, { TimeZone: 'Nowhere/Here' })).rejects.toThrow(
      'invalid value for parameter "TimeZone"',
    );
    await expect(proxies.raw(proxy, { replication: 'true' })).rejects.toThrow(
      'replication is not possible through the pooler: leave -pooler out of the host name',
    );
  });

  it('made with SET do not reach another client, and neither does a role', async () => {
    const proxy = await startWith(1);
    const one = await proxies.client(proxy);
    const other = await proxies.client(proxy);
    const before = await value(other, 'show search_path');
    await one.query('set search_path to leaked');
    await one.query('set role none');
    await one.query('begin');
    await one.query("set local work_mem to '77MB'");
    await one.query('commit');
    expect(await value(other, 'show search_path')).toBe(before);
    expect(await value(other, 'show work_mem')).not.toBe('77MB');
    await one.query('listen something');
    expect(await value(other, 'select count(*)::int from pg_listening_channels()')).toBe(0);
  });
});

describe('the budget', () => {
  it('makes clients wait for a server, and refuses those that wait too long', async () => {
    const proxy = await startWith(1, { queueMs: 300 });
    const holder = await proxies.client(proxy);
    const waiter = await proxies.client(proxy);
    const late = await proxies.client(proxy);
    await holder.query('begin');
    const outcome = waiter.query('select 1').catch((error: { code: string; message: string }) => error);
    expect(await outcome).toMatchObject({
      code: '53300',
      message: 'query_wait_timeout: no server connection became free within 0.3 seconds',
    });
    const served = value(late, 'select 7');
    await holder.query('commit');
    expect(await served).toBe(7);
  });

  it('is shared by pools and direct sessions', async () => {
    const proxy = await startWith(3);
    const count = async () =>
      Number((await direct`select count(*) from pg_stat_activity where application_name = 'counted'`)[0]?.count);
    const pooled = [
      await proxies.client(proxy, { application_name: 'counted' }),
      await proxies.client(proxy, { application_name: 'counted' }),
    ];
    for (const client of pooled) await client.query('begin');
    const another = { application_name: 'counted', options: '-c work_mem=5MB endpoint=ep-a-pooler' };
    const third = await proxies.client(proxy, another);
    expect(await value(third, 'select 3')).toBe(3);
    expect(await count()).toBe(3);
    // The third server is idle in its pool; the pool closes it, and a direct session gets its permit.
    const straight = await proxies.client(proxy, { application_name: 'counted', options: 'endpoint=ep-a' });
    expect(await value(straight, 'select 4')).toBe(4);
    expect(await count()).toBe(3);
    const refused = proxies.client(proxy, { options: 'endpoint=ep-a' });
    await expect(refused).rejects.toMatchObject({ code: '53300', message: 'sorry, too many clients already' });
    const waiting = value(third, 'select 5');
    await pooled[0]?.query('commit');
    expect(await waiting).toBe(5);
    expect(await count()).toBe(3);
  });

  it('limits the clients of an endpoint', async () => {
    const proxy = await startWith(4, { pooledPerEndpoint: 2 });
    await proxies.client(proxy);
    await proxies.client(proxy);
    await expect(proxies.client(proxy)).rejects.toMatchObject({
      code: '53300',
      message: 'no more connections allowed',
    });
  });
});

describe('COPY', () => {
  it.skipIf(psqlVersion === 0)(
    'works in both directions, and an error in the middle leaves the session usable',
    async () => {
      const proxy = await startWith(2);
      await direct`create table if not exists pool_copied (n int, text text)`;
      proxies.onCleanup(() => direct`drop table pool_copied`);
      const child = spawn('psql', [proxies.uri(proxy), '-XAtq', '-v', 'ON_ERROR_STOP=0'], { stdio: 'pipe' });
      let output = '';
      child.stdout.on('data', (chunk) => (output += chunk));
      child.stderr.on('data', (chunk) => (output += chunk));
      child.stdin.write('copy pool_copied from stdin;\n');
      for (let n = 0; n < 2_000; n++) child.stdin.write(`${n}\t${'x'.repeat(200)}\n`);
      child.stdin.write('\\.\nselect count(*), sum(n) from pool_copied;\n');
      child.stdin.write('copy pool_copied from stdin;\n');
      for (let n = 0; n < 2_000; n++) child.stdin.write(`not a number\t${'x'.repeat(200)}\n`);
      child.stdin.write("\\.\nselect 'still ' || 'here';\ncopy (select * from pool_copied where n < 3) to stdout;\n");
      child.stdin.end(
        'begin; copy pool_copied from stdin;\n1\tone\n\\.\nrollback; select count(*) from pool_copied;\n',
      );
      await once(child, 'close');
      expect(output).toContain('2000|1999000');
      expect(output).toContain('invalid input syntax for type integer');
      expect(output).toContain('still here');
      expect(output).toContain(`2\t${'x'.repeat(200)}`);
      expect(output.trim().endsWith('2000')).toBe(true);
    },
  );

  it('works as a stream of postgres.js', async () => {
    const proxy = await startWith(2);
    await direct`create table if not exists pool_streamed (n int)`;
    proxies.onCleanup(() => direct`drop table pool_streamed`);
    const sql = driver(proxy);
    const writable = await sql`copy pool_streamed from stdin`.writable();
    for (let n = 0; n < 1_000; n++) writable.write(`${n}\n`);
    writable.end();
    await once(writable, 'finish');
    let bytes = 0;
    for await (const chunk of await sql`copy pool_streamed to stdout`.readable()) bytes += chunk.length;
    expect(bytes).toBe(3_890);
    expect((await sql`select count(*)::int as n from pool_streamed`)[0]?.n).toBe(1_000);
  });
});

describe('cancel', () => {
  it('reaches the query of the client, and never another client on the same server', async () => {
    const proxy = await startWith(1);
    const one = await proxies.raw(proxy, { application_name: 'pool-cancel' });
    const other = await proxies.client(proxy, { application_name: 'pool-other' });
    one.messages.write(query('select pg_sleep(60)'));
    await untilSleeping('pool-cancel');
    await proxies.cancel(proxy, { ...one.key, secret: one.key.secret ^ 1 });
    await proxies.cancel(proxy, one.key);
    const types: string[] = [];
    while (types.at(-1) !== 'Z') types.push((await one.messages.readMessage()).type);
    expect(types).toContain('E');
    const running = value(other, 'select pg_sleep(0.3)::text');
    await proxies.cancel(proxy, one.key);
    expect(await running).toBe('');
  });
});

describe.skipIf(psqlVersion === 0)('psql', () => {
  it('connects over TLS with channel binding', async () => {
    const proxy = await startWith(4);
    const { stdout } = await run('psql', [
      `${proxies.uri(proxy)}&sslmode=require&channel_binding=require`,
      '-XAtc',
      'select 40 + 2',
    ]);
    expect(stdout.trim()).toBe('42');
  });
});
