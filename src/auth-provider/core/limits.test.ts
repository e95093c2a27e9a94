/** How often unauthenticated clients may ask, where they can reach the port at all. */
import { expect, test } from 'vitest';
import { makeAuthProvider } from '../../../test/helpers/auth-provider.ts';

test('requests without a secret, or with a wrong one, are limited by address; those with one are not', async () => {
  const guarded = await makeAuthProvider({ clock: { now: () => new Date(0) }, limitsAddresses: true });
  const { client, server } = await guarded.provision();
  const ask = (headers: Record<string, string>) => guarded.call('GET', '/projects/current', headers);
  const wrong = { ...server, 'x-stack-secret-server-key': 'ssk_wrong' };
  for (let i = 0; i < 6; i += 1) {
    const replies = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(n % 2 === 0 ? client : wrong)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 401]));
  }
  for (const headers of [client, wrong, {}]) {
    const refused = await ask(headers);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
  }
  const page = await guarded.call('GET', '/stack/sign-in');
  expect([page.status, page.headers['retry-after'], page.body]).toEqual([429, '1', expect.stringContaining('<h1>')]);
  expect((await ask(server)).status).toBe(200);
  await guarded.close();
});
