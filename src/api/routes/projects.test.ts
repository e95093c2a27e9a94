import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

const base = '/api/v2/projects';
const create = (project: object = {}) => api.call('POST', base, { body: { project } });

describe('create', () => {
  test('gives everything that is needed to connect, and the operations that make it true', async () => {
    const reply = await create();
    expect(reply.statusCode).toBe(201);
    const body = reply.json();
    expect(body.project).toMatchObject({ name: body.project.id, pg_version: 17, store_passwords: true });
    expect(body.branch).toMatchObject({ name: 'main', current_state: 'init', pending_state: 'ready', default: true });
    expect(body.branch.primary).toBe(true);
    expect(body.branch.parent_id).toBeUndefined();
    expect(body.endpoints).toHaveLength(1);
    expect(body.endpoints[0]).toMatchObject({ type: 'read_write', current_state: 'init', pending_state: 'active' });
    expect(body.endpoints[0].last_active).toBeUndefined();
    expect(body.operations.map((o: Record<string, string>) => [o.action, o.status])).toEqual([
      ['create_timeline', 'running'],
      ['start_compute', 'scheduling'],
    ]);
    const { connection_parameters: parameters } = body.connection_uris[0];
    expect(parameters).toMatchObject({ database: 'neondb', role: 'neondb_owner', host: body.endpoints[0].host });
    expect(body.roles[0]).toMatchObject({ name: 'neondb_owner', password: parameters.password });
    expect(body.project.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test('takes every attribute of the contract', async () => {
    const org = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
    const body = (
      await create({
        name: 'all of it',
        region_id: 'local',
        pg_version: 18,
        store_passwords: false,
        history_retention_seconds: 3600,
        provisioner: 'k8s-neonvm',
        org_id: org,
        settings: {
          quota: { active_time_seconds: 10 },
          allowed_ips: { ips: ['10.0.0.0/8'] },
          enable_logical_replication: true,
          maintenance_window: { weekdays: [1, 2], start_time: '01:00', end_time: '02:00' },
          block_public_connections: true,
          block_vpc_connections: false,
          hipaa: false,
          preload_libraries: { use_defaults: true, enabled_libraries: [] },
        },
        default_endpoint_settings: {
          autoscaling_limit_min_cu: 1,
          autoscaling_limit_max_cu: 2,
          suspend_timeout_seconds: 600,
          pg_settings: { work_mem: '8MB' },
        },
        branch: { name: 'root', database_name: 'shop', role_name: 'keeper', annotations: { team: 'cats' } },
      })
    ).json();
    expect(body.project).toMatchObject({
      name: 'all of it',
      pg_version: 18,
      store_passwords: false,
      provisioner: 'k8s-neonvm',
    });
    expect(body.project.settings).toMatchObject({
      quota: { active_time_seconds: 10 },
      allowed_ips: { ips: ['10.0.0.0/8'], protected_branches_only: false },
      preload_libraries: { use_defaults: true, enabled_libraries: [] },
      block_public_connections: true,
    });
    expect(body.endpoints[0]).toMatchObject({
      autoscaling_limit_min_cu: 1,
      autoscaling_limit_max_cu: 2,
      suspend_timeout_seconds: 600,
    });
    expect(body.databases[0]).toMatchObject({ name: 'shop', owner_name: 'keeper' });
    const listed = (await api.call('GET', `${base}/${body.project.id}/branches`)).json();
    expect(listed.annotations[body.branch.id].value).toEqual({ team: 'cats' });
    const shown = await api.call(
      'GET',
      `${base}/${body.project.id}/connection_uri?database_name=shop&role_name=keeper`,
    );
    expect(shown.statusCode).toBe(412);
  });

  test('neonctl’s body is fine; an unknown organization is a 404', async () => {
    expect((await create({ name: 'x', branch: {} })).statusCode).toBe(201);
    expect((await create({ org_id: 'org-of-somebody' })).statusCode).toBe(404);
  });
});

describe('Idempotency-Key', () => {
  const send = (key: string, body: object, path = base, token = api.token) =>
    api.call('POST', path, { body, token, headers: { 'idempotency-key': key } });

  test('a repeat gets the very same reply, another body is a 422', async () => {
    const first = await send('k1', { project: { name: 'once' } });
    const second = await send('k1', { project: { name: 'once' } });
    expect([second.statusCode, second.json()]).toEqual([201, first.json()]);
    expect((await send('k1', { project: { name: 'twice' } })).statusCode).toBe(422);
  });

  test('belongs to one key and one path', async () => {
    const first = (await send('k2', { project: {} })).json();
    const other = (await send('k2', { project: {} }, base, api.strangerToken)).json();
    expect(other.project.id).not.toBe(first.project.id);
    const made = await create();
    const branches = (id: string) => send('k2', {}, `${base}/${id}/branches`);
    const one = (await branches(first.project.id)).json();
    const two = (await branches(made.json().project.id)).json();
    expect(two.branch.project_id).not.toBe(one.branch.project_id);
  });

  test('a failed request leaves no mark', async () => {
    expect((await send('k3', { project: { region_id: 'moon' } })).statusCode).toBe(400);
    expect((await send('k3', { project: {} })).statusCode).toBe(201);
    expect((await send('x'.repeat(256), { project: {} })).statusCode).toBe(400);
  });

  test('forty at once with four keys make four projects', async () => {
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, i) => send(`p${i % 4}`, { project: { name: 'same' } })),
    );
    expect(replies.map((reply) => reply.statusCode)).toEqual(Array(40).fill(201));
    expect(new Set(replies.map((reply) => reply.json().project.id)).size).toBe(4);
  });
});

