/** Roles and passwords that an owner changes by SQL count at once, with clients that nobody here wrote. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { neon, neonConfig } from '@neondatabase/serverless';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { isInstalled } from '../helpers/tools.ts';

const run = promisify(execFile);
let program: Program;
let projectId: string;
let uri: string;
let branchId: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'passwords' } });
  projectId = body.project.id;
  branchId = body.branch.id;
  uri = body.connection_uris[0].connection_uri;
  neonConfig.fetchEndpoint = `http://127.0.0.1:${program.httpPort}/sql`;
});
afterAll(() => program.destroy());

const as = (role: string, password: string) => uri.replace(/\/\/[^@]+@/, `//${role}:${password}@`);
const pooled = (text: string) => text.replace(/(options=endpoint%3D[a-z0-9-]+)/, '$1-pooler');
const refused = /password authentication failed for user 'ann'/;

async function askOverHttp(text: string): Promise<unknown> {
  return (await neon(text)`select current_user as who`)[0]?.who;
}

describe('while the compute is awake', () => {
  it('a role made by SQL logs in, by every way', async () => {
    await ask(uri, `create role ann login password 'secret-0'`);
    expect(await ask(as('ann', 'secret-0'), 'select current_user')).toBe('ann');
    await ask(uri, `create role ben login password 'secret-0'`);
    expect(await ask(pooled(as('ben', 'secret-0')), 'select current_user')).toBe('ben');
    await ask(uri, `create role cay login password 'secret-0'`);
    expect(await askOverHttp(as('cay', 'secret-0'))).toBe('cay');
  });

  it('the new password is taken and the old one refused, at the first try', async () => {
    for (let change = 1; change <= 5; change++) {
      await ask(uri, `alter role ann password 'secret-${change}'`);
      // Which of the two comes first must not matter.
      const checks = [
        async () => expect(await ask(as('ann', `secret-${change}`), 'select current_user')).toBe('ann'),
        async () => expect(ask(as('ann', `secret-${change - 1}`), 'select 1')).rejects.toThrow(refused),
      ];
      for (const check of change % 2 === 0 ? checks : checks.reverse()) await check();
    }
  });

  it('so too through the pooled host and over HTTP, whose sessions may be older', async () => {
    expect(await ask(pooled(as('ann', 'secret-5')), 'select 1')).toBe('1');
    await ask(uri, `alter role ann password 'secret-6'`);
    await expect(ask(pooled(as('ann', 'secret-5')), 'select 1')).rejects.toThrow(refused);
    await expect(askOverHttp(as('ann', 'secret-5'))).rejects.toThrow(refused);
    expect(await ask(pooled(as('ann', 'secret-6')), 'select 1')).toBe('1');
    expect(await askOverHttp(as('ann', 'secret-6'))).toBe('ann');
  });

  it('one that was just right over HTTP is refused there a moment later', async () => {
    await ask(uri, `create role fay login password 'before'`);
    expect(await askOverHttp(as('fay', 'before'))).toBe('fay');
    await ask(uri, `alter role fay password 'after'`);
    expect(await askOverHttp(as('fay', 'after'))).toBe('fay');
    await eventually(() => expect(askOverHttp(as('fay', 'before'))).rejects.toThrow(/authentication failed/));
  });

  it('pooled clients that logged in before go on as soon as somebody has proved the new one', async () => {
    await ask(uri, `create role eve login password 'before'`);
    const clients = Array.from({ length: 3 }, () => new pg.Client({ connectionString: pooled(as('eve', 'before')) }));
    const [holder, early, late] = clients;
    for (const client of clients) {
      client.on('error', () => {});
      await client.connect();
    }
    // The only server connection of the pool is taken: whoever comes next needs a new one.
    await holder?.query('begin');
    await ask(uri, `alter role eve password 'after'`);
    await expect(early?.query('select 1')).rejects.toMatchObject({ code: '28P01' });
    expect(await ask(as('eve', 'after'), 'select 1')).toBe('1');
    expect((await late?.query('select current_user as who'))?.rows).toEqual([{ who: 'eve' }]);
    expect((await holder?.query('commit'))?.command).toBe('COMMIT');
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  });

  it.skipIf(!isInstalled('psql'))('psql sees the same, also with channel binding', async () => {
    await ask(uri, `alter role ann password 'secret-7'`);
    const psql = (password: string, more = '') => run('psql', [`${as('ann', password)}${more}`, '-Atc', 'select 1']);
    await expect(psql('secret-6')).rejects.toThrow(refused);
    expect((await psql('secret-7')).stdout.trim()).toBe('1');
    await ask(uri, `alter role ann password 'secret-8'`);
    expect((await psql('secret-8', '&sslmode=require&channel_binding=require')).stdout.trim()).toBe('1');
  });

  it('a role that may not log in, or is dropped, is refused at once', async () => {
    await ask(uri, `create role dan login password 'secret'`);
    const dan = as('dan', 'secret');
    expect(await ask(dan, 'select 1')).toBe('1');
    await ask(uri, 'alter role dan nologin');
    await expect(ask(dan, 'select 1')).rejects.toThrow(/password authentication failed/);
    await ask(uri, 'alter role dan login');
    expect(await ask(dan, 'select 1')).toBe('1');
    await ask(uri, 'drop role dan');
    await expect(ask(dan, 'select 1')).rejects.toThrow(/password authentication failed/);
  });

  it('Catnap’s own roles are nobody to a client', async () => {
    await expect(ask(as('catnap_admin', 'x'), 'select 1')).rejects.toThrow(/password authentication failed/);
  });
});

it('a reset logs out whoever has the old password, whatever they hold open', async () => {
  const path = `/projects/${projectId}/branches/${branchId}/roles/neondb_owner/reset_password`;
  const reset = async () => as('neondb_owner', (await program.api('POST', path)).body.role.password);
  const stolen = await reset();
  await program.settle(projectId);
  const thieves = [stolen, pooled(stolen)].map((text) => new pg.Client({ connectionString: text }));
  for (const thief of thieves) {
    thief.on('error', () => {});
    await thief.connect();
    await thief.query('select 1');
  }
  await thieves[0]?.query(`begin; alter role neondb_owner password 'abcdefgh'`);
  uri = await reset();
  await program.settle(projectId);
  for (const text of [uri, pooled(uri)]) expect(await ask(text, 'select current_user')).toBe('neondb_owner');
  for (const text of [stolen, pooled(stolen)]) await expect(ask(text, 'select 1')).rejects.toThrow(/authentication/);
  // The rightful owner's login must not be of use to a pooled client that logged in before.
  for (const thief of thieves) await eventually(() => expect(thief.query('select 1')).rejects.toThrow());
});

it('a password that was changed by SQL is no longer shown by the API', async () => {
  const before = await ask(uri, 'select 1');
  expect(before).toBe('1');
  await ask(uri, `alter role neondb_owner password 'chosen-by-the-owner'`);
  expect(await ask(as('neondb_owner', 'chosen-by-the-owner'), 'select 1')).toBe('1');
  const path = `/projects/${projectId}/branches/${branchId}/roles/neondb_owner`;
  expect((await program.api('GET', `${path}/reveal_password`)).status).toBe(412);
  const reset = await program.api('POST', `${path}/reset_password`);
  await program.settle(projectId);
  expect(await ask(as('neondb_owner', reset.body.role.password), 'select 1')).toBe('1');
  await expect(ask(as('neondb_owner', 'chosen-by-the-owner'), 'select 1')).rejects.toThrow(/password authentication/);
});
