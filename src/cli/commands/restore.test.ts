import { beforeEach, expect, test } from 'vitest';
import { catnapCommand } from '../../../test/helpers/run-cli.ts';
import type { ProjectRestoreReport, ProjectRestoreRequest } from '../kit/parts.ts';

const report: ProjectRestoreReport = {
  startedAt: '2026-01-02T00:00:00Z',
  finishedAt: '2026-01-02T00:00:05Z',
  project: { id: 'quiet-sea-1', name: 'shop' },
  notes: [],
  system: { lastCommitAt: null, until: null, lost: null, problems: [] },
  restored: [],
  missing: [],
  unknown: [],
};
let asked: ProjectRestoreRequest[];
let reply: ProjectRestoreReport;

beforeEach(() => {
  asked = [];
  reply = report;
});

const unused = () => Promise.reject(new Error('not here'));

function restore(...args: string[]) {
  return catnapCommand(['restore', '--from', 'file:///store', ...args], {
    restore: {
      keyLine: undefined,
      installation: unused,
      project: async (request, say) => {
        asked.push(request);
        say('on its way');
        return reply;
      },
    },
    backup: { verify: unused, key: async () => 'the key of this home' },
  });
}

test('one project is asked for with the key of this home, and progress is not part of the report', async () => {
  const { code, out, err } = await restore('--project', 'quiet-sea-1');
  expect({ code, err }).toEqual({ code: 0, err: 'on its way\n' });
  expect(out).toMatch(/took: +5\.0 s\nproject: +quiet-sea-1\nname: +shop\n/);
  const project = { projectId: 'quiet-sea-1', asNew: false, organizationId: undefined };
  expect(asked).toEqual([
    { from: 'file:///store', at: undefined, keyLine: 'the key of this home', atOnce: 3, project },
  ]);
});

test('one project may get new ids and another organization', async () => {
  await restore('--project', 'quiet-sea-1', '--as-new', '--org', 'org-a', '--at', '2026-01-01T00:00:00Z');
  const project = { projectId: 'quiet-sea-1', asNew: true, organizationId: 'org-a' };
  expect(asked).toMatchObject([{ at: '2026-01-01T00:00:00Z', project }]);
});

test('what is missing is said, and the exit code too', async () => {
  const missing = [{ projectId: 'quiet-sea-1', id: 'br-a', name: 'dev', reason: 'the store has no data of it' }];
  reply = { ...report, missing, notes: ['the store has no data of the snapshot monday (snap-b)'] };
  const { code, out } = await restore('--project', 'quiet-sea-1');
  expect(code).toBe(1);
  expect(out).toContain('quiet-sea-1 dev (br-a): no data: the store has no data of it\n');
  expect(out).toContain('the store has no data of the snapshot monday (snap-b)\n');
});

test('what is for one project wants one', async () => {
  expect((await restore('--as-new')).err).toBe('catnap: --as-new is for one project: name it with --project\n');
  expect((await restore('--org', 'org-a')).err).toBe('catnap: --org is for one project: name it with --project\n');
  expect(asked).toEqual([]);
});
