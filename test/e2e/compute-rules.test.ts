/** The specification's section 3 row by row, and sections 2.5 and 8, on real servers. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program, type Reply } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let mainBranch: string;
let endpointId: string;
let uri: string;

beforeAll(async () => {
  program = await Program.create({ CATNAP_SUSPEND_MIN_SECONDS: '1' });
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'rules' } });
  projectId = body.project.id;
  mainBranch = body.branch.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, `create table marker as select 'main' as branch`);
});
afterAll(() => program.destroy());

const path = (id = endpointId) => `/projects/${projectId}/endpoints/${id}`;
const patch = (endpoint: object, id?: string): Promise<Reply> => program.api('PATCH', path(id), { endpoint });
const act = (action: string, id?: string): Promise<Reply> => program.api('POST', `${path(id)}/${action}`);
const look = async (id?: string) => (await program.api('GET', path(id))).body.endpoint;
const actionsOf = (reply: Reply) =>
  reply.body.operations.map(
    (operation: { action: string; status: string }) => `${operation.action} ${operation.status}`,
  );
const until = (state: string, id?: string) =>
  eventually(async () => {
    const endpoint = await look(id);
    expect([endpoint.current_state, endpoint.pending_state]).toEqual([state, undefined]);
    return endpoint;
  });

/** A session that stays open, and how it ended. */
async function openSession(): Promise<{ client: pg.Client; ended: Promise<string> }> {
  const client = new pg.Client({ connectionString: uri });
  const ended = new Promise<string>((resolve) => client.on('error', (error) => resolve(error.message)));
  await client.connect();
  return { client, ended };
}

const startTime = () => ask(uri, 'select pg_postmaster_start_time()::text');

