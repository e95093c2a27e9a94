import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';

let api: TestApi;
let base: string;

beforeAll(async () => {
  api = await makeApi();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  base = `/api/v2/projects/${made.project.id}/saved_queries`;
});
afterAll(() => api.close());

const list = async () => (await api.call('GET', base)).json().saved_queries;
const save = (saved_query: object) => api.call('POST', base, { body: { saved_query } });
const change = (id: string, saved_query: object) => api.call('PATCH', `${base}/${id}`, { body: { saved_query } });

test('a query is saved, changed as far as asked, and deleted', async () => {
  const reply = await save({ name: 'invoices', query: 'select 1', is_open: true });
  expect(reply.statusCode).toBe(201);
  const saved = reply.json().saved_query;
  expect(saved).toMatchObject({ name: 'invoices', query: 'select 1', is_open: true, revision: 1 });
  expect((await save({ name: 'invoices', query: '' })).json().saved_query.is_open).toBe(false);
  expect((await list()).map(({ query }: { query: string }) => query)).toEqual(['select 1', '']);
  const changed = (await change(saved.id, { is_open: false })).json().saved_query;
  expect(changed).toMatchObject({ name: 'invoices', query: 'select 1', is_open: false, revision: 2 });
  for (const { id } of await list()) expect((await api.call('DELETE', `${base}/${id}`)).statusCode).toBe(200);
  expect(await list()).toEqual([]);
  expect((await change(saved.id, { name: 'gone' })).statusCode).toBe(404);
});

test('a change to an older text is refused, and changes nothing', async () => {
  const { id } = (await save({ name: 'shared', query: 'select 1' })).json().saved_query;
  expect((await change(id, { query: 'select 2', revision: 1 })).json().saved_query.revision).toBe(2);
  const late = await change(id, { query: 'select 3', revision: 1 });
  expect([late.statusCode, late.json().message]).toEqual([409, 'the saved query was changed meanwhile; revision:"2"']);
  expect(await list()).toMatchObject([{ query: 'select 2', revision: 2 }]);
  await api.call('DELETE', `${base}/${id}`);
});

test.each([
  ['no name', { name: '', query: '' }, 'body.saved_query.name'],
  ['a long name', { name: 'x'.repeat(101), query: '' }, 'body.saved_query.name'],
  ['a long text', { name: 'x', query: 'x'.repeat(20_001) }, 'body.saved_query.query'],
  ['an unknown field', { name: 'x', query: '', owner: 'me' }, 'body.saved_query'],
])('%s is refused by its name', async (_, body, field) => {
  const reply = await save(body);
  expect([reply.statusCode, reply.json().message]).toEqual([400, expect.stringContaining(field)]);
});

test('a project has a hundred at most', async () => {
  for (let n = 0; n < 100; n += 1) expect((await save({ name: `query ${n}`, query: '' })).statusCode).toBe(201);
  const reply = await save({ name: 'one more', query: '' });
  expect([reply.statusCode, reply.json().message]).toEqual([422, 'saved queries limit exceeded; limit:"100"']);
});
