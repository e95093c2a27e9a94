/** Pages ask again what they could not be told while the server was away or not ready, and nothing else. */
import { QueryObserver } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { api } from '../../console/api/client.ts';
import { client } from '../../console/api/query-client.ts';

const answers: (number | 'nobody')[] = [];
let asked = 0;

beforeEach(() => {
  vi.useFakeTimers();
  asked = 0;
  vi.stubGlobal('fetch', async () => {
    asked += 1;
    const status = answers.shift() ?? 200;
    if (status === 'nobody') throw new TypeError('fetch failed');
    return new Response(JSON.stringify({ message: `status ${status}` }), { status });
  });
});

afterEach(() => {
  client.clear();
  answers.length = 0;
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A page that shows one thing; how it stands after so many seconds. */
async function pageAfter(seconds: number, options: { readonly retry?: false } = {}) {
  const queryFn = () => api<{ message: string }>('GET', '/projects');
  const page = new QueryObserver(client, { queryKey: ['shown'], queryFn, ...options });
  const leave = page.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(seconds * 1_000);
  const { data, error } = page.getCurrentResult();
  leave();
  return { data: data?.message, error: error?.message };
}

test.each([
  { name: 'a server that is gone', answer: 'nobody' as const },
  { name: 'a server whose database does not answer yet', answer: 503 },
  { name: 'a proxy in front of a server that is gone', answer: 502 },
])('$name is asked every second until it answers', async ({ answer }) => {
  answers.push(...Array.from({ length: 5 }, () => answer));
  expect(await pageAfter(6.5)).toEqual({ data: 'status 200', error: undefined });
  expect(asked).toBe(6);
});

test.each([404, 403, 500])('a reply with status %i is final', async (status) => {
  answers.push(status);
  expect(await pageAfter(10)).toEqual({ data: undefined, error: `status ${status}` });
  expect(asked).toBe(1);
});

test('what may wake a compute is not repeated because of a failure of its own', async () => {
  answers.push(503);
  expect(await pageAfter(10, { retry: false })).toEqual({ data: undefined, error: 'status 503' });
  expect(asked).toBe(1);
});

test('what may wake a compute is asked again when nobody had answered', async () => {
  answers.push('nobody');
  expect(await pageAfter(3, { retry: false })).toEqual({ data: 'status 200', error: undefined });
});
