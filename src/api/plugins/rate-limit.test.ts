import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let nowMs = Date.UTC(2026, 0, 1);
const clock = { now: () => new Date(nowMs) };
let api: TestApi;
beforeAll(async () => {
  api = await makeApi({ rateLimitPerMinute: 60 }, clock);
});
afterAll(() => api.close());

async function statuses(count: number, path: string, token?: string): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < count; i++) {
    seen.push((await api.call('GET', path, token === undefined ? {} : { token })).statusCode);
  }
  return seen;
}
const refused = (seen: readonly number[]) => seen.filter((status) => status === 429).length;

describe('limits per key', () => {
  test('forty requests at once to one route, and another route has its own forty', async () => {
    expect(refused(await statuses(42, '/api/v2/regions'))).toBe(2);
    const reply = await api.call('GET', '/api/v2/regions');
    expect(reply.headers['retry-after']).toBe('1');
    expect(reply.json()).toMatchObject({ code: '', message: 'too many requests' });
    expect(refused(await statuses(5, '/api/v2/auth'))).toBe(0);
  });

  test('so many a minute over all routes, refilled over time; other keys do not suffer', async () => {
    nowMs += 3_600_000;
    expect(refused([...(await statuses(35, '/api/v2/regions')), ...(await statuses(35, '/api/v2/auth'))])).toBe(10);
    expect(refused(await statuses(1, '/api/v2/regions', api.strangerToken))).toBe(0);
    nowMs += 1_000;
    expect(refused(await statuses(2, '/api/v2/auth'))).toBe(1);
  });

  test('keys of an organization are made ten a second', async () => {
    nowMs += 3_600_000;
    const seen: number[] = [];
    for (let i = 0; i < 12; i++) {
      seen.push(
        (await api.call('POST', '/api/v2/organizations/org-x/api_keys', { body: { key_name: 'k' } })).statusCode,
      );
    }
    expect(refused(seen)).toBe(2);
  });
});

describe('guessing', () => {
  test('an address that fails too often is refused before its key is looked at, but keys that worked go on working', async () => {
    nowMs += 3_600_000;
    await api.call('GET', '/api/v2/auth');
    const guesses = await statuses(32, '/api/v2/auth', 'napi_guess');
    expect(guesses.filter((status) => status === 401)).toHaveLength(30);
    expect(refused(guesses)).toBe(2);
    expect(refused(await statuses(1, '/api/v2/auth'))).toBe(0);
    const elsewhere = await api.app.inject({
      url: '/api/v2/auth',
      headers: { authorization: 'Bearer napi_guess' },
      remoteAddress: '192.0.2.7',
    });
    expect(elsewhere.statusCode).toBe(401);
    nowMs += 2_000;
    expect(refused(await statuses(1, '/api/v2/auth', 'napi_guess'))).toBe(0);
  });
});

test('without a limit nothing is refused', async () => {
  const free = await makeApi({ rateLimitPerMinute: undefined });
  for (let i = 0; i < 60; i++) expect((await free.call('GET', '/api/v2/regions')).statusCode).toBe(200);
  for (let i = 0; i < 40; i++) expect((await free.call('GET', '/api/v2/auth', { token: 'no' })).statusCode).toBe(401);
  await free.close();
});
