import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import type { ExtensionFacts } from '../../lib/model.ts';

const fact = { version: null, comment: '', origin: 'Catnap', isOffered: true, reason: null };
let facts: ExtensionFacts;
let missing: string[] = [];
let api: TestApi;
let path: string;
beforeAll(async () => {
  api = await makeApi({ extensions: { roots: {}, allowed: ['pg_cron'] } }, undefined, () => ({
    listExtensions: async (pgVersion) => {
      expect(pgVersion).toBe(17);
      return facts;
    },
    checkSettings: async (_pgVersion, { shared_preload_libraries: library = '' }) =>
      missing.includes(library) ? `could not access file "${library}"` : null,
  }));
  const { project } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  path = `/api/v2/projects/${project.id}`;
});
afterAll(() => api.close());

test('extensions are listed, each with the reason why it is not offered', async () => {
  const reason = 'its library needs GLIBC_2.38, which this machine does not have: its C library is 2.36';
  const vector = {
    name: 'vector',
    version: '0.8.0',
    comment: 'vectors',
    origin: '/usr/share',
    isOffered: false,
    reason,
  };
  facts = { extensions: [{ ...fact, name: 'citext' }, vector], note: null };
  expect((await api.call('GET', `${path}/extensions`)).json()).toEqual({
    extensions: [
      { name: 'citext', comment: '', origin: 'Catnap', offered: true },
      { name: 'vector', version: '0.8.0', comment: 'vectors', origin: '/usr/share', offered: false, reason },
    ],
  });
});

test('a driver that cannot list them says so', async () => {
  facts = { extensions: [], note: 'the image has them' };
  expect((await api.call('GET', `${path}/extensions`)).json()).toEqual({ extensions: [], note: 'the image has them' });
});

test('a library that the operator has allowed is loaded where the machine has it', async () => {
  const settings = { preload_libraries: { enabled_libraries: ['pg_cron'] } };
  const change = () => api.call('PATCH', path, { body: { project: { settings } } });
  expect((await change()).statusCode).toBe(200);
  const { libraries } = (await api.call('GET', `${path}/available_preload_libraries`)).json();
  expect(libraries.map((one: { library_name: string }) => one.library_name)).toEqual(['pg_stat_statements', 'pg_cron']);

  missing = ['pg_cron'];
  const field = 'body.project.settings.preload_libraries.enabled_libraries';
  const words = `invalid request: ${field}: pg_cron cannot be loaded: could not access file "pg_cron"`;
  const refused = await change();
  expect([refused.statusCode, refused.json().message]).toEqual([400, words]);
  const create = await api.call('POST', '/api/v2/projects', { body: { project: { settings } } });
  expect([create.statusCode, create.json().message]).toEqual([400, words]);
  const [endpoint] = (await api.call('GET', `${path}/endpoints`)).json().endpoints;
  const edit = await api.call('PATCH', `${path}/endpoints/${endpoint.id}`, { body: { endpoint: { settings } } });
  expect(edit.json().message).toBe(words.replaceAll('body.project', 'body.endpoint'));
});
