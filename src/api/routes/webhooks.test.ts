import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { insertDelivery } from '../../../test/helpers/webhooks.ts';

let api: TestApi;
let path: string;

beforeAll(async () => {
  api = await makeApi({ privateKeySets: false });
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  path = `/api/v2/projects/${made.project.id}/webhooks`;
});
afterAll(() => api.close());

const hook = { url: 'https://example.com/hook', events: ['operation.ended'] };

test('made with a secret that is shown once and sealed, changed, listed, deleted', async () => {
  const made = (await api.call('POST', path, { body: { webhook: hook } })).json();
  expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
  expect(made.webhook).toMatchObject({ ...hook, enabled: true });
  const [row] = await api.core.database.sql`select secret from webhooks where id = ${made.webhook.id}`;
  expect(Buffer.from(row?.secret).includes(made.secret)).toBe(false);
  const member = `${path}/${made.webhook.id}`;
  const change = { webhook: { events: ['quota.near', 'backup.late'], enabled: false } };
  expect((await api.call('PATCH', member, { body: change })).json().webhook).toMatchObject({
    url: hook.url,
    events: ['quota.near', 'backup.late'],
    enabled: false,
  });
  const listed = (await api.call('GET', path)).json();
  expect(listed.webhooks).toHaveLength(1);
  expect(JSON.stringify(listed)).not.toContain(made.secret);
  expect((await api.call('DELETE', member)).json().webhook.id).toBe(made.webhook.id);
  expect((await api.call('GET', path)).json()).toEqual({ webhooks: [] });
  expect((await api.call('DELETE', member)).statusCode).toBe(404);
});

test.each([
  [{ url: 'http://example.com/' }, 'body.webhook.url must start with https://'],
  [{ url: 'https://127.0.0.1/' }, 'body.webhook.url must not be an address of this machine or of a private network'],
  [{ url: 'https://localhost/' }, 'body.webhook.url must not be an address of this machine or of a private network'],
  [{ url: 'https://a:b@example.com/' }, 'body.webhook.url must have no user, password or fragment'],
  [{ url: 'not a URL' }, 'body.webhook.url must be a URL'],
  [{ events: [] }, 'body.webhook.events must have 1 to 4 items'],
  [{ events: ['all'] }, 'body.webhook.events[0] must be one of operation.ended, compute.woke, quota.near, backup.late'],
])('refused with %o, made or changed', async (bad, message) => {
  const expected = [400, `invalid request: ${message}`];
  const made = await api.call('POST', path, { body: { webhook: { ...hook, ...bad } } });
  expect([made.statusCode, made.json().message]).toEqual(expected);
  const { webhook } = (await api.call('POST', path, { body: { webhook: hook } })).json();
  const changed = await api.call('PATCH', `${path}/${webhook.id}`, { body: { webhook: bad } });
  expect([changed.statusCode, changed.json().message]).toEqual(expected);
  await api.call('DELETE', `${path}/${webhook.id}`);
});

test('not to Catnap’s own port, which other guards let through', async () => {
  const own = await makeApi({ privateKeySets: false, publicUrl: 'https://catnap.example.com' });
  const made = (await own.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  const webhook = { ...hook, url: 'http://catnap.example.com/api/v2/projects' };
  const refused = await own.call('POST', `/api/v2/projects/${made.project.id}/webhooks`, { body: { webhook } });
  expect(refused.statusCode).toBe(400);
  await own.close();
});

test('at most 20, with a log that is read in part', async () => {
  const ids: string[] = [];
  for (let at = 0; at < 20; at++) {
    ids.push((await api.call('POST', path, { body: { webhook: hook } })).json().webhook.id);
  }
  const refused = await api.call('POST', path, { body: { webhook: hook } });
  expect([refused.statusCode, refused.json().message]).toEqual([422, 'webhooks limit exceeded; limit:"20"']);
  const [first = '', second = ''] = ids;
  const delivery = await insertDelivery(api, first);
  await insertDelivery(api, first);
  expect((await api.call('GET', `${path}/${first}/deliveries?limit=1`)).json().deliveries).toHaveLength(1);
  expect((await api.call('GET', `${path}/${first}/deliveries`)).json().deliveries).toHaveLength(2);
  // Of another webhook of the same project.
  expect((await api.call('POST', `${path}/${second}/deliveries/${delivery}/replay`)).statusCode).toBe(404);
});