describe('read, change, delete', () => {
  test('get shows the owner', async () => {
    const { project } = (await create()).json();
    const shown = (await api.call('GET', `${base}/${project.id}`)).json().project;
    expect(shown.owner).toMatchObject({ name: 'Admin', subscription_type: 'scale' });
    expect(shown).toMatchObject({ id: project.id, org_id: project.org_id });
  });

  test('update keeps what is left out', async () => {
    const { project } = (await create({ name: 'before', settings: { allowed_ips: { ips: ['10.0.0.1'] } } })).json();
    const reply = await api.call('PATCH', `${base}/${project.id}`, {
      body: { project: { name: 'after', settings: { block_public_connections: true }, history_retention_seconds: 60 } },
    });
    expect(reply.statusCode).toBe(200);
    const { project: changed, operations } = reply.json();
    expect(changed).toMatchObject({ name: 'after', history_retention_seconds: 60 });
    expect(changed.settings).toMatchObject({ block_public_connections: true, allowed_ips: { ips: ['10.0.0.1'] } });
    expect(operations).toMatchObject([{ action: 'apply_storage_config' }]);
    const bad = await api.call('PATCH', `${base}/${project.id}`, { body: { project: { pg_version: 18 } } });
    expect(bad.json().message).toBe('invalid request: body.project.pg_version is not a known attribute');
  });

  test('a deleted project is gone from the API', async () => {
    const { project } = (await create()).json();
    const reply = await api.call('DELETE', `${base}/${project.id}`);
    expect(Object.keys(reply.json())).toEqual(['project']);
    for (const method of ['GET', 'DELETE'] as const) {
      const again = await api.call(method, `${base}/${project.id}`);
      expect([again.statusCode, again.json().message]).toEqual([404, 'project not found']);
    }
    expect((await api.call('PATCH', `${base}/${project.id}`, { body: { project: {} } })).statusCode).toBe(404);
  });

  test('connection_uri', async () => {
    const { project, branch, endpoints } = (await create()).json();
    const ask = (query: string) =>
      api.call('GET', `${base}/${project.id}/connection_uri?role_name=neondb_owner&database_name=neondb${query}`);
    expect((await ask('')).json().uri).toContain(`endpoint%3D${endpoints[0].id}`);
    expect((await ask('&pooled=True')).json().uri).toContain(`${endpoints[0].id}-pooler`);
    expect((await ask(`&pooled=0&branch_id=${branch.id}&endpoint_id=${endpoints[0].id}`)).json().uri).not.toContain(
      'pooler',
    );
    expect((await ask('&branch_id=br-none')).json().message).toBe('branch not found');
    const missing = await api.call('GET', `${base}/${project.id}/connection_uri?role_name=x&database_name=neondb`);
    expect([missing.statusCode, missing.json().message]).toEqual([404, 'role not found']);
  });
});

