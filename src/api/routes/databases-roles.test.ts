import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { selectPrimariesByPassword } from '../../db/logins.ts';
import { buildVerifier, isPasswordOf } from '../../lib/scram-verifier.ts';

let api: TestApi;
let branch: string;
beforeAll(async () => {
  api = await makeApi();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  branch = `/api/v2/projects/${made.project.id}/branches/${made.branch.id}`;
});
afterAll(() => api.close());

const createDatabase = (name: string, owner = 'neondb_owner') =>
  api.call('POST', `${branch}/databases`, { body: { database: { name, owner_name: owner } } });
const createRole = (role: object) => api.call('POST', `${branch}/roles`, { body: { role } });

describe('databases', () => {
  test('create, list, get, change, delete', async () => {
    const made = await createDatabase('Größe 1/2');
    expect(made.statusCode).toBe(201);
    expect(made.json().operations.map((o: { action: string }) => o.action)).toEqual(['apply_config']);
    const path = `${branch}/databases/${encodeURIComponent('Größe 1/2')}`;
    expect((await api.call('GET', path)).json()).toEqual({ database: made.json().database });
    expect((await api.call('GET', `${branch}/databases`)).json().databases).toHaveLength(2);
    await createRole({ name: 'heir' });
    const changed = await api.call('PATCH', path, { body: { database: { name: 'plain', owner_name: 'heir' } } });
    expect(changed.json().database).toMatchObject({ name: 'plain', owner_name: 'heir' });
    expect((await api.call('GET', path)).statusCode).toBe(404);
    const removed = await api.call('DELETE', `${branch}/databases/plain`);
    expect([removed.statusCode, removed.json().database.name]).toEqual([200, 'plain']);
    expect((await api.call('DELETE', `${branch}/databases/plain`)).statusCode).toBe(404);
  });

  test('errors', async () => {
    const taken = await createDatabase('neondb');
    expect([taken.statusCode, taken.json().message]).toEqual([409, 'database already exists; database_name:"neondb"']);
    const orphan = await createDatabase('orphan', 'nobody');
    expect([orphan.statusCode, orphan.json().message]).toEqual([404, 'database owner not found; role_name:"nobody"']);
    expect((await createDatabase('template1')).statusCode).toBe(400);
    expect((await createDatabase('ä'.repeat(40))).json().message).toContain('63 bytes');
    const unknown = await api.call('GET', `${branch}/databases/none`);
    expect(unknown.json().message).toBe('database not found');
    expect((await api.call('PATCH', `${branch}/databases/none`, { body: { database: {} } })).statusCode).toBe(404);
  });
});

describe('roles', () => {
  test('the password is shown when it is made, and where it is asked for', async () => {
    const made = await createRole({ name: 'reader' });
    expect(made.statusCode).toBe(201);
    const { role } = made.json();
    expect(role).toMatchObject({ name: 'reader', protected: false, authentication_method: 'password' });
    expect(role.password).toMatch(/^npg_/);
    const listed = (await api.call('GET', `${branch}/roles`)).json().roles;
    expect(listed.map((item: object) => 'password' in item)).not.toContain(true);
    expect((await api.call('GET', `${branch}/roles/reader`)).json().role.password).toBeUndefined();
    for (const method of ['GET', 'POST'] as const) {
      expect((await api.call(method, `${branch}/roles/reader/reveal_password`)).json()).toEqual({
        password: role.password,
      });
    }
    const reset = await api.call('POST', `${branch}/roles/reader/reset_password`);
    expect(reset.json().role.password).not.toBe(role.password);
    const shown = (await api.call('GET', `${branch}/roles/reader/reveal_password`)).json();
    expect(shown).toEqual({ password: reset.json().role.password });
    expect((await api.call('DELETE', `${branch}/roles/reader`)).json().role.name).toBe('reader');
    expect((await api.call('DELETE', `${branch}/roles/reader`)).statusCode).toBe(404);
  });

  test('a role without a login has no password', async () => {
    const { role } = (await createRole({ name: 'group', no_login: true })).json();
    expect(role.password).toBeUndefined();
    expect(role.authentication_method).toBe('no_login');
    expect((await api.call('GET', `${branch}/roles/group/reveal_password`)).statusCode).toBe(412);
    expect((await api.call('POST', `${branch}/roles/group/reset_password`)).statusCode).toBe(422);
  });

  test('a password can be given, or a verifier of one that is known to nobody here', async () => {
    await createRole({ name: 'given' });
    const path = `${branch}/roles/given`;
    const reset = (password: string) => api.call('POST', `${path}/reset_password`, { body: { password } });
    const reveal = async () => (await api.call('GET', `${path}/reveal_password`)).json();
    const verifierOf = async (name: string) => {
      const { roles } = (await api.call('GET', `${branch}/role_verifiers`)).json();
      return roles.find((role: { name: string }) => role.name === name)?.verifier;
    };
    expect((await reset('chosen')).json().role.password).toBe('chosen');
    expect(await reveal()).toEqual({ password: 'chosen' });
    expect(await isPasswordOf(await verifierOf('given'), 'chosen')).toBe(true);
    // A chosen one must not lead anybody to the branch by itself.
    const mark = api.core.box.markOf('chosen');
    expect(await selectPrimariesByPassword(api.core.database.sql, 'given', mark)).toEqual([]);
    const verifier = buildVerifier('elsewhere');
    const taken = await reset(verifier);
    expect([taken.statusCode, taken.json().role.password]).toEqual([200, undefined]);
    expect(await verifierOf('given')).toBe(verifier);
    expect((await api.call('GET', `${path}/reveal_password`)).statusCode).toBe(412);
    for (const bad of [
      '',
      'a\0b',
      'SCRAM-SHA-256$4096:x$y:z',
      `md5${'0'.repeat(32)}`,
      buildVerifier('x', undefined, 1).replace('$1:', '$999999:'),
    ]) {
      expect([bad, (await reset(bad)).statusCode]).toEqual([bad, 400]);
    }
    expect((await api.call('POST', `${path}/reset_password`)).json().role.password).toMatch(/^npg_/);
  });

  test('errors', async () => {
    const taken = await createRole({ name: 'neondb_owner' });
    expect([taken.statusCode, taken.json().message]).toEqual([409, 'role already exists; role_name:"neondb_owner"']);
    expect((await createRole({ name: 'pg_read_all_data' })).statusCode).toBe(400);
    expect((await api.call('DELETE', `${branch}/roles/neondb_owner`)).statusCode).toBe(409);
    const none = await api.call('GET', `${branch}/roles/none/reveal_password`);
    expect([none.statusCode, none.json().message]).toEqual([404, 'role not found']);
  });
});
