import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HttpStub, type StubReply, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { catnapCommand } from '../../../test/helpers/run-cli.ts';

let stub: HttpStub;
let replies: Record<string, StubReply>;
let posted: string[];

const project = {
  kind: 'project',
  project_id: 'quiet-sea-1',
  project_name: 'shop',
  name: 'shop',
  logical_size: 3 * 2 ** 20,
  deleted_at: '2026-01-02T00:00:00Z',
  recoverable_until: '2026-01-09T00:00:00Z',
  deletion_method: 'user',
};
const branch = { ...project, kind: 'branch', project_id: 'old-tree-2', branch_id: 'br-a', name: 'dev' };
const twin = { ...branch, branch_id: 'br-b' };

beforeEach(async () => {
  posted = [];
  replies = { 'GET /api/v2/deleted': { body: { deleted: [project, branch] } } };
  stub = await startHttpStub(({ method, path }) => {
    if (method !== 'POST') return replies[`${method} ${path}`];
    posted.push(path);
    return { body: {} };
  });
});
afterEach(() => stub.close());

const catnap = (...args: string[]) => catnapCommand(args, { url: stub.url });

test('deleted lists projects and branches with size and dates', async () => {
  const { out } = await catnap('deleted');
  expect(out).toMatch(/project +quiet-sea-1 +shop +shop +3 MiB +2026-01-02T00:00:00Z +2026-01-09T00:00:00Z/);
  expect(out).toMatch(/branch +br-a +dev +shop/);
  expect(JSON.parse((await catnap('deleted', '--json')).out)).toEqual([project, branch]);
  replies['GET /api/v2/deleted'] = { body: { deleted: [] } };
  expect((await catnap('deleted')).out).toBe('Nothing that was deleted can be recovered.\n');
});

test('recover takes an id or a name, and says which it means', async () => {
  expect((await catnap('recover', 'quiet-sea-1')).out).toContain('project "shop"');
  expect((await catnap('recover', 'dev')).out).toContain('branch "dev" of "shop"');
  expect(posted).toEqual(['/api/v2/projects/quiet-sea-1/recover', '/api/v2/projects/old-tree-2/branches/br-a/recover']);
  expect(await catnap('recover', 'nothing')).toMatchObject({
    code: 1,
    err: 'catnap: nothing that was deleted is called nothing: see `catnap deleted`\n',
  });
  replies['GET /api/v2/deleted'] = { body: { deleted: [branch, twin] } };
  expect((await catnap('recover', 'dev')).err).toContain('choose one of the ids br-a, br-b');
});

test('purge asks first, and removes what was deleted first before the rest', async () => {
  const asked = await catnap('purge', 'dev');
  expect(asked).toMatchObject({ code: 1, err: 'catnap: nobody is here to be asked: add --yes\n' });
  expect(asked.out).toBe('branch "dev" of "shop", 3 MiB\n');
  expect(posted).toEqual([]);
  expect((await catnap('purge', '--all', '--yes')).code).toBe(0);
  expect(posted).toEqual(['/api/v2/projects/old-tree-2/branches/br-a/purge', '/api/v2/projects/quiet-sea-1/purge']);
});

test('purge wants to be told what, in one way', async () => {
  expect((await catnap('purge')).code).toBe(2);
  expect((await catnap('purge', 'dev', '--all', '--yes')).code).toBe(2);
  replies['GET /api/v2/deleted'] = { body: { deleted: [] } };
  expect(await catnap('purge', '--all')).toMatchObject({ code: 0, out: 'There is nothing to purge.\n' });
  expect(posted).toEqual([]);
});
