import type { ListProjectMembersResponse } from '@neon/sdk/raw';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { insertMember, insertUser } from '../../db/accounts.ts';
import { asOrganizationId, newUserId } from '../../lib/ids.ts';

let api: TestApi;
let org: string;
let project: string;
let admin: string;
let second: string;
beforeAll(async () => {
  api = await makeApi();
  org = (await api.call('GET', '/api/v2/users/me/organizations')).json().organizations[0].id;
  project = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json().project.id;
  admin = (await api.call('GET', '/api/v2/users/me')).json().id;
  // No request can add a member; the lists must be right if there is one.
  const { sql } = api.core.database;
  const user = await insertUser(sql, { id: newUserId(), email: 'a@second.test', login: 'second', name: 'Second' });
  await insertMember(sql, asOrganizationId(org), user.id);
  second = user.id;
});
afterAll(() => api.close());

interface Listed {
  readonly members: readonly { readonly member: { readonly user_id: string } }[];
  readonly pagination: { readonly next?: string; readonly sort_by: string; readonly sort_order: string };
}

async function list(query = ''): Promise<Listed> {
  const reply = await api.call('GET', `/api/v2/organizations/${org}/members${query}`);
  expect(reply.statusCode).toBe(200);
  return reply.json();
}

const idsOf = ({ members }: Listed) => members.map(({ member }) => member.user_id);

describe('members of an organization', () => {
  test('are listed in the order that is asked for', async () => {
    const listed = await list();
    expect(listed.members[1]).toMatchObject({
      member: { id: admin, user_id: admin, org_id: org, role: 'admin' },
      user: { email: expect.stringMatching(/^admin@/) },
    });
    expect(listed.pagination).toEqual({ sort_by: 'joined_at', sort_order: 'DESC' });
    expect(idsOf(listed)).toEqual([second, admin]);
    expect(idsOf(await list('?sort_order=asc'))).toEqual([admin, second]);
    expect(idsOf(await list('?sort_by=email&sort_order=asc'))).toEqual([second, admin]);
  });

  test('come in pages', async () => {
    const page = await list('?limit=1');
    expect(idsOf(page)).toEqual([second]);
    const rest = await list(`?limit=1&cursor=${page.pagination.next}`);
    expect([idsOf(rest), rest.pagination.next]).toEqual([[admin], undefined]);
    const bad = await api.call('GET', `/api/v2/organizations/${org}/members?cursor=nobody`);
    expect([bad.statusCode, bad.json().message]).toEqual([400, expect.stringContaining('query.cursor')]);
  });

  test('are found by the id of their user, those of others are not', async () => {
    const path = `/api/v2/organizations/${org}/members`;
    expect((await api.call('GET', `${path}/${second}`)).json()).toMatchObject({ id: second, role: 'admin' });
    const stranger = (await api.call('GET', '/api/v2/users/me', { token: api.strangerToken })).json().id;
    expect((await api.call('GET', `${path}/${stranger}`)).statusCode).toBe(404);
  });

  test('are not for the key of one project', async () => {
    const body = { key_name: 'one', project_id: project };
    const { key: token } = (await api.call('POST', `/api/v2/organizations/${org}/api_keys`, { body })).json();
    for (const path of [
      `/organizations/${org}/members`,
      `/organizations/${org}/members/${admin}`,
      `/projects/${project}/members`,
    ]) {
      expect([path, (await api.call('GET', `/api/v2${path}`, { token })).statusCode]).toEqual([path, 403]);
    }
  });
});

test('members of a project are those of its organization', async () => {
  const reply = await api.call('GET', `/api/v2/projects/${project}/members`);
  const expected: ListProjectMembersResponse = {
    project_members: [
      {
        member_id: admin,
        user_id: admin,
        email: expect.stringMatching(/^admin@/),
        name: 'Admin',
        org_role: 'admin',
        grant_source: 'org_admin_override',
      },
    ],
    pagination: { sort_by: 'joined_at', sort_order: 'ASC', next: admin },
  };
  const limited = await api.call('GET', `/api/v2/projects/${project}/members?limit=1`);
  expect(limited.json()).toEqual(expected);
  expect(reply.json().project_members).toHaveLength(2);
});
