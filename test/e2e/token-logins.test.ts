/** Tokens of third parties, with the serverless driver as it is, a local provider, and real Postgres. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { neon, neonConfig } from '@neondatabase/serverless';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';

interface Project {
  readonly id: string;
  readonly endpointId: string;
  readonly ownerUri: string;
  /** Without a password. */
  readonly uri: string;
}

let program: Program;
let provider: Server;
let jwksUrl: string;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;
let kid = 'one';
let project: Project;
/** On Postgres 18. */
let newer: Project;
let other: Project;
let jwksId: string;

beforeAll(async () => {
  pair = await generateKeyPair('ES256', { extractable: true });
  provider = createServer(async (_request, response) => {
    response.end(JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid }] }));
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  jwksUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/jwks.json`;
  program = await Program.create();
  await program.start();
  neonConfig.fetchEndpoint = `http://127.0.0.1:${program.httpPort}/sql`;
  [project, newer, other] = await Promise.all([makeProject('tokens'), makeProject('newer', 18), makeProject('other')]);
  [jwksId] = await Promise.all([setUp(project), setUp(newer)]);
  const owner = neon(project.ownerUri);
  await owner`create table notes (author text, words text)`;
  await owner`insert into notes values ('ann', 'from ann'), ('bob', 'from bob')`;
  await owner`grant select on notes to authenticated`;
});
afterAll(async () => {
  provider.close();
  await program.destroy();
});

async function makeProject(name: string, pg_version = 17): Promise<Project> {
  const { body } = await program.api('POST', '/projects', { project: { name, pg_version } });
  const ownerUri: string = body.connection_uris[0].connection_uri;
  await program.settle(body.project.id);
  const uri = ownerUri.replace(/\/\/[^@]+@/, '//authenticated@');
  return { id: body.project.id, endpointId: body.endpoints[0].id, ownerUri, uri };
}

/** Accepts tokens of the provider, and lets policies ask whose they are. */
async function setUp(of: Project): Promise<string> {
  const { jwks } = await addJwks(of, { jwt_audience: 'shop' });
  await program.settle(of.id);
  const owner = neon(of.ownerUri);
  // As docs/connecting.md has it.
  await owner`create schema auth`;
  await owner`grant usage on schema auth to authenticated`;
  await owner.query(`create function auth.user_id() returns text language sql stable
    as $$ select nullif(pg_catalog.set_config('request.jwt.claims', null, true), '')::jsonb ->> 'sub' $$`);
  return jwks.id;
}

async function addJwks(to: Project, more: object = {}) {
  const reply = await program.api('POST', `/projects/${to.id}/jwks`, {
    jwks_url: jwksUrl,
    provider_name: 'local',
    ...more,
  });
  expect(reply.status).toBe(201);
  return reply.body;
}

const token = (claims: object = {}, seconds = 60) =>
  new SignJWT({ aud: 'shop', sub: 'ann', ...claims })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setExpirationTime(Math.floor(Date.now() / 1_000) + seconds)
    .sign(pair.privateKey);

const failure = async (uri: string, authToken: string) =>
  neon(uri, { authToken })`select 1`.then(
    () => 'it ran',
    (thrown: Error) => thrown.message,
  );

