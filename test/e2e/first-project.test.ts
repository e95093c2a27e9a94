/** From an empty home to a query, with clients that nobody here wrote; then sleep, wake, and a wrong password. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { isInstalled } from '../helpers/tools.ts';

const run = promisify(execFile);
let program: Program;
let projectId: string;
let endpointId: string;
let uri: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { status, body } = await program.api('POST', '/projects', { project: { name: 'first' } });
  expect(status).toBe(201);
  projectId = body.project.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
});
afterAll(() => program.destroy());

async function endpointState(): Promise<string> {
  return (await program.api('GET', `/projects/${projectId}/endpoints/${endpointId}`)).body.endpoint.current_state;
}

async function suspend(): Promise<void> {
  const { status } = await program.api('POST', `/projects/${projectId}/endpoints/${endpointId}/suspend`);
  expect(status).toBe(200);
  await eventually(async () => expect(await endpointState()).toBe('idle'));
}

describe('the first project', () => {
  it('prints what a person needs', async () => {
    expect(program.output).toContain(`http://localhost:${program.httpPort}/api/v2`);
    expect(program.output).toContain(`port ${program.pgPort}`);
    expect(program.output).toContain(program.home.path);
    expect(program.output).toContain(join(program.home.path, 'api-key'));
    // Into a log, which this is, go no secrets.
    expect(program.output).not.toContain(await program.apiKey());
  });

  it('works as printed: the curl line creates a project', async () => {
    const printed = program.output.slice(program.output.indexOf('curl'), program.output.indexOf('Ctrl-C'));
    const { stdout } = await run('sh', ['-c', printed]);
    const made = JSON.parse(stdout).project;
    expect(made.name).toBe('hello');
    expect((await program.api('DELETE', `/projects/${made.id}`)).status).toBe(200);
  });

  it('answers pg', async () => {
    expect(await ask(uri, 'select version()')).toMatch(/^PostgreSQL 17/);
  });

  it('answers postgres', async () => {
    const sql = postgres(uri, { max: 1 });
    const [row] = await sql`select version()`;
    await sql.end();
    expect(row?.version).toMatch(/^PostgreSQL 17/);
  });

  it.skipIf(!isInstalled('psql'))('answers psql, also over TLS with channel binding', async () => {
    const { stdout } = await run('psql', [uri, '-Atc', 'select version()']);
    expect(stdout).toMatch(/^PostgreSQL 17/);
    const strict = `${uri}&sslmode=require&channel_binding=require`;
    const safe = await run('psql', [strict, '-Atc', 'select current_user']);
    expect(safe.stdout.trim()).toBe('neondb_owner');
  });

  it('lets the operator in again after the last key was revoked', async () => {
    const entry = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
    const home = program.home.path;
    const recover = async () =>
      JSON.parse(
        (await run(process.execPath, [entry, 'keys', 'recover', '--json'], { env: { CATNAP_HOME: home } })).stdout,
      ).key;
    const lost = await program.apiKey();
    expect(await recover()).toBe(lost);
    for (const { id } of (await program.api('GET', '/api_keys')).body) await program.api('DELETE', `/api_keys/${id}`);
    expect((await program.api('GET', '/projects')).status).toBe(401);
    const made = await recover();
    expect(made).not.toBe(lost);
    expect(await program.apiKey()).toBe(made);
    expect((await program.api('GET', '/projects')).status).toBe(200);
    const { stdout } = await run('stat', ['-c', '%a', `${home}/api-key`]);
    expect(stdout.trim()).toBe('600');
  });

  it('is active while a process runs, idle when none does', async () => {
    expect(await endpointState()).toBe('active');
    expect(await program.serverPids(endpointId)).toHaveLength(1);
    await suspend();
    expect(await program.serverPids(endpointId)).toHaveLength(0);
  });

  it('wakes for a client, with its data', async () => {
    await ask(uri, 'create table if not exists kept as select 42 as answer');
    await suspend();
    expect(await ask(uri, 'select answer from kept')).toBe('42');
    expect(await endpointState()).toBe('active');
  });

  it('wakes for nobody with a wrong password', async () => {
    await suspend();
    const wrong = uri.replace(/:[^:@]+@/, ':wrong@');
    await expect(ask(wrong, 'select 1')).rejects.toThrow(/password authentication failed/);
    expect(await endpointState()).toBe('idle');
    expect(await program.serverPids(endpointId)).toHaveLength(0);
  });

  it('keeps a password that was changed by SQL over a sleep', async () => {
    await ask(uri, `create role ann login password 'first-secret'`);
    await ask(uri, `alter role ann password 'second-secret'`);
    await suspend();
    const asAnn = uri.replace(/\/\/[^@]+@/, '//ann:second-secret@');
    expect(await ask(asAnn, 'select current_user')).toBe('ann');
  });

  it('serves Postgres 18 on request', async () => {
    const { body } = await program.api('POST', '/projects', { project: { name: 'eighteen', pg_version: 18 } });
    expect(await ask(body.connection_uris[0].connection_uri, 'select version()')).toMatch(/^PostgreSQL 18/);
    await program.removeProject(body.project.id);
  });

  it('leaves nothing of a deleted project', async () => {
    const { body } = await program.api('POST', '/projects', { project: { name: 'short-lived' } });
    await ask(body.connection_uris[0].connection_uri, 'select version()');
    await program.removeProject(body.project.id);
    await eventually(async () => expect(await program.serverPids(body.endpoints[0].id)).toHaveLength(0));
    expect((await program.api('GET', `/projects/${body.project.id}`)).status).toBe(404);
  });

  it('leaves tenants running at Ctrl-C and adopts them at the next start', async () => {
    const client = new pg.Client({ connectionString: uri });
    await client.connect();
    const [server] = await program.serverPids(endpointId);
    client.on('error', () => {});
    expect(await program.stop()).toBe(0);
    expect(await program.serverPids(endpointId)).toEqual([server]);
    await program.start();
    expect(await endpointState()).toBe('active');
    expect(await ask(uri, 'select version()')).toMatch(/^PostgreSQL/);
    expect(await program.serverPids(endpointId)).toEqual([server]);
    expect(program.output).not.toContain(await program.apiKey());
  });

  it('stops tenants too when asked', async () => {
    expect(await program.stop()).toBe(0);
    await program.start(['--stop-computes']);
    const { status } = await program.api('POST', '/projects', { project: { name: 'on the way up' } });
    expect(status).toBe(201);
    expect(await program.stop()).toBe(0);
    expect(await program.serverPids()).toEqual([]);
  });
});
