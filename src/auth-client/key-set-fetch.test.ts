/** Reading a key set from somebody else's server. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchKeySet } from './key-set-fetch.ts';

let server: Server;
let origin: string;
const asked: string[] = [];
const json = (body: string) => (response: ServerResponse) => response.end(body);
const pages: Record<string, (response: ServerResponse) => void> = {
  '/good': json('{"keys":[{"kty":"RSA"}]}'),
  '/text': json('hello'),
  '/none': json('{"keys":{}}'),
  '/strange': json('{"keys":[1]}'),
  '/many': json(JSON.stringify({ keys: Array.from({ length: 101 }, () => ({})) })),
  '/long': json(`{"keys":[${' '.repeat(300_000)}]}`),
  '/moved': (response) => response.writeHead(302, { location: '/good' }).end(),
  '/cut': (response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{');
    response.destroy();
  },
};

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    pages[request.url ?? '']?.(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const lenient = { allowPrivate: true, ownOrigin: 'https://catnap.test' };

describe('a key set', () => {
  test('is read', async () => {
    expect(await fetchKeySet(`${origin}/good`, lenient)).toEqual({ keys: [{ kty: 'RSA' }] });
  });

  test.each([
    ['/text', 'Unexpected token'],
    ['/none', 'no list of up to 100 keys'],
    ['/strange', 'a key that is none'],
    ['/many', 'no list of up to 100 keys'],
    ['/long', 'longer than 262144 bytes'],
    ['/moved', 'status 302'],
    ['/cut', /aborted|hang up/],
  ])('is not %s', async (path, reason) => {
    await expect(fetchKeySet(`${origin}${path}`, lenient)).rejects.toThrow(reason);
    expect(asked.at(-1)).toBe(path);
  });

  test('is not read from this machine without permission, by whatever name', async () => {
    const strict = { ...lenient, allowPrivate: false };
    const before = asked.length;
    await expect(fetchKeySet(`${origin}/good`, strict)).rejects.toThrow('must start with https://');
    const byAddress = origin.replace('http:', 'https:');
    await expect(fetchKeySet(`${byAddress}/good`, strict)).rejects.toThrow('of this machine');
    expect(asked).toHaveLength(before);
    expect(await fetchKeySet(`${origin}/good`, { ...strict, ownOrigin: origin })).toEqual({ keys: [{ kty: 'RSA' }] });
  });
});
