import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../test/helpers/eventually.ts';
import { type Followed, makeProviderElsewhere, type ProviderElsewhere } from '../../test/helpers/provider-elsewhere.ts';
import { testProviders } from '../../test/helpers/providers.ts';
import { deleteOvertakenUserChanges, selectUsersSyncLag } from '../db/users-sync.ts';
import { UsersSync } from './users-sync.ts';
import { UsersSyncElsewhere } from './users-sync-elsewhere.ts';

let elsewhere: ProviderElsewhere;
let one: Followed;
beforeAll(async () => {
  elsewhere = await makeProviderElsewhere();
});
afterAll(() => elsewhere.close());
beforeEach(async () => {
  await elsewhere.api.core.database.sql`delete from auth_integrations`;
  one = await elsewhere.makeFollowed();
  await elsewhere.turn();
  elsewhere.standIn.calls.length = 0;
  elsewhere.lines.length = 0;
});

const changes = () => elsewhere.changes(one);
const kinds = async () => (await changes()).map(({ kind, name }) => [kind, name]);
const state = async () => {
  const [row] = await elsewhere.api.core.database.sql`
    select follow_error, follow_failures, follow_lease, extract(epoch from follow_until - now())::float8 as wait
    from auth_integrations where provider_project_id = ${one.project.id}`;
  return row;
};

describe('reading all users', () => {
  test('finds, page by page, what no webhook told, and writes nothing when nothing changed', async () => {
    for (let i = 0; i < 450; i++)
      elsewhere.standIn.addUser(one.project, `u${i}@example.com`, { display_name: `u${i}` });
    await elsewhere.turn();
    expect(await changes()).toEqual([]);
    await elsewhere.makePollDue();
    await elsewhere.turn();
    expect(await changes()).toHaveLength(450);
    expect(elsewhere.standIn.calls).toEqual(['GET /users', 'GET /users', 'GET /users']);
    const [first, second, third] = one.project.users.values();
    if (!first || !second || !third) throw new Error('there are no users');
    first.display_name = 'renamed';
    // A new time of activity is no change.
    third.last_active_at_millis = Date.now() + 60_000;
    one.project.users.delete(String(second.id));
    await elsewhere.makePollDue();
    await elsewhere.turn();
    await elsewhere.makePollDue();
    await elsewhere.turn();
    expect((await changes()).slice(450)).toEqual([
      { kind: 'updated', userId: first.id, name: 'renamed' },
      { kind: 'deleted', userId: second.id, name: null },
    ]);
  });

  test('believes that a user is gone only if the provider says so of that user', async () => {
    elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'Ada' });
    await elsewhere.makePollDue();
    await elsewhere.turn();
    const empty = { items: [], is_paginated: true, pagination: { next_cursor: null } };
    await elsewhere.makePollDue();
    elsewhere.standIn.trouble('GET /users', { status: 200, body: empty });
    elsewhere.standIn.trouble('GET /users/', { status: 404, body: 'no such page' });
    await elsewhere.turn();
    expect(await kinds()).toEqual([['created', 'Ada']]);
    expect(await state()).toMatchObject({ followFailures: 1 });
    await elsewhere.makePollDue();
    elsewhere.standIn.trouble('GET /users', { status: 200, body: empty });
    await elsewhere.turn();
    expect(await kinds()).toEqual([['created', 'Ada']]);
    expect(await state()).toMatchObject({ followFailures: 0, followError: null });
  });

  test('goes on later and later after failures, which are logged once', async () => {
    elsewhere.standIn.trouble('GET /users', { status: 503, body: 'tired' }, 3);
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) {
      await elsewhere.makePollDue();
      await elsewhere.turn();
      waits.push(Math.round((await state())?.wait));
      const asked = elsewhere.standIn.calls.length;
      await elsewhere.turn();
      expect(elsewhere.standIn.calls).toHaveLength(asked);
    }
    expect(waits).toEqual([1, 2, 4]);
    expect(elsewhere.lines.filter((line) => line.includes('cannot be read'))).toHaveLength(1);
    const metrics = await elsewhere.api.app.inject({ method: 'GET', url: '/metrics' });
    expect(metrics.body).toMatch(/catnap_users_provider_failing 1/);
  });

  test.each(['a revoked key', 'a project that is gone'])('leaves %s alone for an hour', async (what) => {
    if (what === 'a revoked key') one.project.isAdminKeyRevoked = true;
    else elsewhere.standIn.projects.delete(one.project.id);
    await elsewhere.makePollDue();
    await elsewhere.turn();
    expect(await state()).toMatchObject({ followError: expect.stringMatching(/does not accept the key/) });
    expect((await state())?.wait).toBeGreaterThan(3_500);
    expect(elsewhere.lines.join()).not.toContain(one.project.adminKey);
  });
});