describe('section 3: states and transitions', () => {
  it('(none) + create compute -> init, pending active, start_compute running', async () => {
    const { body: made } = await program.api('POST', `/projects/${projectId}/branches`, { branch: { name: 'second' } });
    await program.settle(projectId);
    const created = await program.api('POST', `/projects/${projectId}/endpoints`, {
      endpoint: { branch_id: made.branch.id, type: 'read_write' },
    });
    expect(created.status).toBe(201);
    expect(created.body.endpoint).toMatchObject({ current_state: 'init', pending_state: 'active' });
    expect(created.body.endpoint.last_active).toBeUndefined();
    expect(actionsOf(created)).toEqual(['start_compute running']);
    const again = await program.api('POST', `/projects/${projectId}/endpoints`, {
      endpoint: { branch_id: made.branch.id, type: 'read_write' },
    });
    expect([again.status, again.body.message]).toEqual([409, 'read_write endpoint already exists']);
    const { id } = created.body.endpoint;
    await until('active', id);
    expect(actionsOf(await program.api('DELETE', path(id)))).toEqual(['suspend_compute running']);
    await program.settle(projectId);
    const anew = await program.api('POST', `/projects/${projectId}/endpoints`, {
      endpoint: { branch_id: made.branch.id, type: 'read_write', disabled: true },
    });
    expect(anew.body.endpoint.id).not.toBe(id);
    expect(anew.body.endpoint.host).not.toBe(created.body.endpoint.host);
    expect(actionsOf(await program.api('DELETE', path(anew.body.endpoint.id)))).toEqual([]);
  });

  it('active + inactivity -> idle; a connection resets the timer, an open idle session does not keep it awake', async () => {
    const { client } = await openSession();
    expect(actionsOf(await patch({ suspend_timeout_seconds: 2 }))).toEqual([]);
    const usedAt = Date.now();
    await client.query('select 1');
    await until('idle');
    expect(Date.now() - usedAt).toBeGreaterThan(1_900);
    expect((await look()).suspended_at).toBeDefined();
    await patch({ suspend_timeout_seconds: 0 });
  });

  it('active + inactivity, while a query runs or a transaction is open -> active', async () => {
    await patch({ suspend_timeout_seconds: 1 });
    const { client } = await openSession();
    await client.query('begin');
    expect(await ask(uri, 'select pg_sleep(3)')).toBe('');
    expect((await look()).current_state).toBe('active');
    await client.query('commit');
    await client.end();
    await until('idle');
    await patch({ suspend_timeout_seconds: 0 });
  });

  it('idle + a connection -> active', async () => {
    expect(await ask(uri, 'select branch from marker')).toBe('main');
    const endpoint = await until('active');
    expect(endpoint.started_at).toBeDefined();
    await eventually(async () => expect((await look()).last_active).toBeDefined());
  });

  it('idle + start -> active; start when active and suspend when idle do nothing', async () => {
    expect(actionsOf(await act('suspend'))).toEqual(['suspend_compute running']);
    await until('idle');
    expect(actionsOf(await act('suspend'))).toEqual([]);
    expect(actionsOf(await act('start'))).toEqual(['start_compute running']);
    await until('active');
    expect(actionsOf(await act('start'))).toEqual([]);
  });

  it('active + restart -> active, connections are interrupted', async () => {
    const { ended } = await openSession();
    const before = await startTime();
    const reply = await act('restart');
    expect(actionsOf(reply)).toEqual(['suspend_compute running', 'start_compute scheduling']);
    expect(await ended).toMatch(/terminating connection due to administrator command|Connection terminated/);
    await until('active');
    expect(await startTime()).not.toBe(before);
  });

  it('idle + restart -> rejected, with the state', async () => {
    await act('suspend');
    await until('idle');
    const { status, body } = await act('restart');
    expect([status, body.message]).toEqual([412, 'only an active endpoint can be restarted; state:"idle"']);
  });

  it.each(['idle', 'active'])(
    '%s + update branch_id -> pending idle, apply_config and suspend_compute',
    async (state) => {
      if (state === 'active') await ask(uri, 'select 1');
      const current = (await until(state)).branch_id;
      const { body: branches } = await program.api('GET', `/projects/${projectId}/branches`);
      const target = branches.branches.find((branch: { id: string }) => branch.id !== current).id;
      const reply = await patch({ branch_id: target });
      expect(actionsOf(reply)).toEqual(['apply_config running', 'suspend_compute scheduling']);
      expect(reply.body.endpoint).toMatchObject({ current_state: state, pending_state: 'idle', branch_id: target });
      await until('idle');
      await patch({ branch_id: mainBranch });
      await until('idle');
    },
  );

  it.each([
    ['fixed size', { autoscaling_limit_min_cu: 1, autoscaling_limit_max_cu: 1 }],
    ['min and max', { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 2 }],
  ])('active + update of %s -> one restart, connections are dropped', async (_, size) => {
    const { client, ended } = await openSession();
    await client.query('create table if not exists kept (n int)');
    await client.query('insert into kept values (1)');
    const { generation } = await generationOf();
    const reply = await patch(size);
    expect(actionsOf(reply)).toEqual(['apply_config running']);
    await ended;
    await program.settle(projectId);
    await until('active');
    expect((await generationOf()).generation, 'exactly one restart').toBe(generation + 1);
    expect(Number(await ask(uri, 'select count(*) from kept'))).toBeGreaterThan(0);
    expect(actionsOf(await patch(size)), 'a change that is no change does nothing').toEqual([]);
  });
});

/** How often the server was started, as its command line has it. */
async function generationOf(): Promise<{ generation: number }> {
  return { generation: Number(await ask(uri, `select current_setting('catnap.generation')`)) };
}

