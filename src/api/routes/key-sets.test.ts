/** Key sets of third parties: what can be added, the roles that come with it, and deletion. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let projectId: string;
let branchId: string;
const good = { jwks_url: 'https://keys.example.com/jwks.json', provider_name: 'Clerk' };

beforeAll(async () => {
  api = await makeApi({ privateKeySets: false });
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  projectId = made.project.id;
  branchId = made.branch.id;
});
afterAll(() => api.close());

const path = (rest = '') => `/api/v2/projects/${projectId}/jwks${rest}`;
const add = (body: object) => api.call('POST', path(), { body });
const list = async () => (await api.call('GET', path())).json().jwks;
const rolesOf = async (branch: string) =>
  (await api.call('GET', `/api/v2/projects/${projectId}/branches/${branch}/roles`)).json().roles;

describe('a key set', () => {
  test('is added with its roles, listed and deleted', async () => {
    const reply = await add(good);
    expect(reply.statusCode).toBe(201);
    const { jwks, operations } = reply.json();
    expect(jwks).toMatchObject({ ...good, project_id: projectId });
    expect(jwks.role_names).toEqual(['authenticator', 'authenticated', 'anonymous']);
    expect(jwks).not.toHaveProperty('branch_id');
    expect(operations.map(({ action }: { action: string }) => action)).toEqual(['apply_config']);
    expect((await rolesOf(branchId)).map(({ name }: { name: string }) => name)).toEqual([
      'neondb_owner',
      'authenticator',
      'authenticated',
      'anonymous',
    ]);
    expect(await list()).toEqual([jwks]);
    const removed = await api.call('DELETE', path(`/${jwks.id}`));
    expect([removed.statusCode, removed.json()]).toEqual([200, jwks]);
    expect(await list()).toEqual([]);
    expect((await api.call('DELETE', path(`/${jwks.id}`))).statusCode).toBe(404);
  });

  test('makes roles that may not make databases or roles, and leaves those that exist as they are', async () => {
    const rows = await api.core.database.sql<{ name: string; limited: boolean }[]>`
      select name, limited from roles where branch_id = ${branchId} order by id`;
    expect(rows.map(({ name, limited }) => [name, limited])).toEqual([
      ['neondb_owner', false],
      ['authenticator', true],
      ['authenticated', true],
      ['anonymous', true],
    ]);
    const again = (await add({ ...good, role_names: ['neondb_owner', 'authenticated'] })).json();
    expect(again.operations).toEqual([]);
    await api.call('DELETE', path(`/${again.jwks.id}`));
  });

  test('may be for one branch, some roles, one audience, and without making roles', async () => {
    const wanted = { ...good, branch_id: branchId, jwt_audience: 'shop', role_names: ['visitor'] };
    const { jwks, operations } = (await add({ ...wanted, skip_role_creation: true })).json();
    expect(jwks).toMatchObject(wanted);
    expect(operations).toEqual([]);
    expect((await rolesOf(branchId)).map(({ name }: { name: string }) => name)).not.toContain('visitor');
    await api.call('DELETE', path(`/${jwks.id}`));
  });

  test.each([
    [{ jwks_url: 'http://keys.example.com/' }, 'body.jwks_url must start with https://'],
    [{ jwks_url: 'https://169.254.169.254/' }, 'body.jwks_url must not be an address of this machine'],
    [{ jwks_url: 'nothing' }, 'body.jwks_url must be a URL'],
    [{ role_names: ['pg_monitor'] }, 'body.role_names must not start with pg_'],
    [{ role_names: ['catnap_admin'] }, 'body.role_names must not start with pg_ nor be one of'],
    [{ provider_name: '' }, 'body.provider_name'],
    [{ branch_id: 'BR' }, 'body.branch_id'],
    [{ role_names: Array.from({ length: 11 }, (_, at) => `r${at}`) }, 'body.role_names'],
    [{ more: 1 }, 'more'],
  ])('with %j is a 400 that names the field', async (change, message) => {
    const reply = await add({ ...good, ...change });
    expect([reply.statusCode, reply.json().message]).toEqual([400, expect.stringContaining(message)]);
    expect(await list()).toEqual([]);
  });

  test('needs a branch of the project, and a project that stores passwords', async () => {
    expect((await add({ ...good, branch_id: 'br-none-1' })).statusCode).toBe(404);
    const body = { project: { store_passwords: false } };
    const other = (await api.call('POST', '/api/v2/projects', { body })).json();
    const reply = await api.call('POST', `/api/v2/projects/${other.project.id}/jwks`, { body: good });
    expect([reply.statusCode, reply.json().message]).toEqual([422, expect.stringContaining('store_passwords')]);
  });

  test('is one of twenty at most', async () => {
    const quiet = { ...good, skip_role_creation: true };
    for (let count = 0; count < 20; count++) expect((await add(quiet)).statusCode).toBe(201);
    expect((await add(quiet)).statusCode).toBe(422);
  });
});
