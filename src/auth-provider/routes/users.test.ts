import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';

let provider: TestAuthProvider;
let project: ProvisionedProject;
let other: ProvisionedProject;
beforeAll(async () => {
  provider = await makeAuthProvider();
  other = await provider.provision('other');
});
beforeEach(async () => {
  project = await provider.provision();
});
afterAll(() => provider.close());

const create = async (body: object = {}) => (await provider.call('POST', '/users', project.server, body)).body;
const changes = () => provider.core.database.sql<{ seq: number; kind: string; userId: string; userJson: object }[]>`
  select seq, kind, user_id, user_json from stack_user_changes where project_id = ${project.id} order by seq`;

describe('users of the server API', () => {
  test('are made, read, changed and removed, and each change is in the log', async () => {
    const made = await provider.call('POST', '/users', project.server, {
      display_name: 'Ada',
      primary_email: ' Ada@Example.com'.trim(),
      primary_email_auth_enabled: true,
      password: 'correct horse',
      server_metadata: { plan: 'pro' },
    });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      display_name: 'Ada',
      primary_email: 'ada@example.com',
      primary_email_verified: false,
      primary_email_auth_enabled: true,
      has_password: true,
      auth_with_email: true,
      is_anonymous: false,
      is_restricted: false,
      restricted_reason: null,
      server_metadata: { plan: 'pro' },
      risk_scores: { sign_up: { bot: 0, free_trial_abuse: 0 } },
    });
    const path = `/users/${made.body.id}`;
    expect((await provider.call('GET', path, project.server)).body).toEqual(made.body);
    const changed = await provider.call('PATCH', path, project.server, {
      display_name: '',
      client_metadata: [1, null],
    });
    expect(changed.body).toMatchObject({ display_name: null, client_metadata: [1, null] });
    expect((await provider.call('DELETE', path, project.server, {})).body).toEqual({ success: true });
    const gone = await provider.call('GET', path, project.server);
    expect([gone.status, gone.body.code]).toEqual([404, 'USER_NOT_FOUND']);
    const log = await changes();
    expect(log.map(({ kind }) => kind)).toEqual(['created', 'updated', 'deleted']);
    expect(log.map(({ userJson }) => userJson)).toEqual([made.body, changed.body, { id: made.body.id, teams: [] }]);
    expect(JSON.stringify(log)).not.toContain('argon2');
  });

  test('need nothing: an empty body makes a user without an address', async () => {
    expect(await create()).toMatchObject({ display_name: null, primary_email: null, has_password: false });
  });

  test('are not seen from another project', async () => {
    const { id } = await create();
    for (const [method, body] of [['GET'], ['PATCH', { display_name: 'x' }], ['DELETE', {}]] as const) {
      const reply = await provider.call(method, `/users/${id}`, other.server, body);
      expect([reply.status, reply.body.code]).toEqual([404, 'USER_NOT_FOUND']);
    }
    expect(await changes()).toHaveLength(1);
  });

  test('share an address only where at most one signs in with it', async () => {
    const email = { primary_email: 'same@example.com' };
    await create(email);
    const holder = await create({ ...email, primary_email_auth_enabled: true });
    const twice = await provider.call('POST', '/users', project.server, { ...email, primary_email_auth_enabled: true });
    expect([twice.status, twice.body.code]).toEqual([409, 'USER_EMAIL_ALREADY_EXISTS']);
    expect(twice.body.details).toEqual({ email: 'same@example.com', would_work_if_email_was_verified: false });
    const third = await create(email);
    const stolen = await provider.call('PATCH', `/users/${third.id}`, project.server, {
      primary_email_auth_enabled: true,
    });
    expect(stolen.status).toBe(409);
    await provider.call('PATCH', `/users/${holder.id}`, project.server, { primary_email: 'moved@example.com' });
    const now = await provider.call('PATCH', `/users/${third.id}`, project.server, {
      primary_email_auth_enabled: true,
    });
    expect(now.status).toBe(200);
  });

  test('lose the verification of an address with the address', async () => {
    const { id } = await create({ primary_email: 'a@example.com', primary_email_verified: true });
    const moved = await provider.call('PATCH', `/users/${id}`, project.server, { primary_email: 'b@example.com' });
    expect(moved.body.primary_email_verified).toBe(false);
  });

  test.each([
    ['an address that is none', { primary_email: 'nobody' }, 'SCHEMA_ERROR'],
    ['an unknown attribute', { nickname: 'x' }, 'SCHEMA_ERROR'],
    ['a name that is too long', { display_name: 'x'.repeat(257) }, 'SCHEMA_ERROR'],
    ['a password that is too long', { password: 'x'.repeat(71) }, 'SCHEMA_ERROR'],
    ['a wrong type', { primary_email_verified: 'yes' }, 'SCHEMA_ERROR'],
    ['NUL', { display_name: 'a\u0000b' }, 'SCHEMA_ERROR'],
    ['half a character', { server_metadata: { a: '\ud800' } }, 'SCHEMA_ERROR'],
    ['a picture that is a script', { profile_image_url: 'javascript:alert(1)' }, 'SCHEMA_ERROR'],
    ['metadata as deep as a well', { server_metadata: JSON.parse('['.repeat(100) + ']'.repeat(100)) }, 'SCHEMA_ERROR'],
    ['verified without an address', { primary_email_verified: true }, undefined],
    ['two passwords', { password: 'a', password_hash: '$2a$10$x' }, undefined],
    ['a hash', { password_hash: '$2a$10$x' }, undefined],
    ['a reason without a restriction', { restricted_by_admin_reason: 'x' }, undefined],
  ])('are not made with %s', async (_name, body, code) => {
    const reply = await provider.call('POST', '/users', project.server, body);
    expect([reply.status, reply.body.code]).toEqual([400, code]);
    expect(await changes()).toEqual([]);
  });
});

