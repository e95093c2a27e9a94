import { afterAll, beforeAll, expect, test } from 'vitest';
import { basic, keyHeaders } from '../../../test/helpers/auth-provider.ts';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.close());

test('the operator reads the mails of the auth provider, nobody else does', async () => {
  const stack = (url: string, headers: Record<string, string>, payload: object) =>
    api.app.inject({ method: 'POST', url: `/stack/api/v1${url}`, headers, payload });
  const made = (await stack('/integrations/neon/projects/provision', basic, { display_name: 'shop' })).json();
  for (const name of ['ada', 'bob']) {
    await stack('/auth/password/sign-up', keyHeaders('client', made.project_id), {
      email: `${name}@example.com`,
      password: 'correct horse',
      verification_callback_url: 'http://localhost:3000/verify',
    });
  }
  const { mails } = (await api.call('GET', '/api/v2/outbox?limit=1')).json();
  expect(mails).toMatchObject([{ to: 'bob@example.com', status: 'stored', auth_provider_project_name: 'shop' }]);
  expect(mails[0].text).toMatch(/http:\/\/localhost:3000\/verify\?code=[0-9a-z]{45}/);
  const next = (await api.call('GET', `/api/v2/outbox?before=${mails[0].id}`)).json();
  expect(next.mails.map((mail: { to: string }) => mail.to)).toEqual(['ada@example.com']);
  expect((await api.call('GET', '/api/v2/outbox', { token: api.strangerToken })).statusCode).toBe(403);
  expect((await api.call('GET', '/api/v2/outbox?limit=0')).statusCode).toBe(400);
});
