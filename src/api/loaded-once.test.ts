/**
 * The API process gives up its rights between loading its code and building the application, and may then be unable to
 * read the checkout. So everything is bundled as for dist/, and the files of the bundle are gone before it is built.
 */
import { createRequire } from 'node:module';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { loadSource } from '../../scripts/load-source.mjs';
import { keyHeaders, makeAuthProviderParts } from '../../test/helpers/auth-provider.ts';
import { makeCore } from '../../test/helpers/core.ts';
import { machineOfTests } from '../../test/helpers/machine.ts';
import { testProviders } from '../../test/helpers/providers.ts';
import { createLogger } from '../lib/log.ts';
import type { buildApp } from './app.ts';
import { noConsole } from './kit/console-files.ts';

const loaded = () => Object.keys(createRequire(import.meta.url).cache);

test('building the application and answering requests reads no file of the program', async () => {
  const { core, token, close } = await makeCore();
  const source = await loadSource(['api/app']);
  const build: typeof buildApp = source['api/app'].buildApp;
  const before = new Set(loaded());
  const app = await build({
    core,
    config: { ...core.config, ...machineOfTests },
    clock: core.clock,
    log: createLogger({ level: 'silent', process: 'test' }),
    metrics: new Registry(),
    version: '0',
    consoleFiles: noConsole,
    keyUses: { record: () => {} },
    proxySockets: ['/nonexistent/proxy'],
    checkSettings: async () => null,
    listExtensions: async () => ({ extensions: [], note: null }),
    readLog: async () => [],
    sessions: { read: async () => [], signal: async () => false },
    readVerifiers: async () => [],
    dumpSchema: async () => '',
    answerAgent: async () => ({ status: 202, headers: {}, body: '' }),
    authProvider: makeAuthProviderParts(core),
    providers: testProviders(),
    awaitOperation: async () => ({ status: 'gone', error: null }),
  });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = await fetch(`${address}${path}`, { headers, ...init });
    await reply.text();
    return reply.status;
  };
  const internal = { ...keyHeaders('client', 'internal'), 'content-type': 'application/json' };
  const account = '{"email":"a@example.com","password":"correct horse"}';
  const statuses = [
    await send('/'),
    await send('/status'),
    await send('/status.json'),
    await send('/metrics'),
    await send('/api/v2/docs'),
    await send('/api/v2/openapi.json'),
    await send('/api/v2/projects', { method: 'POST', body: '{"project":{}}' }),
    await send('/api/v2/projects', { method: 'POST', body: '{"project":{"pg_version":1}}' }),
    await send('/api/v2/projects', { method: 'POST', body: '{' }),
    await send('/api/v2/projects?limit=x'),
    await send('/nowhere'),
    await send('/stack/api/v1/auth/password/sign-up', { method: 'POST', headers: internal, body: account }),
    await send('/stack/api/v1/projects/internal/.well-known/jwks.json'),
    await send('/stack/sign-in'),
  ];
  await app.close();
  await close();
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 201, 400, 400, 400, 404, 200, 200, 200]);
  expect(loaded().filter((file) => !before.has(file))).toEqual([]);
});
