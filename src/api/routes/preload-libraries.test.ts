import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let path: string;
let missing: string[];
beforeAll(async () => {
  missing = [];
  api = await makeApi({}, undefined, () => ({
    checkSettings: async (_pgVersion, { shared_preload_libraries: library = '' }) =>
      missing.includes(library) ? `could not access file "${library}"` : null,
  }));
  const { project } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  path = `/api/v2/projects/${project.id}`;
});
afterAll(() => api.close());

const listed = async () => (await api.call('GET', `${path}/available_preload_libraries`)).json().libraries;

test('what is listed can be chosen', async () => {
  const libraries: { library_name: string }[] = await listed();
  expect(libraries).toEqual([
    {
      library_name: 'pg_stat_statements',
      description: expect.stringMatching(/\S/),
      is_default: true,
      is_experimental: false,
      version: '17.fake',
    },
  ]);
  const names = libraries.map(({ library_name }) => library_name);
  const choose = (enabled: string[]) => {
    const settings = { preload_libraries: { use_defaults: false, enabled_libraries: enabled } };
    return api.call('PATCH', path, { body: { project: { settings } } });
  };
  expect((await choose(names)).statusCode).toBe(200);
  const refused = await choose(['auto_explain']);
  expect([refused.statusCode, refused.json().message]).toEqual([400, expect.stringContaining(names.join(', '))]);
});

test('what Postgres cannot load is not listed', async () => {
  missing = ['pg_stat_statements'];
  expect(await listed()).toEqual([]);
});
