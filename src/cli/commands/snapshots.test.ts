import { afterEach, beforeEach, expect, test } from 'vitest';
import { type HttpStub, type StubReply, startHttpStub } from '../../../test/helpers/http-stub.ts';
import { catnapCommand } from '../../../test/helpers/run-cli.ts';

let stub: HttpStub;
let replies: Record<string, StubReply>;

beforeEach(async () => {
  replies = {
    'GET /api/v2/projects?limit=100': { body: { projects: [{ id: 'p1' }] } },
    'GET /api/v2/projects/p1': { body: { project: { id: 'p1' } } },
    'GET /api/v2/projects/p1/branches?search=main': { body: { branches: [{ id: 'br-1', name: 'main' }] } },
    'GET /api/v2/projects/p1/snapshots': {
      body: {
        snapshots: [
          { id: 'snap-1', slug: 'snap-1', name: 'monday', status: 'ready', full_size: 7 },
          { id: 'snap-2', slug: 'two', name: 'same', status: 'creating' },
          { id: 'snap-3', slug: 'snap-3', name: 'same', status: 'ready' },
        ],
      },
    },
  };
  stub = await startHttpStub(({ method, path }) => replies[`${method} ${path}`]);
});
afterEach(() => stub.close());

const snapshots = (words: string) => catnapCommand(['snapshots', ...words.split(' ')], { url: stub.url });

const sent = () => stub.requests.filter(({ method }) => method !== 'GET').map(({ path, body }) => [path, body]);

test('lists them, of the only project or of a named one', async () => {
  expect((await snapshots('list')).out).toMatch(/^ID .*\nsnap-1 +monday +ready .* 7 .*\nsnap-2 +same +creating/);
  replies['GET /api/v2/projects?limit=100'] = { body: { projects: [{ id: 'p1' }, { id: 'p2' }] } };
  expect(await snapshots('list')).toMatchObject({ code: 2, err: expect.stringContaining('pass --project') });
  expect((await snapshots('list --project p1')).code).toBe(0);
});

test('takes one of now, of a time or of an LSN', async () => {
  const base = '/api/v2/projects/p1/branches/br-1/snapshot';
  const queries = ['', '?timestamp=2026-01-31T12%3A00%3A00Z', '?name=n&expires_at=2027-01-01T00%3A00%3A00Z&lsn=0%2F1'];
  const made = { snapshot: { id: 'snap-9', name: 'n' }, operations: [] };
  for (const query of queries) replies[`POST ${base}${query}`] = { body: made };
  expect((await snapshots('create main')).out).toContain('snap-9');
  await snapshots('create main --at 2026-01-31T12:00:00Z');
  await snapshots('create main --name n --at 0/1 --expires-at 2027-01-01T00:00:00Z');
  expect(sent()).toEqual(queries.map((query) => [`${base}${query}`, {}]));
  expect(await snapshots('create other')).toMatchObject({ code: 1, err: expect.stringContaining('not found') });
});

test('waits until one is there, says why it is not, or returns at once', async () => {
  const queued = { id: 'op-1', project_id: 'p1', action: 'create_snapshot', status: 'scheduling', failures_count: 0 };
  const created = { snapshot: { id: 'snap-1', status: 'creating' }, operations: [queued] };
  replies['POST /api/v2/projects/p1/branches/br-1/snapshot'] = { body: created };
  const operation = 'GET /api/v2/projects/p1/operations/op-1';
  expect((await snapshots('create main --no-wait')).out).toMatch(/^status: +creating$/m);
  expect(stub.requests.map(({ path }) => path)).not.toContain('/api/v2/projects/p1/operations/op-1');
  replies[operation] = { body: { operation: { ...queued, status: 'finished' } } };
  expect((await snapshots('create main')).out).toMatch(/^status: +ready$/m);
  replies[operation] = { body: { operation: { ...queued, status: 'error', error: 'no room' } } };
  const failed = { code: 1, out: '', err: expect.stringContaining('create snapshot ended as error: no room') };
  expect(await snapshots('create main')).toMatchObject(failed);
  const restored = { branch: { id: 'br-9' }, endpoints: [], operations: [queued] };
  replies['POST /api/v2/projects/p1/snapshots/snap-1/restore'] = { body: restored };
  expect(await snapshots('restore snap-1')).toMatchObject(failed);
  replies['POST /api/v2/projects/p1/branches/br-1/finalize_restore'] = { body: { operations: [queued] } };
  expect(await snapshots('finalize main')).toMatchObject(failed);
  replies['DELETE /api/v2/projects/p1/snapshots/snap-1'] = { status: 202, body: { operations: [queued] } };
  expect(await snapshots('delete snap-1')).toMatchObject(failed);
});

test('restores one beside a branch or in its place, and finalizes', async () => {
  const branch = { branch: { id: 'br-9', name: 'new' }, endpoints: [{ id: 'ep-9' }], operations: [] };
  replies['POST /api/v2/projects/p1/snapshots/snap-1/restore'] = { body: branch };
  replies['POST /api/v2/projects/p1/branches/br-1/finalize_restore'] = { body: { operations: [] } };
  const shown = await snapshots('restore monday --name new');
  expect(shown.out).toMatch(/br-9[\s\S]*ep-9[\s\S]*catnap snapshots finalize br-9/);
  expect((await snapshots('restore snap-1 --replace main --finalize')).out).not.toContain('snapshots finalize');
  await snapshots('finalize main --name old');
  expect(sent().map(([, body]) => body)).toEqual([
    { name: 'new', finalize_restore: false },
    { target_branch_id: 'br-1', finalize_restore: true },
    { name: 'old' },
  ]);
  expect(await snapshots('restore same')).toMatchObject({
    code: 1,
    err: expect.stringContaining('use one of the ids snap-2, snap-3'),
  });
  expect(await snapshots('restore none')).toMatchObject({ code: 1, err: 'catnap: there is no snapshot none\n' });
});

test('deletes one by its slug', async () => {
  replies['DELETE /api/v2/projects/p1/snapshots/snap-2'] = { status: 202, body: { operations: [] } };
  expect((await snapshots('delete two')).out).toContain('snap-2');
});

test('shows, sets and removes the schedule of a branch', async () => {
  const path = '/api/v2/projects/p1/branches/br-1/backup_schedule';
  replies[`PUT ${path}`] = { body: {} };
  replies[`GET ${path}`] = { body: { schedule: [{ frequency: 'daily', hour: 3 }], next_at: '2026-01-31T03:00:00Z' } };
  expect((await snapshots('schedule main')).out).toContain('The next one is due at 2026-01-31T03:00:00Z.');
  await snapshots('schedule main --every day --hour 3 --keep 7');
  await snapshots('schedule main --none');
  expect(sent()).toEqual([
    [path, { schedule: [{ frequency: 'daily', hour: 3, retention_seconds: 604_800 }] }],
    [path, { schedule: [] }],
  ]);
  expect((await snapshots('schedule main --hour 3')).code).toBe(2);
  expect((await snapshots('schedule main --every never')).code).toBe(2);
});