describe('sections 2.5 and 8: sizes and limits', () => {
  it.each([
    [0.25, 0.25, '112', 128, 786_432],
    [0.5, 0.5, '225', 128, 1_572_864],
    [1, 1, '450', 128, 3_145_728],
    [2, 2, '901', 230, 6_291_456],
    [0.25, 2, '901', 230, 6_291_456],
    [8, 8, '3604', 909, 25_165_824],
    [9, 9, '4000', 1_008, 28_311_552],
    [56, 56, '4000', 1_032, 176_160_768],
  ])(
    '%d–%d CU: max_connections %s, shared_buffers %d MB, and caches of 75 percent of memory (%d kB)',
    async (min, max, connections, buffers, cacheKb) => {
      await patch({ autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max });
      await program.settle(projectId);
      expect(await ask(uri, 'show max_connections')).toBe(connections);
      const inKb = (name: string) => ask(uri, `select pg_size_bytes(current_setting('${name}')) / 1024`);
      expect(Number(await inKb('shared_buffers')) / 1024).toBe(buffers);
      // It follows the size while the server runs; where sizes are not enforced it is that of the largest.
      const { limits_enforced: enforced, current_cu: cu } = await look();
      expect(Number(await inKb('effective_cache_size'))).toBe(enforced ? (cacheKb * cu) / max : cacheKb);
      expect(cu).toBe(enforced ? min : undefined);
      expect(await ask(uri, 'show max_worker_processes')).toBe(String(13 + Math.floor(2 * max)));
      const maintenanceKb = Math.max(Math.floor((min * 4 * 1024 ** 3 * 1024) / 63_963_136), 65_536);
      expect(Number(await inKb('maintenance_work_mem'))).toBe(maintenanceKb);
    },
  );

  it('a compute larger than the machine runs, and the log says so', () => {
    expect(program.output).toContain('"maxCu":56');
    expect(program.output).toContain('the compute is larger than this machine');
  });

  it('the plan limits the size; a smaller plan applies at the next restart', async () => {
    const { body } = await program.api('GET', '/users/me/organizations');
    const setPlan = (plan: string) => program.api('PATCH', `/organizations/${body.organizations[0].id}`, { plan });
    await patch({ autoscaling_limit_min_cu: 4, autoscaling_limit_max_cu: 4 });
    await program.settle(projectId);
    expect((await setPlan('free')).status).toBe(200);
    const refused = await patch({ autoscaling_limit_max_cu: 8 });
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'invalid request: autoscaling_limit_min_cu must be at most 2 on the plan "free"',
    ]);
    expect((await patch({ suspend_timeout_seconds: 600 })).body.message).toMatch(
      /suspend_timeout_seconds.*plan "free"/,
    );
    expect(await ask(uri, 'show max_connections')).toBe('1802');
    expect((await look()).pending_update).toEqual({ autoscaling_limit_max_cu: 2 });
    await act('restart');
    await program.settle(projectId);
    expect(await ask(uri, 'show max_connections')).toBe('901');
    expect((await look()).pending_update).toBeUndefined();
    await setPlan('scale');
  });
});

describe('settings', () => {
  it('are reloaded where that is enough, and restart the server where it is not', async () => {
    await patch({ autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 0.25 });
    await program.settle(projectId);
    const { generation } = await generationOf();
    await patch({ settings: { pg_settings: { work_mem: '7MB' } } });
    await program.settle(projectId);
    expect(await ask(uri, 'show work_mem')).toBe('7MB');
    expect((await generationOf()).generation).toBe(generation);
    await patch({ settings: { pg_settings: { work_mem: '7MB', max_locks_per_transaction: '80' } } });
    await program.settle(projectId);
    expect(await ask(uri, 'show max_locks_per_transaction')).toBe('80');
    expect((await generationOf()).generation).toBe(generation + 1);
  });

  it('are refused in the words of Postgres before anything changes', async () => {
    const bad = await patch({ settings: { pg_settings: { work_mem: 'lots' } } });
    expect(bad.status).toBe(400);
    expect(bad.body.message).toBe(
      'invalid request: body.endpoint.settings.pg_settings: invalid value for parameter "work_mem": "lots"',
    );
    expect((await look()).settings.pg_settings).toEqual({ work_mem: '7MB', max_locks_per_transaction: '80' });
    const huge = await patch({ settings: { pg_settings: { max_locks_per_transaction: '2147483647' } } });
    expect(huge.body.message).toMatch(/memory/);
  });
});