describe('a token of the provider', () => {
  it('runs as the role of the connection string, with its claims', async () => {
    const sql = neon(project.uri, { authToken: () => token({ odd: "it's \\ and \u{1F431}" }) });
    expect(await sql`select current_user as who, words from notes order by 2`).toEqual([
      { who: 'authenticated', words: 'from ann' },
      { who: 'authenticated', words: 'from bob' },
    ]);
    const [row] = await sql`select current_setting('request.jwt.claims')::jsonb as claims`;
    expect(row?.claims).toMatchObject({ sub: 'ann', aud: 'shop', odd: "it's \\ and \u{1F431}" });
    const [inBatch] = await sql.transaction([
      sql`select current_setting('request.jwt.claims')::jsonb ->> 'sub' as sub`,
    ]);
    expect(inBatch).toEqual([{ sub: 'ann' }]);
  });

  it('leaves nothing of its claims for the next', async () => {
    const ask = async (claims: object) => {
      const sql = neon(project.uri, { authToken: await token(claims) });
      return (await sql`select current_setting('request.jwt.claims')::jsonb as claims`)[0]?.claims;
    };
    for (let round = 0; round < 5; round++) {
      expect(await ask({ sub: 'ann', secret: 'of ann' })).toMatchObject({ secret: 'of ann' });
      expect(await ask({ sub: 'bob' })).not.toHaveProperty('secret');
    }
    expect(await neon(project.ownerUri)`select current_setting('request.jwt.claims') as claims`).toEqual([
      { claims: '' },
    ]);
  });

  it('gets no more than its role has', async () => {
    const sql = neon(project.uri, { authToken: await token() });
    await expect(sql`insert into notes values ('eve', 'hi')`).rejects.toThrow('permission denied for table notes');
    await expect(sql`create database mine`).rejects.toThrow('permission denied to create database');
    await expect(sql`create role mine`).rejects.toThrow('permission denied to create role');
  });

  it('counts even if the connection string holds the password of the role', async () => {
    const owner = project.ownerUri;
    expect(await failure(owner, await token())).toBe('the token is not accepted here');
  });

  it('wakes a compute that sleeps, and works over the pooled name', async () => {
    const path = `/projects/${project.id}/endpoints/${project.endpointId}`;
    await program.api('POST', `${path}/suspend`);
    await eventually(async () => expect((await program.api('GET', path)).body.endpoint.current_state).toBe('idle'));
    const pooled = project.uri.replace(project.endpointId, `${project.endpointId}-pooler`);
    expect(await neon(pooled, { authToken: await token() })`select 1 as one`).toEqual([{ one: 1 }]);
  });
});

describe.each([
  [17, () => project],
  [18, () => newer],
])('a policy over the claims, on Postgres %i', (major, of) => {
  beforeAll(async () => {
    const owner = neon(of().ownerUri);
    expect(await owner`show server_version`).toMatchObject([{ server_version: expect.stringMatching(`^${major}`) }]);
    await owner`create table diaries (author text, words text)`;
    await owner`insert into diaries values ('ann', 'of ann'), ('bob', 'of bob')`;
    await owner`grant select on diaries to authenticated`;
    await owner`alter table diaries enable row level security`;
    await owner`create policy own on diaries using (author = (select auth.user_id()))`;
  });

  it('shows each caller its own rows', async () => {
    for (const sub of ['ann', 'bob', 'eve']) {
      const sql = neon(of().uri, { authToken: await token({ sub }) });
      const expected = sub === 'eve' ? [] : [{ words: `of ${sub}` }];
      expect(await sql`select words from diaries`).toEqual(expected);
    }
  });

  const forgeries = [
    `set request.jwt.claims = '{"sub": "bob"}'`,
    `set session request.jwt.claims = '{"sub": "bob"}'`,
    `select set_config('request.jwt.claims', '{"sub": "bob"}', false)`,
    `select set_config('request.jwt.claims', '{"sub": "bob"}', true)`,
    `set role authenticated`,
  ];
  it.each(forgeries)('holds against %s', async (forgery) => {
    const sql = neon(of().uri, { authToken: await token({ sub: 'ann' }) });
    const [, rows] = await sql.transaction([sql.query(forgery), sql`select words from diaries`]);
    expect(rows).toEqual([{ words: 'of ann' }]);
    await sql.query(forgery);
    expect(await sql`select words from diaries`).toEqual([{ words: 'of ann' }]);
  });

  it('holds against a value in the same statement, or in the options of the connection string', async () => {
    const authToken = await token({ sub: 'ann' });
    const inOne = `with forged as materialized (select set_config('request.jwt.claims', '{"sub": "bob"}', false) as s)
      select words from forged, diaries where s is not null`;
    expect(await neon(of().uri, { authToken }).query(inOne)).toEqual([{ words: 'of ann' }]);
    const options = `options=endpoint%3D${of().endpointId}%20-c%20Request.JWT.Claims%3D%7B%22sub%22:%22bob%22%7D`;
    const uri = of().uri.replace(/options=[^&]*/, options);
    expect(uri).toContain('Request.JWT');
    expect(await neon(uri, { authToken })`select words from diaries`).toEqual([{ words: 'of ann' }]);
  });

  it('holds against a caller that gives its role a password and logs in with it', async () => {
    const claims = '{"sub":"bob"}';
    const { body } = await program.api(
      'POST',
      `/projects/${of().id}/branches/${await branchId(of())}/roles/authenticated/reset_password`,
    );
    await program.settle(of().id);
    const client = new pg.Client({
      host: '127.0.0.1',
      port: program.pgPort,
      user: 'authenticated',
      password: body.role.password,
      database: 'neondb',
      options: `endpoint=${of().endpointId} -c request.jwt.claims=${claims}`,
    });
    await client.connect();
    expect((await client.query('select words from diaries')).rows).toEqual([]);
    await client.end();
  });
});