describe('list', () => {
  test('pages until a page is short, the way neonctl walks them', async () => {
    const other = await makeApi();
    const ids = new Set<string>();
    for (let i = 0; i < 5; i++) {
      ids.add((await other.call('POST', base, { body: { project: { name: `n${i}` } } })).json().project.id);
    }
    const seen: string[] = [];
    let cursor = '';
    for (let pages = 0; pages < 10; pages++) {
      const page = (await other.call('GET', `${base}?limit=2${cursor && `&cursor=${cursor}`}`)).json();
      expect([page.applications, page.integrations]).toEqual([{}, {}]);
      seen.push(...page.projects.map((project: { id: string }) => project.id));
      if (page.projects.length < 2) break;
      cursor = page.pagination.cursor;
    }
    expect(new Set(seen)).toEqual(ids);
    expect(seen).toHaveLength(5);
    const end = (await other.call('GET', `${base}?cursor=zzz`)).json();
    expect(end).toEqual({ projects: [], applications: {}, integrations: {} });
    expect((await other.call('GET', `${base}?search=n3`)).json().projects).toHaveLength(1);
    expect((await other.call('GET', `${base}?recoverable=true`)).json().projects).toEqual([]);
    const item = (await other.call('GET', `${base}?limit=1`)).json().projects[0];
    expect(item).toMatchObject({ org_name: 'Catnap', active_time: 0 });
    await other.close();
  });

  test('of an organization that is not the caller’s', async () => {
    expect((await api.call('GET', `${base}?org_id=org-of-somebody`)).statusCode).toBe(404);
  });

  test('shared projects do not exist', async () => {
    expect((await api.call('GET', `${base}/shared?limit=100`)).json()).toEqual({ projects: [] });
  });
});

describe('operations', () => {
  test('newest first, in pages, and each by its id', async () => {
    const { project, operations } = (await create()).json();
    const path = `${base}/${project.id}/operations`;
    const all = (await api.call('GET', path)).json().operations;
    expect(all.map((o: { id: string }) => o.id)).toEqual(operations.map((o: { id: string }) => o.id).reverse());
    const first = (await api.call('GET', `${path}?limit=1`)).json();
    expect(first.pagination.cursor).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const second = (await api.call('GET', `${path}?limit=1&cursor=${first.pagination.cursor}`)).json();
    expect(second.operations).toEqual([all[1]]);
    const third = (await api.call('GET', `${path}?limit=1&cursor=${second.pagination.cursor}`)).json();
    expect(third).toEqual({ operations: [] });
    expect((await api.call('GET', `${path}/${all[0].id}`)).json()).toEqual({ operation: all[0] });
    const none = await api.call('GET', `${path}/00000000-0000-4000-8000-000000000000`);
    expect([none.statusCode, none.json().message]).toEqual([404, 'operation not found']);
  });
});

test('a project says when one of its computes was last used, once it was', async () => {
  const { id } = (await create()).json().project;
  const look = async () => (await api.call('GET', `${base}/${id}`)).json().project;
  expect((await look()).compute_last_active_at).toBeUndefined();
  await api.core.database.sql`update endpoints set last_active = '2026-01-02T03:04:05Z' where project_id = ${id}`;
  expect((await look()).compute_last_active_at).toBe('2026-01-02T03:04:05Z');
  const { projects } = (await api.call('GET', `${base}?search=${id}`)).json();
  expect(projects).toEqual([expect.objectContaining({ compute_last_active_at: '2026-01-02T03:04:05Z' })]);
});

test('a list counts the branches and computes of a project, and the computes that are awake', async () => {
  const { id } = (await create()).json().project;
  const listed = async (query = '') => (await api.call('GET', `${base}?search=${id}${query}`)).json().projects[0];
  const counts = { branches_count: 1, endpoints_count: 1, active_endpoints_count: 0 };
  expect(await listed()).toMatchObject(counts);
  await api.core.database.sql`update endpoints set current_state = 'active' where project_id = ${id}`;
  expect(await listed()).toMatchObject({ ...counts, active_endpoints_count: 1 });
  await api.core.database.sql`update endpoints set deleting_at = now() where project_id = ${id}`;
  expect(await listed()).toMatchObject({ ...counts, endpoints_count: 0 });
  await api.call('DELETE', `${base}/${id}`);
  const deleted = await listed('&recoverable=true');
  expect(deleted.id).toBe(id);
  expect(Object.keys(deleted)).not.toContain('branches_count');
});
