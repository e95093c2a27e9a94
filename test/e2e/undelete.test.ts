/** A deleted project with all it had: brought back, purged, and gone by itself when its time is up. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLayout, socketFile } from '../../src/compute/local/host/home/layout.ts';
import { AuthApp } from '../helpers/auth-app.ts';
import { keyHeaders } from '../helpers/auth-provider.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const day = 86_400_000;
let program: Program;
let app: AuthApp;
/** On a branch of its own. */
let devUri: string;
let devPath: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  app = await AuthApp.create(program, 'shop');
  await app.ask('create table orders as select generate_series(1, 1000) as id');
  await app.ask(`create role reader login password 'reader secret'`);
  await app.ask('grant select on orders to reader');
  expect((await app.signUp('ann@example.com')).status).toBe(200);
  const made = await program.api('POST', `${app.path}/branches`, {
    branch: { name: 'dev' },
    endpoints: [{ type: 'read_write' }],
  });
  devPath = `${app.path}/branches/${made.body.branch.id}`;
  devUri = app.uri.replaceAll(app.endpointId, made.body.endpoints[0].id);
  await program.settle(app.projectId);
  expect(await ask(devUri, 'select count(*) from orders')).toBe('1000');
});
afterAll(() => program.destroy());

function uriOf(endpointId: string, role: string, password: string): string {
  const uri = new URL(app.uri.replaceAll(app.endpointId, endpointId));
  uri.username = role;
  uri.password = password;
  return uri.toString();
}

function signIn(email: string): Promise<Response> {
  const { base_url: base, auth_provider_project_id: id, pub_client_key: key } = app.keys;
  return fetch(`${base}/api/v1/auth/password/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...keyHeaders('client', id, key) },
    body: JSON.stringify({ email, password: 'correct horse battery' }),
  });
}

const home = () => createLayout(program.home.path);
const projectFolder = () => join(home().projects, app.projectId);
const serversOfProject = () => program.serverPids(`/${app.projectId}/`);

/** As if everything had been deleted that much earlier: the clock of the machine is not ours to move. */
async function letPass(ms: number): Promise<void> {
  const { system, systemSocketDirectory } = home();
  const password = await readFile(join(system, 'password'), 'utf8');
  const sql = postgres({
    path: socketFile(systemSocketDirectory),
    username: 'catnap',
    password,
    database: 'catnap',
    max: 1,
  });
  try {
    for (const table of ['projects', 'branches', 'endpoints']) {
      await sql`
        update catnap.${sql(table)} set deleting_at = deleting_at - ${ms} * interval '1 ms',
          recoverable_until = recoverable_until - ${ms} * interval '1 ms'
        where recoverable_until is not null`;
    }
  } finally {
    await sql.end();
  }
}

const remove = async (path: string) => expect((await program.api('DELETE', path)).status).toBe(200);
const recover = (path: string) => program.api('POST', `${path}/recover`);

describe('a deleted project', () => {
  it('takes no connection, runs no server, and keeps its data', async () => {
    await remove(app.path);
    for (const uri of [app.uri, devUri]) {
      await expect(ask(uri, 'select 1')).rejects.toThrow(/password authentication failed/);
    }
    await eventually(async () => expect(await serversOfProject()).toEqual([]));
    expect(existsSync(projectFolder())).toBe(true);
    const { projects } = (await program.api('GET', '/projects?recoverable=true')).body;
    expect(projects.map(({ id }: { id: string }) => id)).toEqual([app.projectId]);
  });

  it('comes back with its connection strings, data, roles and users', async () => {
    expect((await recover(app.path)).status).toBe(200);
    expect(await app.ask('select count(*) from orders')).toBe('1000');
    expect(await ask(devUri, 'select count(*) from orders')).toBe('1000');
    expect(await ask(uriOf(app.endpointId, 'reader', 'reader secret'), 'select max(id) from orders')).toBe('1000');
    expect((await signIn('ann@example.com')).status).toBe(200);
    expect((await app.signUp('bob@example.com')).status).toBe(200);
    await eventually(async () => expect(await app.count('bob@example.com')).toBe('1'));
    expect(await app.count('ann@example.com')).toBe('1');
  });

  it('is stopped, and comes back, although Catnap was killed right after the deletion', async () => {
    await remove(app.path);
    await program.killHard();
    await program.start();
    await eventually(async () => expect(await serversOfProject()).toEqual([]));
    expect((await recover(app.path)).status).toBe(200);
    expect(await app.ask('select count(*) from orders')).toBe('1000');
  });
});

describe('a deleted branch', () => {
  it('comes back with its compute', async () => {
    await remove(devPath);
    await expect(ask(devUri, 'select 1')).rejects.toThrow(/password authentication failed/);
    expect((await recover(devPath)).status).toBe(200);
    expect(await ask(devUri, 'select count(*) from orders')).toBe('1000');
  });

  it('is gone after seven days, with its directory', async () => {
    const { branches } = (await program.api('GET', `${app.path}/branches`)).body;
    const folder = join(projectFolder(), 'branches');
    expect(await readdir(folder)).toHaveLength(branches.length);
    await remove(devPath);
    await letPass(7 * day);
    expect((await recover(devPath)).status).toBe(404);
    await eventually(async () => expect(await readdir(folder)).toEqual([app.branchId]));
  });
});

it('seven days after its deletion a project is gone, and its space is free', async () => {
  await remove(app.path);
  await letPass(7 * day);
  expect((await recover(app.path)).status).toBe(404);
  await eventually(async () => expect(existsSync(projectFolder())).toBe(false));
  await eventually(async () => expect(await readdir(home().trash)).toEqual([]));
  expect(await serversOfProject()).toEqual([]);
  expect((await program.api('GET', '/deleted')).body.deleted).toEqual([]);
  // The provider's project went with it.
  await eventually(async () => expect((await signIn('ann@example.com')).status).not.toBe(200));
});
