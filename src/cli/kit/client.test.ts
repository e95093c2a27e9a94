import { afterEach, describe, expect, test } from 'vitest';
import { type HttpStub, type StubReply, type StubRequest, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { ApiRefusal, ApiUnreachable, createClient } from './client.ts';
import { CliFailure } from './failure.ts';

let stub: HttpStub | undefined;

afterEach(async () => {
  await stub?.close();
  stub = undefined;
});

async function clientOf(answer: (request: StubRequest) => StubReply | undefined, timeoutMs = 150_000) {
  stub = await startHttpStub(answer);
  return createClient({ url: stub.url, apiKey: async () => 'the-key', timeoutMs });
}

describe('requests', () => {
  test('carry the key and the query', async () => {
    const client = await clientOf(() => ({ body: { uri: 'u' } }));
    expect(await client.get('/projects/p/connection_uri', { role_name: 'a b', branch_id: undefined })).toEqual({
      uri: 'u',
    });
    expect(stub?.requests).toEqual([
      {
        method: 'GET',
        path: '/api/v2/projects/p/connection_uri?role_name=a+b',
        authorization: 'Bearer the-key',
        body: undefined,
      },
    ]);
  });

  test('take an address with the version path, too', async () => {
    stub = await startHttpStub(() => ({ body: {} }));
    await createClient({ url: `${stub.url}/api/v2/`, apiKey: async () => 'k' }).post('/api_keys', { key_name: 'n' });
    expect(stub.requests).toMatchObject([{ path: '/api/v2/api_keys', body: { key_name: 'n' } }]);
  });

  test('go over all pages of projects', async () => {
    const all = Array.from({ length: 250 }, (_, at) => ({ id: `p-${at}`, name: 'n' }));
    const client = await clientOf(({ path }) => {
      const cursor = new URL(path, 'http://x').searchParams.get('cursor');
      const from = cursor === null ? 0 : all.findIndex((project) => project.id === cursor) + 1;
      const projects = all.slice(from, from + 100);
      return { body: { projects, pagination: { cursor: projects.at(-1)?.id } } };
    });
    expect(await client.listProjects()).toEqual(all);
  });

  test('do not go on for ever when a server ignores the cursor', async () => {
    const projects = Array.from({ length: 100 }, (_, at) => ({ id: `p-${at}`, name: 'n' }));
    const client = await clientOf(() => ({ body: { projects, pagination: { cursor: 'same' } } }));
    expect((await client.listProjects()).length).toBeLessThan(1_000);
  });
});

describe('failures', () => {
  test('say what the API said', async () => {
    const client = await clientOf(() => ({ status: 404, body: { code: '', message: 'project not found' } }));
    const failure = await client.get('/projects/x').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiRefusal);
    expect(failure).toMatchObject({ status: 404, exitCode: 1, message: 'project not found (HTTP 404)' });
  });

  test('say what to do about a refused key', async () => {
    const client = await clientOf(() => ({ status: 401, body: { message: 'no' } }));
    await expect(client.get('/auth')).rejects.toThrow('the API key was refused; pass --api-key');
  });

  test('name the request when the server is at fault', async () => {
    const client = await clientOf(() => ({ status: 500, body: { message: 'internal', request_id: 'r-1' } }));
    await expect(client.get('/auth')).rejects.toThrow('internal (HTTP 500); request_id:"r-1"');
  });

  test('tell a stranger from Catnap', async () => {
    const client = await clientOf(() => ({ body: '<html>' }));
    await expect(client.get('/auth')).rejects.toThrow('did not answer with JSON');
  });

  test('say how to start it when nobody answers', async () => {
    const { url, close } = await startHttpStub(() => undefined);
    await close();
    const failure = await createClient({ url, apiKey: async () => 'k' })
      .get('/auth')
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiUnreachable);
    expect(String(failure)).toContain(`Catnap does not answer at ${url}; start it with \`catnap up\``);
  });

  test('come after the deadline when the answer does not', async () => {
    const client = await clientOf(() => 'never', 50);
    await expect(client.get('/auth')).rejects.toThrow('did not answer within 0.05 s');
  });

  test('come before a request when the address is none', () => {
    expect(() => createClient({ url: 'localhost:7070', apiKey: async () => 'k' })).toThrow(CliFailure);
  });
});