describe('the list of users', () => {
  const ids = (reply: { body: { items: { id: string }[] } }) => reply.body.items.map(({ id }) => id);

  test('goes in pages, both ways', async () => {
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) made.push((await create({ display_name: `user ${i}` })).id);
    const all = await provider.call('GET', '/users', project.server);
    expect([ids(all), all.body.pagination.next_cursor]).toEqual([made, null]);
    const walk = async (query: string) => {
      const seen: string[] = [];
      for (let cursor = ''; ; ) {
        const page = await provider.call('GET', `/users?limit=2${query}${cursor}`, project.server);
        seen.push(...ids(page));
        if (page.body.pagination.next_cursor === null) return seen;
        cursor = `&cursor=${page.body.pagination.next_cursor}`;
      }
    };
    expect(await walk('')).toEqual(made);
    expect(await walk('&desc=true&order_by=signed_up_at')).toEqual([...made].reverse());
  });

  test('finds by id, name and address, taking signs as they are', async () => {
    const ada = await create({ display_name: 'Ada_100%', primary_email: 'ada@example.com' });
    const bob = await create({ display_name: 'Bob', primary_email: 'bob@example.com' });
    const find = async (text: string) =>
      ids(await provider.call('GET', `/users?query=${encodeURIComponent(text)}`, project.server));
    expect(await find('ada')).toEqual([ada.id]);
    expect(await find('EXAMPLE.COM')).toEqual([ada.id, bob.id]);
    expect(await find(bob.id)).toEqual([bob.id]);
    expect(await find('a_1')).toEqual([ada.id]);
    expect(await find('%')).toEqual([ada.id]);
    expect(await find("' or true --")).toEqual([]);
  });

  test('leaves anonymous and restricted users out until asked for them', async () => {
    const plain = await create();
    const anonymous = await create({ is_anonymous: true });
    const restricted = await create({ restricted_by_admin: true, restricted_by_admin_reason: 'spam' });
    expect(restricted).toMatchObject({
      is_restricted: true,
      restricted_reason: { type: 'restricted_by_administrator' },
    });
    const list = async (query: string) => ids(await provider.call('GET', `/users${query}`, project.server));
    expect(await list('')).toEqual([plain.id]);
    expect(await list('?include_restricted=true')).toEqual([plain.id, restricted.id]);
    expect(await list('?include_anonymous=true&only_anonymous=true')).toEqual([anonymous.id]);
    expect((await provider.call('GET', '/users?only_anonymous=true', project.server)).status).toBe(400);
    for (const bad of ['limit=0', 'limit=x', 'cursor=1', 'order_by=name', 'team_id=x']) {
      expect([bad, (await provider.call('GET', `/users?${bad}`, project.server)).status]).toEqual([bad, 400]);
    }
  });
});

test('numbers in the log rise in the order of the commits, also under a crowd', async () => {
  const seen: number[] = [];
  let isDone = false;
  // A follower that continues from the last number must miss no user.
  const follow = (async () => {
    for (;;) {
      const last = isDone;
      const rows = await provider.core.database.sql<{ seq: number }[]>`
        select seq from stack_user_changes where project_id = ${project.id} and seq > ${seen.at(-1) ?? 0} order by seq`;
      seen.push(...rows.map(({ seq }) => seq));
      if (last) return;
    }
  })();
  await Promise.all(Array.from({ length: 60 }, (_, at) => create({ display_name: `crowd ${at}` })));
  isDone = true;
  await follow;
  expect(seen).toEqual((await changes()).map(({ seq }) => seq));
  expect(seen).toHaveLength(60);
});

test('a listener hears the project of each change', async () => {
  const heard: string[] = [];
  const unlisten = await provider.core.database.listen('stack_user_changes', (payload) => heard.push(payload));
  await create();
  await expect.poll(() => heard).toContain(project.id);
  await unlisten();
});
