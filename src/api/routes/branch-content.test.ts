import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { drain } from '../../../test/helpers/drain.ts';
import { FakeDriver } from '../../compute/fake/fake-driver.ts';
import { updateHistory } from '../../db/histories.ts';
import type { BranchId } from '../../lib/ids.ts';

let api: TestApi;
let base: string;
let root: BranchId;
let dev: string;
const driver = new FakeDriver();

beforeAll(async () => {
  api = await makeApi();
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  base = `/api/v2/projects/${made.project.id}/branches`;
  root = made.branch.id;
  dev = (await api.call('POST', base, { body: { branch: { name: 'dev' } } })).json().branch.id;
  await drain(api.core, driver);
  const ref = { projectId: made.project.id, branchId: root, tenantUid: null };
  await updateHistory(api.core.database.sql, root, await driver.keepHistory(ref, { retentionSeconds: 3_600 }));
});
afterAll(() => api.close());

const restore = (id: string, body: object) => api.call('POST', `${base}/${id}/restore`, { body });

describe('restore', () => {
  test('answers with the branch under way and its operations; the backup is found by its name', async () => {
    const reply = await restore(dev, { source_branch_id: root, preserve_under_name: 'dev_old' });
    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toMatchObject({
      branch: { id: dev, name: 'dev', parent_id: root, current_state: 'resetting', pending_state: 'ready' },
      operations: [{ action: 'create_branch', status: 'running', branch_id: dev }],
    });
    expect((await restore(dev, { source_branch_id: root })).statusCode).toBe(423);
    await drain(api.core, driver);
    const { branch } = (await api.call('GET', `${base}/${dev}`)).json();
    expect(branch).toMatchObject({ current_state: 'ready', last_reset_at: expect.any(String) });
    const { branches } = (await api.call('GET', `${base}?search=dev_old`)).json();
    expect(branches).toMatchObject([{ name: 'dev_old', current_state: 'ready', parent_id: root }]);
  });

  test.each([
    [{}, 400, 'source_branch_id'],
    [{ source_branch_id: '^parent' }, 400, 'source_branch_id'],
    [{ source_branch_id: 'br-none' }, 404, 'branch not found'],
    [{ source_branch_id: 'SELF' }, 400, 'body.source_lsn or body.source_timestamp is required'],
    [{ source_branch_id: 'ROOT', source_lsn: '0/1' }, 422, 'body.source_lsn is outside the history'],
    [{ source_branch_id: 'ROOT', source_timestamp: '2026-01-01T00:00:00Z' }, 422, 'is outside the history'],
    [{ source_branch_id: 'ROOT', preserve_under_name: ' ' }, 400, 'body.preserve_under_name must not be blank'],
    [{ source_branch_id: 'ROOT', preserve_under_name: 'dev' }, 409, 'branch already exists'],
    [{ source_branch_id: 'ROOT', name: 'x' }, 400, 'name'],
  ])('%j is refused with %i', async (body: { source_branch_id?: string }, status, message) => {
    const named: Record<string, string> = { SELF: dev, ROOT: root };
    const source = body.source_branch_id;
    const given = source === undefined ? body : { ...body, source_branch_id: named[source] ?? source };
    const reply = await restore(dev, given);
    expect([reply.statusCode, reply.json().message]).toEqual([status, expect.stringContaining(message)]);
  });
});

describe('schema', () => {
  const schema = (id: string, query: string) => api.call('GET', `${base}/${id}/schema?${query}`);
  const compare = (id: string, query: string) => api.call('GET', `${base}/${id}/compare_schema?${query}`);

  test('is SQL text, and the comparison a diff from the parent or a named branch', async () => {
    const { branch } = (await api.call('GET', `${base}/${root}`)).json();
    expect((await schema(root, 'db_name=neondb')).json()).toEqual({
      sql: `-- neondb\nCREATE TABLE ${branch.name} ();\n`,
    });
    const made = await api.call('POST', base, { body: { branch: { name: 'x' }, endpoints: [{ type: 'read_write' }] } });
    const { id } = made.json().branch;
    const diff = `--- ${branch.name}\n+++ x\n@@ -1,2 +1,2 @@\n -- neondb\n-CREATE TABLE ${branch.name} ();\n+CREATE TABLE x ();\n`;
    expect((await compare(id, 'db_name=neondb')).json()).toEqual({ diff });
    expect((await compare(id, `db_name=neondb&base_branch_id=${root}`)).json()).toEqual({ diff });
    expect((await compare(id, `db_name=neondb&base_branch_id=${id}`)).json()).toEqual({ diff: '' });
  });

  test('what cannot be had is said', async () => {
    const cases: [Promise<{ statusCode: number; json(): { message: string } }>, number, string][] = [
      [schema(root, ''), 400, 'db_name'],
      [schema(root, 'db_name=nowhere'), 404, 'database not found'],
      [schema('br-none', 'db_name=neondb'), 404, 'branch not found'],
      [schema(root, 'db_name=neondb&format=json'), 400, 'format'],
      [schema(root, 'db_name=neondb&lsn=0/1'), 422, 'query.lsn is outside the history'],
      [schema(dev, 'db_name=neondb'), 422, 'has none, create it first'],
      [compare(root, 'db_name=neondb'), 400, 'base_branch_id is required'],
      [
        compare(root, `db_name=neondb&base_branch_id=${root}&base_timestamp=2026-01-01T00:00:00Z`),
        422,
        'query.base_timestamp is outside the history',
      ],
    ];
    for (const [asked, status, message] of cases) {
      const reply = await asked;
      expect([reply.statusCode, reply.json().message]).toEqual([status, expect.stringContaining(message)]);
    }
  });
});
