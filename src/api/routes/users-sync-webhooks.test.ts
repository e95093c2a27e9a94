import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeApi } from '../../../test/helpers/contract.ts';
import {
  type Followed,
  makeProviderElsewhere,
  type ProviderElsewhere,
} from '../../../test/helpers/provider-elsewhere.ts';
import { UsersSync } from '../../reconcilers/users-sync.ts';

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

describe('a webhook', () => {
  test('makes the user it names be read, and its users reach the database', async () => {
    const ada = elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'Ada' });
    expect((await elsewhere.tell(one.webhook, 'user.created', { id: ada.id, display_name: 'a lie' })).statusCode).toBe(
      204,
    );
    await elsewhere.turn();
    expect(await changes()).toEqual([{ kind: 'created', userId: ada.id, name: 'Ada' }]);
    expect(elsewhere.standIn.calls).toEqual([`GET /users/${ada.id}`]);
    await new UsersSync({ core: elsewhere.api.core, driver: elsewhere.driver, log: elsewhere.log }).turn();
    const [row] = await elsewhere.api.core.database.sql`
      select i.synced_seq = c.seq as done
      from auth_integrations i join auth_user_changes c on c.project_id = i.provider_project_id`;
    expect(row?.done).toBe(true);
  });

  test('that is repeated, late or out of order never lets an older state win', async () => {
    const ada = elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'Ada' });
    const old = { ...ada };
    await elsewhere.tell(one.webhook, 'user.created', old);
    await elsewhere.turn();
    ada.display_name = 'Ada L.';
    await elsewhere.tell(one.webhook, 'user.updated', ada);
    await elsewhere.turn();
    await elsewhere.tell(one.webhook, 'user.created', old);
    await elsewhere.tell(one.webhook, 'user.created', old);
    await elsewhere.turn();
    one.project.users.delete(String(ada.id));
    await elsewhere.tell(one.webhook, 'user.deleted', { id: ada.id, teams: [] });
    await elsewhere.tell(one.webhook, 'user.updated', old);
    await elsewhere.turn();
    await elsewhere.tell(one.webhook, 'user.created', old);
    await elsewhere.turn();
    expect(await kinds()).toEqual([
      ['created', 'Ada'],
      ['updated', 'Ada L.'],
      ['deleted', null],
    ]);
    // Even if the provider shows it again.
    one.project.users.set(String(ada.id), ada);
    await elsewhere.tell(one.webhook, 'user.updated', ada);
    await elsewhere.makePollDue();
    await elsewhere.turn();
    expect(await kinds()).toHaveLength(3);
  });

  test('of something else than users is taken and does nothing', async () => {
    expect((await elsewhere.tell(one.webhook, 'team.created', { id: randomUUID() })).statusCode).toBe(204);
    await elsewhere.turn();
    expect(elsewhere.standIn.calls).toEqual([]);
    expect((await elsewhere.tell(one.webhook, 'user.created', { id: 'no uuid' })).statusCode).toBe(400);
  });

  test('that is not genuine is the same 404 as one for nobody', async () => {
    const id = randomUUID();
    const other = `whsec_${Buffer.from('another secret').toString('base64')}`;
    const old = new Date(Date.now() - 6 * 60_000);
    const early = new Date(Date.now() + 6 * 60_000);
    const payload = '{"type":"user.created"}';
    const replies = [
      await elsewhere.tell({ ...one.webhook, url: `http://x/auth/webhooks/${randomUUID()}` }, 'user.created', { id }),
      await elsewhere.tell({ ...one.webhook, url: 'http://x/auth/webhooks/nonsense' }, 'user.created', { id }),
      await elsewhere.tell({ ...one.webhook, secret: other }, 'user.created', { id }),
      await elsewhere.tell(one.webhook, 'user.created', { id }, old),
      await elsewhere.tell(one.webhook, 'user.created', { id }, early),
      await elsewhere.api.app.inject({ method: 'POST', url: new URL(one.webhook.url).pathname, payload }),
      await elsewhere.api.app.inject({ method: 'POST', url: new URL(one.webhook.url).pathname }),
    ];
    for (const reply of replies) {
      expect([reply.statusCode, reply.json().message]).toEqual([404, replies[0]?.json().message]);
    }
    expect(await elsewhere.api.core.database.sql`select from auth_user_hints`).toHaveLength(0);
  });

  test('is bounded in size and, from strangers, in number', async () => {
    const url = new URL(one.webhook.url).pathname;
    const big = await elsewhere.api.app.inject({ method: 'POST', url, payload: 'x'.repeat(2 * 1024 * 1024) });
    expect(big.statusCode).toBe(413);
    const limited = await makeApi({ rateLimitPerMinute: 700 });
    // At once: more would be allowed while they wait for each other.
    const replies = await Promise.all(Array.from({ length: 70 }, () => limited.app.inject({ method: 'POST', url })));
    await limited.close();
    expect([...new Set(replies.map(({ statusCode }) => statusCode))]).toEqual([404, 429]);
  });
});

test('a user made and deleted over the API is read without a webhook', async () => {
  const base = `/api/v2/projects/${one.projectId}`;
  const body = { project_id: one.projectId, auth_provider: 'stack', email: 'ada@example.com', name: 'Ada' };
  const made = await elsewhere.api.call('POST', '/api/v2/projects/auth/user', { body });
  expect(made.statusCode).toBe(201);
  const { id } = made.json();
  await elsewhere.turn();
  expect((await elsewhere.api.call('DELETE', `${base}/auth/users/${id}`)).statusCode).toBe(204);
  await elsewhere.turn();
  expect(await kinds()).toEqual([
    ['created', 'Ada'],
    ['deleted', null],
  ]);
});

test('users of an integration that is taken up again are all read, and webhooks meanwhile are no failure', async () => {
  const path = `/api/v2/projects/${one.projectId}/auth/integration/stack`;
  expect((await elsewhere.api.call('DELETE', path)).statusCode).toBe(200);
  const ada = elsewhere.standIn.addUser(one.project, 'ada@example.com', { display_name: 'Ada' });
  expect((await elsewhere.tell(one.webhook, 'user.created', ada)).statusCode).toBe(204);
  await elsewhere.turn();
  expect(await kinds()).toEqual([]);
  expect((await elsewhere.integrate(one.projectId, one.branchId)).project).toBe(one.project);
  await elsewhere.turn();
  expect(await kinds()).toEqual([['created', 'Ada']]);
  // A project that was deleted meanwhile is made anew, with a webhook of its own.
  await elsewhere.api.call('DELETE', path);
  elsewhere.standIn.projects.delete(one.project.id);
  one = await elsewhere.integrate(one.projectId, one.branchId);
  const bob = elsewhere.standIn.addUser(one.project, 'bob@example.com', { display_name: 'Bob' });
  await elsewhere.turn();
  bob.display_name = 'Robert';
  expect((await elsewhere.tell(one.webhook, 'user.updated', bob)).statusCode).toBe(204);
  await elsewhere.turn();
  expect(await kinds()).toEqual([
    ['created', 'Bob'],
    ['updated', 'Robert'],
  ]);
});