test('a provider that hangs delays no other integration and no stop, and its reader is the only one', async () => {
  const two = await elsewhere.makeFollowed();
  const slow = elsewhere.standIn.addUser(one.project, 'slow@example.com');
  const quick = elsewhere.standIn.addUser(two.project, 'quick@example.com');
  await elsewhere.turn();
  elsewhere.standIn.trouble(`GET /users/${slow.id}`, 'hang');
  await elsewhere.tell(one.webhook, 'user.created', slow);
  const running = elsewhere.follower();
  await running.start();
  await eventually(() => expect(elsewhere.standIn.calls).toContain(`GET /users/${slow.id}`));
  await elsewhere.tell(two.webhook, 'user.created', quick);
  await eventually(async () => expect(await elsewhere.changes(two)).toHaveLength(1));
  await elsewhere.turn();
  expect(elsewhere.standIn.calls.filter((call) => call === `GET /users/${slow.id}`)).toHaveLength(1);
  const begunAt = performance.now();
  await running.stop();
  // Not when the call to the provider is given up, which is after ten seconds.
  expect(performance.now() - begunAt).toBeLessThan(9_000);
  expect(await state()).toMatchObject({ followLease: null, followFailures: 0 });
  await elsewhere.turn();
  expect(await changes()).toHaveLength(1);
});

test('a webhook alone brings a user into the database: no poll is due within the hour', async () => {
  const { core } = elsewhere.api;
  const hour = 3_600_000;
  const reader = elsewhere.follower();
  const copier = new UsersSync({ core, driver: elsewhere.driver, log: elsewhere.log });
  await reader.start(hour);
  await copier.start(hour);
  try {
    for (const email of ['ann@example.com', 'bob@example.com', 'eve@example.com']) {
      const copiesBefore = elsewhere.driver.calls.filter(({ method }) => method === 'syncUsers').length;
      const user = elsewhere.standIn.addUser(one.project, email);
      await elsewhere.tell(one.webhook, 'user.created', user);
      await eventually(async () => {
        expect(elsewhere.driver.calls.filter(({ method }) => method === 'syncUsers').length).toBeGreaterThan(
          copiesBefore,
        );
        expect((await changes()).map(({ userId }) => userId)).toContain(user.id);
        expect(await selectUsersSyncLag(core.database.sql)).toMatchObject({ behind: 0 });
      });
    }
  } finally {
    await reader.stop();
    await copier.stop();
  }
});

test('a reader that has lost its lease writes nothing', async () => {
  const ada = elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'old' });
  await elsewhere.tell(one.webhook, 'user.created', ada);
  const { sql } = elsewhere.api.core.database;
  let isTaken = false;
  const project = testProviders(elsewhere.standIn)
    .clientOf(elsewhere.standIn.url)
    .project(one.project.id, one.project.adminKey);
  const providers = testProviders(elsewhere.standIn);
  const find = project.findUser.bind(project);
  project.findUser = async (id) => {
    const read = await find(id);
    // Another reader continues, and writes something newer.
    if (!isTaken) {
      isTaken = true;
      ada.display_name = 'new';
      await sql`update auth_integrations set follow_until = now() where provider_project_id = ${one.project.id}`;
      await elsewhere.turn();
    }
    return read;
  };
  providers.clientOf(elsewhere.standIn.url).project = () => project;
  await new UsersSyncElsewhere({ core: elsewhere.api.core, providers, log: elsewhere.log }).turn();
  expect(await kinds()).toEqual([['created', 'new']]);
});

test('the last change of every user is kept, and nothing of an integration that is gone', async () => {
  const ada = elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'Ada' });
  await elsewhere.tell(one.webhook, 'user.created', ada);
  await elsewhere.turn();
  ada.display_name = 'Ada L.';
  await elsewhere.tell(one.webhook, 'user.updated', ada);
  await elsewhere.turn();
  const { sql } = elsewhere.api.core.database;
  await deleteOvertakenUserChanges(sql, new Date(Date.now() + 60_000));
  expect(await kinds()).toEqual([['updated', 'Ada L.']]);
  await sql`delete from auth_integrations`;
  await deleteOvertakenUserChanges(sql, new Date(0));
  expect(await kinds()).toEqual([]);
});
