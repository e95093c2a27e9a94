/** Schemas through the front door: read from a sleeping branch, compared, and a branch that has nothing else. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let rootId: string;
let endpointId: string;
let uri: string;

const branches = () => `/projects/${projectId}/branches`;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'schemas' } });
  projectId = body.project.id;
  rootId = body.branch.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table person (id serial primary key, name text)');
  await ask(uri, "insert into person (name) select 'somebody' from generate_series(1, 10)");
});
afterAll(() => program.destroy());

it('a sleeping compute is woken to tell its schema', async () => {
  await program.api('POST', `/projects/${projectId}/endpoints/${endpointId}/suspend`);
  await program.settle(projectId);
  const { status, body } = await program.api('GET', `${branches()}/${rootId}/schema?db_name=neondb`);
  expect(status).toBe(200);
  expect(body.sql).toContain('CREATE TABLE public.person (');
  expect(body.sql).not.toContain('somebody');
  expect((await program.api('GET', `/projects/${projectId}/endpoints/${endpointId}`)).body.endpoint).toMatchObject({
    current_state: 'active',
    last_active: expect.any(String),
  });
});

it('a schema-only branch has the schema, no row, and differs only by what is changed in it', async () => {
  const made = await program.api('POST', branches(), {
    branch: { name: 'bare', init_source: 'schema-only' },
    endpoints: [{ type: 'read_write' }],
  });
  expect(made.status).toBe(201);
  expect(made.body.branch).toMatchObject({ init_source: 'schema-only', parent_id: rootId });
  const bare = uri.replaceAll(endpointId, made.body.endpoints[0].id);
  expect(await ask(bare, 'select count(*) from person')).toBe('0');
  expect(await ask(bare, "insert into person (name) values ('first') returning id")).toBe('1');
  const path = `${branches()}/${made.body.branch.id}/compare_schema?db_name=neondb`;
  expect((await program.api('GET', path)).body).toEqual({ diff: '' });
  await ask(bare, 'alter table person add column born date');
  const { diff } = (await program.api('GET', path)).body;
  expect(diff).toMatch(/^--- \S+\n\+\+\+ bare\n@@ /);
  expect(diff.split('\n').filter((line: string) => /^[+-] /.test(line))).toEqual([
    '-    name text',
    '+    name text,',
    '+    born date',
  ]);
  expect(await ask(uri, 'select count(*) from person')).toBe('10');
});
