/** What the console works out without a server: the tree of branches, what a search means, moments, words. */
import { describe, expect, test } from 'vitest';
import type { Branch, Endpoint, Operation, Snapshot } from '../../console/api/generated.ts';
import { type TreeWish, treeRows } from '../../console/branches/tree-rows.ts';
import { marksOf, placeOf, secondsOf } from '../../console/history/marks.ts';
import { matching } from '../../console/monitoring/log-filter.ts';
import { sleepSpans } from '../../console/monitoring/sleep.ts';
import { consequenceOf, subjectOf, titleOf } from '../../console/operations/words.ts';
import { localText, momentOf, uriAt } from '../../console/target/moment.ts';
import { ranked } from '../../console/ui/ranking.ts';

const branch = (id: string, parent?: string, more: Partial<Branch> = {}) =>
  ({ id, name: id, ...(parent === undefined ? {} : { parent_id: parent }), ...more }) as Branch;
const compute = (id: string, branchId: string, more: Partial<Endpoint> = {}) =>
  ({ id, branch_id: branchId, type: 'read_write', current_state: 'idle', ...more }) as Endpoint;

describe('the tree of branches', () => {
  const family = [
    branch('main'),
    branch('b10', 'main'),
    branch('b9', 'main'),
    branch('leaf', 'b10'),
    branch('lost', 'gone'),
  ];
  const computes = [compute('ep-1', 'main'), compute('ep-2', 'main', { type: 'read_only' }), compute('ep-3', 'b9')];
  const wish: TreeWish = { words: '', order: null, collapsed: new Set() };
  const lines = (change: Partial<TreeWish>) =>
    treeRows(family, computes, { ...wish, ...change }).map(
      ({ branch: { name }, depth }) => `${'-'.repeat(depth)}${name}`,
    );

  test('has each below the one it was made from, and those without one at the top', () => {
    expect(lines({})).toEqual(['main', '-b10', '--leaf', '-b9', 'lost']);
    expect(lines({ collapsed: new Set(['b10']) })).toEqual(['main', '-b10', '-b9', 'lost']);
    expect(lines({ collapsed: new Set(['main']) })).toEqual(['main', 'lost']);
  });

  test('is sorted inside each level, numbers in names as numbers', () => {
    expect(lines({ order: { by: 'name', isDescending: false } })).toEqual(['lost', 'main', '-b9', '-b10', '--leaf']);
    expect(lines({ order: { by: 'name', isDescending: true } })).toEqual(['main', '-b10', '--leaf', '-b9', 'lost']);
  });

  test('is searched by names and ids, also of computes, and says whose children they are', () => {
    const found = treeRows(family, computes, { ...wish, words: 'EP-3' });
    expect(found.map(({ branch: { name }, parentName, isFound }) => [name, parentName, isFound])).toEqual([
      ['b9', 'main', true],
    ]);
    expect(lines({ words: 'b', collapsed: new Set(['main']) })).toEqual(['b10', 'b9']);
  });

  test('keeps primary and replicas apart', () => {
    const [main] = treeRows(family, computes, wish);
    expect([main?.primary?.id, main?.replicas.map(({ id }) => id)]).toEqual(['ep-1', ['ep-2']]);
  });

  test('bears a chain of thousands', () => {
    const chain = Array.from({ length: 5_000 }, (_, n) => branch(`b${n}`, n === 0 ? undefined : `b${n - 1}`));
    expect(treeRows(chain, [], wish).at(-1)?.depth).toBe(4_999);
  });
});

test('a search wants all words, and prefers beginnings of names', () => {
  const items = [
    { id: '1', title: 'domain' },
    { id: '2', title: 'feature/main-menu' },
    { id: '3', title: 'main', hint: 'default' },
    { id: '4', title: 'other', hint: 'made from main' },
  ];
  const ids = (words: string, most = 9) => ranked(items, words, most).map(({ id }) => id);
  expect(ids('MAIN')).toEqual(['3', '2', '1', '4']);
  expect(ids('menu feat')).toEqual(['2']);
  expect(ids('')).toEqual(['1', '2', '3', '4']);
  expect(ids('main', 2)).toEqual(['3', '2']);
  expect(ids('main nothing')).toEqual([]);
});