describe('refused are', () => {
  it.each([
    ['one that is over', () => token({}, -60), 'the token has expired'],
    ['one for another audience', () => token({ aud: 'elsewhere' }), 'the token\'s claim "aud" is not accepted here'],
    ['one of another key', () => forged(), 'the token is not accepted here'],
    ['one without a signature', () => unsigned(), /must be signed with one of/],
    ['a text that is none', async () => 'x', 'the bearer token is not a JWT'],
  ])('%s', async (_which, make, message) => {
    expect(await failure(project.uri, await make())).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
  });

  it('tokens at another project, another role and an endpoint that does not exist, all in the same words', async () => {
    const answer = 'the token is not accepted here';
    expect(await failure(other.uri, await token())).toBe(answer);
    expect(await failure(project.uri.replace('authenticated@', 'neondb_owner@'), await token())).toBe(answer);
    expect(await failure(project.uri.replace(project.endpointId, 'ep-none-1'), await token())).toBe(answer);
    const reply = await fetch(`http://127.0.0.1:${program.httpPort}/sql`, {
      method: 'POST',
      headers: { 'neon-connection-string': other.uri, authorization: `Bearer ${await token()}` },
      body: '{"query":"select 1"}',
    });
    expect([reply.status, await reply.json()]).toEqual([400, expect.objectContaining({ code: '28000' })]);
  });

  it('roles that do not exist, once the token is right', async () => {
    const { jwks } = await addJwks(project, { role_names: ['visitor'], skip_role_creation: true });
    const uri = project.uri.replace('authenticated@', 'visitor@');
    expect(await failure(uri, await token())).toContain('Catnap does not know the password of this role');
    await program.api('DELETE', `/projects/${project.id}/jwks/${jwks.id}`);
  });
});

it('a branch that sleeps gets the roles with its start, and is not woken for them', async () => {
  const path = `/projects/${other.id}/endpoints/${other.endpointId}`;
  await program.api('POST', `${path}/suspend`);
  await eventually(async () => expect((await program.api('GET', path)).body.endpoint.current_state).toBe('idle'));
  const { operations } = await addJwks(other);
  expect(operations).toEqual([]);
  expect(await neon(other.uri, { authToken: await token() })`select current_user as who`).toEqual([
    { who: 'authenticated' },
  ]);
});

it('a provider may change its key, and a key set that is deleted opens nothing any more', async () => {
  const old = await token();
  pair = await generateKeyPair('ES256', { extractable: true });
  kid = 'two';
  const sql = neon(project.uri, { authToken: () => token() });
  await eventually(async () => expect(await sql`select 1 as one`).toEqual([{ one: 1 }]), { everyMs: 500 });
  expect(await failure(project.uri, old)).toBe('the token is not accepted here');
  await program.api('DELETE', `/projects/${project.id}/jwks/${jwksId}`);
  expect(await failure(project.uri, await token())).toBe('the token is not accepted here');
});

async function branchId({ id }: Project): Promise<string> {
  return (await program.api('GET', `/projects/${id}/branches`)).body.branches[0].id;
}

async function forged(): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256');
  const claims = new SignJWT({ aud: 'shop', sub: 'eve' }).setProtectedHeader({ alg: 'ES256', kid });
  return claims.setExpirationTime('1m').sign(privateKey);
}

async function unsigned(): Promise<string> {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const claims = { aud: 'shop', sub: 'eve', exp: Math.floor(Date.now() / 1_000) + 60 };
  return `${encode({ alg: 'none' })}.${encode(claims)}.`;
}
