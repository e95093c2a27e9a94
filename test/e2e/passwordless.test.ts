/** psql without a password, through the whole program with two proxies: the link it prints, and what the link opens. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { psqlVersion } from '../helpers/proxy.ts';

let program: Program;
let projectId: string;
let endpointId: string;
let cookie: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  program = await Program.create({ CATNAP_PROXIES: '2' });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'passwordless' } });
  projectId = body.project.id;
  endpointId = body.endpoints[0].id;
  const reply = await post('session', { api_key: await program.apiKey() });
  cookie = String(reply.headers.get('set-cookie')).split(';')[0] ?? '';
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});
afterAll(() => program.destroy());

const post = (path: string, body: object) =>
  fetch(`http://127.0.0.1:${program.httpPort}/console/${path}`, {
    method: 'POST',
    headers: { 'x-catnap-console': '1', 'content-type': 'application/json', ...(cookie && { cookie }) },
    body: JSON.stringify(body),
  });

const confirm = (token: string, change: object = {}) =>
  post('logins/confirm', {
    token,
    project_id: projectId,
    endpoint_id: endpointId,
    role_name: 'neondb_owner',
    database_name: 'neondb',
    ...change,
  });

/** psql on `localhost`, which names no endpoint. */
function psql(query: string) {
  const child = spawn('psql', ['-h', 'localhost', '-p', String(program.pgPort), '-U', 'casey', '-Atc', query], {
    env: { PATH: process.env.PATH, PGSSLMODE: 'require' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  const said = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => {
    said.out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    said.err += chunk;
  });
  const closed = once(child, 'close');
  const tokenOf = () => {
    const token = /\/psql#([\w-]{43})/.exec(said.err)?.[1];
    if (token === undefined) throw new Error(`no link yet: ${said.err}`);
    return token;
  };
  return { child, said, closed, token: () => eventually(tokenOf) };
}

// libpq sends no server name before version 14.
describe.skipIf(psqlVersion < 14)('psql without a password', () => {
  it('waits for a person, and goes on as the role that was chosen', async () => {
    // As many as make sure that both proxies have some.
    const clients = Array.from({ length: 6 }, () => psql("select current_user || ' in ' || current_database()"));
    for (const client of clients) {
      const token = await client.token();
      expect(client.said.err).toContain('NOTICE:  Welcome to Catnap!');
      expect(await (await post('logins/show', { token })).json()).toMatchObject({
        state: 'waiting',
        client_address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
        application_name: 'psql',
        role_name: 'casey',
      });
      expect((await confirm(token)).status).toBe(200);
      expect(await client.closed).toEqual([0, null]);
      expect(client.said.out).toBe('neondb_owner in neondb\n');
      expect(client.said.err).toContain('NOTICE:  Connecting to database neondb as neondb_owner.');
      expect((await confirm(token)).status).toBe(404);
    }
  });

  it('is told that it was refused', async () => {
    const client = psql('select 1');
    await post('logins/refuse', { token: await client.token() });
    expect(await client.closed).toEqual([2, null]);
    expect(client.said.err).toContain('FATAL:  the login was refused in the console');
  });

  it('takes its link along when it leaves', async () => {
    const client = psql('select 1');
    const token = await client.token();
    client.child.kill('SIGINT');
    await client.closed;
    await eventually(async () => expect((await post('logins/show', { token })).status).toBe(404));
    expect((await confirm(token)).status).toBe(404);
  });

  it('does not get in where the compute or an address list forbids it', async () => {
    const endpoint = `/projects/${projectId}/endpoints/${endpointId}`;
    await program.api('PATCH', endpoint, { endpoint: { passwordless_access: false } });
    const off = psql('select 1');
    const refused = await confirm(await off.token());
    expect([refused.status, await refused.json()]).toEqual([
      422,
      expect.objectContaining({ message: expect.stringContaining('passwordless_access of this compute is off') }),
    ]);
    await program.api('PATCH', endpoint, { endpoint: { passwordless_access: true } });
    const settings = (ips: string[]) => ({ project: { settings: { allowed_ips: { ips } } } });
    await program.api('PATCH', `/projects/${projectId}`, settings(['192.0.2.1']));
    expect((await confirm(await off.token())).status).toBe(200);
    await off.closed;
    expect(off.said.err).toMatch(/FATAL: {2}This IP address \S+ is not allowed/);
    await program.api('PATCH', `/projects/${projectId}`, settings([]));
  });

  it('is told when the password was changed by SQL, which Catnap does not learn', async () => {
    const made = await program.api('POST', `/projects/${projectId}/branches/${await branchId()}/roles`, {
      role: { name: 'by_hand' },
    });
    await program.settle(projectId);
    const client = psql('select 1');
    const token = await client.token();
    const owner = new pg.Client({
      host: '127.0.0.1',
      port: program.pgPort,
      user: 'by_hand',
      password: made.body.role.password,
      database: 'neondb',
      options: `endpoint=${endpointId}`,
    });
    await owner.connect();
    await owner.query("alter role by_hand password 'another'");
    await owner.end();
    expect((await confirm(token, { role_name: 'by_hand' })).status).toBe(200);
    await client.closed;
    expect(client.said.err).toContain('FATAL:  the password of role "by_hand" was changed by SQL: reset it first');
  });
});

async function branchId(): Promise<string> {
  return (await program.api('GET', `/projects/${projectId}/branches`)).body.branches[0].id;
}