describe('moments', () => {
  test('are times of this browser, or positions in the log', () => {
    expect(momentOf(' 0/1DE2850 ')).toEqual({ lsn: '0/1DE2850' });
    const time = new Date(2026, 0, 31, 12, 5, 9);
    expect(localText(time.toISOString())).toBe('2026-01-31 12:05:09');
    expect(momentOf('2026-01-31 12:05:09')).toEqual({ timestamp: time.toISOString() });
    expect(momentOf('yesterday')).toEqual({ timestamp: 'yesterday' });
  });

  test('become part of a connection string beside the options that it has', () => {
    const uri = 'postgresql://o:p@localhost:7432/db?sslmode=require&options=endpoint%3Dep-x';
    const at = new URL(uriAt(uri, '2026-01-31T12:00:00.000Z'));
    expect(at.searchParams.get('options')).toBe('endpoint=ep-x neon_timestamp:2026-01-31T12:00:00.000Z');
    expect([at.searchParams.get('sslmode'), at.username, at.search.includes('+')]).toEqual(['require', 'o', false]);
    const bare = new URL(uriAt('postgresql://o:p@ep-x.localhost/db', '0/1DE2850'));
    expect(bare.searchParams.get('options')).toBe('neon_lsn:0/1DE2850');
  });

  test('on the line are whole seconds of what is kept', () => {
    expect(secondsOf([10_700, 20_900])).toEqual([11_000, 20_000]);
    expect(secondsOf([10_000, 20_000])).toEqual([10_000, 20_000]);
    // Less than a second is kept, and no whole one of it.
    expect(secondsOf([10_100, 10_900])).toEqual([10_000, 10_000]);
  });

  test('are marked with what happened, as far as it is kept', () => {
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
    const span = [Date.parse(at(10)), Date.parse(at(20))] as const;
    const main = branch('main', undefined, { last_reset_at: at(12) });
    const others = [
      main,
      branch('early', 'main', { created_at: at(5) }),
      branch('late', 'main', { created_at: at(18) }),
    ];
    const taken = { id: 's', name: 'monday', source_branch_id: 'main', created_at: at(15) } as Snapshot;
    const foreign = { ...taken, id: 't', source_branch_id: 'late' };
    const marks = marksOf(main, others, [taken, foreign], span);
    expect(marks.map(({ text, at: time }) => [text, placeOf(time, span)])).toEqual([
      ['Restored', 20],
      ['Snapshot monday', 50],
      ['Branch late', 80],
    ]);
  });
});

describe('operations', () => {
  const named = { branches: [branch('br-1', undefined, { name: 'preview' })], endpoints: [compute('ep-1', 'br-1')] };
  const operation = (more: Partial<Operation>) =>
    ({ action: 'start_compute', status: 'finished', failures_count: 0, total_duration_ms: 170, ...more }) as Operation;

  test('say what they do or did, and name what it was done to', () => {
    expect(titleOf(operation({ status: 'running' }), undefined)).toBe('Starting the compute of');
    expect(titleOf(operation({}), undefined)).toBe('Started the compute of');
    expect(titleOf(operation({ status: 'error', action: 'create_branch' }), undefined)).toBe('Could not create branch');
    expect(titleOf(operation({ status: 'cancelled' }), undefined)).toBe('Cancelled: starting the compute of');
    expect(subjectOf(operation({ endpoint_id: 'ep-1' }), named)?.name).toBe('preview');
    expect(subjectOf(operation({ branch_id: 'br-gone' }), named)).toBeUndefined();
    const deleted = operation({ action: 'delete_timeline', branch_id: 'br-1' });
    expect(titleOf(deleted, undefined)).toBe('Deleted branch or snapshot');
    expect(titleOf(deleted, subjectOf(deleted, named))).toBe('Deleted branch');
  });

  test('that failed speak of tries only if there were some', () => {
    expect(consequenceOf(operation({ status: 'error', failures_count: 1 }))).toBe('');
    expect(consequenceOf(operation({ status: 'error', failures_count: 4, total_duration_ms: 90_000 }))).toBe(
      'Tried 4 times in 2 min, then given up.',
    );
    expect(consequenceOf(operation({ status: 'failed', failures_count: 1 }))).toMatch(/^Failed 1 time so far/);
  });
});

test('a log is searched by all words, and the newest comes first', () => {
  const entries = [
    { source: 'server' as const, level: 'LOG', message: 'checkpoint starting' },
    { source: 'session' as const, level: 'FATAL', pid: 7, message: 'division by zero' },
    { source: 'session' as const, level: 'LOG', pid: 8, message: 'division of labour' },
  ];
  const found = (words: string, kind: '' | 'bad' | 'session' | 'server' = '') =>
    matching(entries, { words, kind }).map(({ message }) => message);
  expect(found('division')).toEqual(['division of labour', 'division by zero']);
  expect(found('ZERO 7')).toEqual(['division by zero']);
  expect(found('', 'bad')).toEqual(['division by zero']);
  expect(found('', 'server')).toEqual(['checkpoint starting']);
});

test('times without samples are those of sleep, since the compute was created', () => {
  const timeOf = (second: number) => new Date(second * 1000).toISOString();
  const samples = [0, 15, 30, 300, 315].map((second) => ({ at: timeOf(second) }));
  const measured = { samples, step_seconds: 15, from: timeOf(-900), to: timeOf(600) };
  const spans = (created: number, state: Endpoint['current_state']) =>
    sleepSpans(measured, { created_at: timeOf(created), current_state: state });
  expect(spans(-20, 'active')).toEqual([[37.5, 292.5]]);
  expect(spans(-20, 'idle')).toEqual([
    [37.5, 292.5],
    [322.5, 600],
  ]);
  expect(spans(-5_000, 'active')[0]).toEqual([-900, -7.5]);
  expect(spans(-300, 'active')[0]).toEqual([-300, -7.5]);
  expect(sleepSpans({ ...measured, samples: [] }, { created_at: timeOf(0), current_state: 'idle' })).toEqual([]);
});
