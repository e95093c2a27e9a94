/** SQL over HTTP through the whole program, with the driver that nobody here wrote. */
import { NeonDbError, neon, neonConfig, Pool } from '@neondatabase/serverless';
import { drizzle } from 'drizzle-orm/neon-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';

let program: Program;
let projectId: string;
let endpointId: string;
let uri: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'http' } });
  projectId = body.project.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  // All that a user of another host than Neon's sets.
  neonConfig.fetchEndpoint = `http://127.0.0.1:${program.httpPort}/sql`;
});
afterAll(() => program.destroy());

async function suspend(): Promise<void> {
  const path = `/projects/${projectId}/endpoints/${endpointId}`;
  await program.api('POST', `${path}/suspend`);
  await eventually(async () =>
    expect((await program.api('GET', path)).body.endpoint).toMatchObject({ current_state: 'idle' }),
  );
}

async function makeBranch(): Promise<void> {
  const body = { branch: { name: 'child' }, endpoints: [{ type: 'read_write' }] };
  expect((await program.api('POST', `/projects/${projectId}/branches`, body)).status).toBe(201);
}

describe('the serverless driver, unmodified', () => {
  it('wakes a sleeping compute and gets its rows', async () => {
    await suspend();
    const sql = neon(uri);
    const name = 'Åsa';
    expect(await sql`select ${name}::text as name, ${[1, 2]}::int[] as list, ${{ a: 1 }}::jsonb as doc`).toEqual([
      { name: 'Åsa', list: [1, 2], doc: { a: 1 } },
    ]);
  });

  it('gets types, full results and arrays as from Neon', async () => {
    const sql = neon(uri);
    const [row] = await sql`select 1::int4 as i, 1::int8 as big, now() as at, '\\x0102'::bytea as bytes, null as n`;
    expect(row).toMatchObject({ i: 1, big: '1', n: null });
    expect(row?.at).toBeInstanceOf(Date);
    expect(Buffer.from(row?.bytes)).toEqual(Buffer.from([1, 2]));
    const full = await sql.query('select $1::int as a', [5], { fullResults: true });
    expect(full).toMatchObject({ command: 'SELECT', rowCount: 1, rows: [{ a: 5 }], viaNeonFetch: true });
    expect(full.fields[0]).toMatchObject({ name: 'a', dataTypeID: 23 });
    expect(await sql.query('select 1 as a, 2 as b', [], { arrayMode: true })).toEqual([[1, 2]]);
    const insert = await sql.query('create table kept (id int primary key)', [], { fullResults: true });
    expect(insert).toMatchObject({ command: 'CREATE', rowCount: null });
  });

  it('runs transactions whole or not at all', async () => {
    const sql = neon(uri);
    const [inserted, level] = await sql.transaction(
      [sql`insert into kept values (1) returning id`, sql`select current_setting('transaction_isolation') as level`],
      { isolationLevel: 'RepeatableRead' },
    );
    expect([inserted, level]).toEqual([[{ id: 1 }], [{ level: 'repeatable read' }]]);
    await expect(sql.transaction([sql`insert into kept values (2)`, sql`insert into kept values (1)`])).rejects.toThrow(
      'duplicate key',
    );
    await expect(sql.transaction([sql`insert into kept values (3)`], { readOnly: true })).rejects.toThrow('read-only');
    expect(await sql`select id from kept`).toEqual([{ id: 1 }]);
  });

  it('queries by HTTP through its Pool with the string of the API, whose options it drops on the way', async () => {
    const { fetchEndpoint } = neonConfig;
    neonConfig.poolQueryViaFetch = true;
    const pool = new Pool({ connectionString: uri });
    try {
      expect(await pool.query('select $1::int as a', [4])).toMatchObject({ rows: [{ a: 4 }], viaNeonFetch: true });
      const wrong = new Pool({ connectionString: uri.replace(/:[^:@]+@/, ':wrong@') });
      await expect(wrong.query('select 1')).rejects.toThrow('?endpoint=<endpoint-id>');
      await makeBranch();
      await expect(pool.query('select 1')).rejects.toThrow('Several branches');
      neonConfig.fetchEndpoint = `${fetchEndpoint}?endpoint=${endpointId}`;
      expect(await pool.query('select $1::int as a', [5])).toMatchObject({ rows: [{ a: 5 }], viaNeonFetch: true });
    } finally {
      neonConfig.poolQueryViaFetch = false;
      neonConfig.fetchEndpoint = fetchEndpoint;
      await pool.end();
    }
  });

  it('throws what Postgres said, and what the proxy says', async () => {
    const sql = neon(uri);
    const refused = await sql`select * from nowhere`.catch((error) => error);
    expect(refused).toBeInstanceOf(NeonDbError);
    expect(refused).toMatchObject({ code: '42P01', severity: 'ERROR', position: '15', routine: 'parserOpenTable' });
    const wrong = neon(uri.replace(/:[^:@]+@/, ':wrong@'));
    const stranger = await wrong`select 1`.catch((error) => error);
    expect(stranger).toBeInstanceOf(NeonDbError);
    expect(stranger).toMatchObject({
      code: '28P01',
      message: "password authentication failed for user 'neondb_owner'",
    });
  });

  it('serves Drizzle', async () => {
    const db = drizzle(neon(uri));
    expect((await db.execute('select 7 as seven')).rows).toEqual([{ seven: 7 }]);
  });
});

describe('the port itself', () => {
  const sqlUrl = () => `http://127.0.0.1:${program.httpPort}/sql`;

  it('answers a preflight, and names the methods that it knows', async () => {
    const preflight = await fetch(sqlUrl(), { method: 'OPTIONS', headers: { origin: 'https://elsewhere.test' } });
    expect(preflight.status).toBe(200);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Neon-Connection-String');
    expect((await fetch(sqlUrl())).status).toBe(405);
  });

  it('takes no more than 10 MiB and gives no more', async () => {
    const post = (query: string) =>
      fetch(sqlUrl(), {
        method: 'POST',
        headers: { 'neon-connection-string': uri },
        body: JSON.stringify({ query }),
      });
    const long = await post(`select '${'x'.repeat(11 * 1024 * 1024)}'`);
    expect(long.status).toBe(413);
    expect(await long.json()).toMatchObject({ message: 'request is too large (max is 10485760 bytes)' });
    const wide = await post(`select repeat('x', 11000000)`);
    expect(wide.status).toBe(507);
    expect(await wide.json()).toMatchObject({ message: 'response is too large (max is 10485760 bytes)' });
    const near = await post(`select length('${'x'.repeat(9 * 1024 * 1024)}') as n`);
    expect(await near.json()).toMatchObject({ rows: [{ n: 9 * 1024 * 1024 }] });
  });
});