it('names the build that a compute runs', async () => {
  const version = (await ask(uri, 'show server_version')).split(' ')[0] ?? '';
  const endpoint = await look();
  expect(endpoint.compute_release_version.startsWith(version)).toBe(true);
  expect(endpoint.pending_update).toBeUndefined();
});

it('keeps its log small, whatever a session logs, and shows it', async () => {
  const flood = `do $$ begin for i in 1..5000 loop raise log '% %', i, repeat('x', 10000); end loop; end $$`;
  await ask(uri, flood);
  const folder = join(program.home.path, 'projects', projectId, 'endpoints', endpointId);
  await eventually(async () => {
    const sizes = await Promise.all(['server.log', 'server.log.1'].map((name) => stat(join(folder, name))));
    expect(sizes.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(5 * 1024 ** 2);
  });
  await ask(uri, `do $$ begin raise log 'after the flood'; end $$`);
  await eventually(async () => {
    const { logs } = (await program.api('GET', `${path()}/logs?limit=1000`)).body;
    const last = logs.findLast(({ message }: { message: string }) => message.startsWith('after the flood'));
    expect(last).toMatchObject({ source: 'session', process: 'client backend', level: 'LOG' });
  });
});

it('a disabled compute sleeps and refuses connections and starts', async () => {
  await ask(uri, 'select 1');
  expect(actionsOf(await patch({ disabled: true }))).toEqual(['suspend_compute running']);
  await until('idle');
  await expect(ask(uri, 'select 1')).rejects.toThrow(/disabled/);
  expect((await act('start')).status).toBe(412);
  await patch({ disabled: false });
  expect(await ask(uri, 'select 1')).toBe('1');
});

it('a compute without a pooler refuses its pooled host, and serves its direct one', async () => {
  const pooled = uri.replace(endpointId, `${endpointId}-pooler`);
  expect(await ask(pooled, 'select 1')).toBe('1');
  expect((await patch({ pooler_enabled: false })).body.endpoint.pooler_enabled).toBe(false);
  await expect(ask(pooled, 'select 1')).rejects.toMatchObject({
    code: '55000',
    message: expect.stringContaining('pooling is disabled'),
  });
  expect(await ask(uri, 'select 1')).toBe('1');
  await patch({ pooler_enabled: true });
  expect(await ask(pooled, 'select 1')).toBe('1');
});

it('a project that blocks public connections admits this machine, unless its list does not', async () => {
  const set = (settings: object) => program.api('PATCH', `/projects/${projectId}`, { project: { settings } });
  expect((await set({ block_public_connections: true })).status).toBe(200);
  expect(await ask(uri, 'select 1')).toBe('1');
  await set({ allowed_ips: { ips: ['198.51.100.7'] } });
  await expect(ask(uri, 'select 1')).rejects.toMatchObject({
    code: '42501',
    message: expect.stringContaining('is not allowed'),
  });
  await set({ block_public_connections: false, allowed_ips: { ips: [] } });
  expect(await ask(uri, 'select 1')).toBe('1');
});

it('a compute that moves ten times always serves the branch it is on', async () => {
  const { body: made } = await program.api('POST', `/projects/${projectId}/branches`, { branch: { name: 'other' } });
  await program.settle(projectId);
  const other = made.branch.id;
  await patch({ branch_id: other });
  await ask(uri, `update marker set branch = 'other'`);
  for (let round = 0; round < 10; round++) {
    const [target, expected] = round % 2 === 0 ? [mainBranch, 'main'] : [other, 'other'];
    expect((await patch({ branch_id: target })).status).toBe(200);
    expect(await ask(uri, 'select branch from marker')).toBe(expected);
  }
});
