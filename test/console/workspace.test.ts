/** What stands behind the SQL editor and the tables, as plain functions. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readPlan } from '../../console/sql/plan.ts';
import { QueryTabs, type SavedQueries } from '../../console/sql/query-tabs.ts';
import {
  addRow,
  changesSql,
  countChanges,
  editCell,
  noChanges,
  toggleRows,
  withChanges,
} from '../../console/tables/changes.ts';
import { conditionOf, pageSql, readFilters, rowsSql } from '../../console/tables/filters.ts';

describe('a plan', () => {
  const node = (type: string, facts: object, Plans: object[] = []) => ({ 'Node Type': type, ...facts, Plans });

  test('tells what each step takes itself, and where rows were not expected', () => {
    const scan = node('Seq Scan', {
      'Total Cost': 40,
      'Plan Rows': 1,
      'Actual Total Time': 2,
      'Actual Rows': 50,
      'Actual Loops': 3,
    });
    const join = {
      'Join Type': 'Left',
      'Total Cost': 100,
      'Plan Rows': 60,
      'Actual Total Time': 10,
      'Actual Rows': 60,
    };
    const root = node('Hash Join', { ...join, 'Actual Loops': 1 }, [scan]);
    const plan = readPlan(JSON.stringify([{ Plan: root, 'Planning Time': 0.5, 'Execution Time': 11 }]));
    expect(plan).toMatchObject({ isMeasured: true, planningMs: 0.5, executionMs: 11 });
    expect(plan.root).toMatchObject({ title: 'Hash Left Join', selfMs: 4, share: 0.4, rows: 60, misestimate: null });
    expect(plan.root.steps[0]).toMatchObject({ selfMs: 6, share: 0.6, rows: 150, loops: 3, misestimate: 50 });
  });

  test('without measures tells costs', () => {
    const root = node('Sort', { 'Total Cost': 100, 'Plan Rows': 5, 'Sort Key': ['a', 'b'] }, [
      node('Seq Scan', { 'Relation Name': 't', 'Total Cost': 75, 'Plan Rows': 5, Filter: '(a > 1)' }),
    ]);
    const { root: sort, isMeasured } = readPlan(JSON.stringify([{ Plan: root }]));
    expect(isMeasured).toBe(false);
    expect(sort).toMatchObject({ selfCost: 25, share: 0.25, rows: null, conditions: ['sort by a, b'] });
    expect(sort.steps[0]).toMatchObject({ on: 't', conditions: ['filter (a > 1)'] });
  });
});

describe('filters', () => {
  const kindOf = (column: string) => (column === 'id' ? 'number' : 'text');
  const source = { name: '"t"', kindOf, primaryKey: ['id'] } as const;

  test('become conditions that hold whatever is typed', () => {
    const of = (column: string, operator: '=' | 'contains' | 'is null', value: string) =>
      conditionOf({ column, operator, value }, kindOf(column));
    expect(of('id', '=', '7')).toBe('"id" = 7');
    expect(of('id', '=', '7 or true')).toBe(`"id" = '7 or true'`);
    expect(of('a"b', '=', "it's")).toBe(`"a""b" = 'it''s'`);
    expect(of('name', 'contains', '5%_\\')).toBe(`"name" ilike E'%5\\\\%\\\\_\\\\\\\\%'`);
    expect(of('id', 'contains', '5')).toBe(`"id"::text ilike '%5%'`);
    expect(of('name', 'is null', 'ignored')).toBe('"name" is null');
  });

  test('and sorting become a statement whose pages do not overlap', () => {
    const filters = [{ column: 'id', operator: '>', value: '1' } as const];
    expect(rowsSql(source, { filters: [], sort: null, page: 1 })).toBe('select * from "t"\norder by "id"');
    const sort = { column: 'name', isDescending: true };
    const sql = rowsSql(source, { filters, sort, page: 1 });
    expect(sql).toBe('select * from "t"\nwhere "id" > 1\norder by "name" desc, "id"');
    expect([pageSql('x', 1), pageSql('x', 3)]).toEqual(['x\nlimit 501', 'x\nlimit 501 offset 1000']);
  });

  test('of an address are taken only if they are some', () => {
    const good = { column: 'a', operator: '=', value: 'x' };
    expect(readFilters([good, null, 7, { ...good, operator: 'drop' }, { column: 1 }])).toEqual([good]);
    expect(readFilters('no')).toEqual([]);
  });
});

describe('changes of rows', () => {
  const shape = {
    name: '"t"',
    columns: ['id', 'note'],
    primaryKey: ['id'],
    kindOf: (column: string) => (column === 'id' ? ('number' as const) : ('text' as const)),
  };
  const rows = [
    ['1', 'a'],
    ['2', null],
  ];

  test('are staged, shown in place, and written by key', () => {
    let changes = editCell(shape, rows, noChanges, { row: 0, column: 1, value: null });
    changes = toggleRows(shape, rows, changes, [1]);
    changes = editCell(shape, rows, addRow(changes), { row: 2, column: 1, value: 'new' });
    expect(withChanges(shape, rows, changes).rows).toEqual([
      ['1', null],
      ['2', null],
      [null, 'new'],
    ]);
    expect([...withChanges(shape, rows, changes).states.values()].map(({ kind }) => kind)).toEqual([
      'changed',
      'deleted',
      'new',
    ]);
    expect(changesSql(shape, changes)).toEqual([
      'delete from "t" where "id" = 2',
      'update "t" set "note" = null where "id" = 1',
      `insert into "t" ("note") values ('new')`,
    ]);
    expect(countChanges(changes)).toBe(3);
  });

  test('that are taken back are none', () => {
    const changed = editCell(shape, rows, noChanges, { row: 0, column: 1, value: 'b' });
    expect(countChanges(editCell(shape, rows, changed, { row: 0, column: 1, value: 'a' }))).toBe(0);
    const deleted = toggleRows(shape, rows, noChanges, [0, 1]);
    expect(countChanges(toggleRows(shape, rows, deleted, [0, 1]))).toBe(0);
    expect(countChanges(toggleRows(shape, rows, addRow(noChanges), [2]))).toBe(0);
  });
});

describe('open queries', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A server in memory, which may refuse. */
  function world() {
    const kept = new Map<string, Awaited<ReturnType<SavedQueries['create']>>>();
    const drafts = new Map<string, string>();
    const state = { isDown: false };
    const answer = <T>(value: T) => (state.isDown ? Promise.reject(new Error('offline')) : Promise.resolve(value));
    const server: SavedQueries = {
      create: (query) => {
        if (state.isDown) return Promise.reject(new Error('offline'));
        const saved = { ...query, id: `q${kept.size + 1}`, revision: 1, created_at: '', updated_at: '' };
        kept.set(saved.id, saved);
        return answer(saved);
      },
      update: (id, { revision, ...change }) => {
        const before = kept.get(id);
        if (state.isDown) return Promise.reject(new Error('offline'));
        if (before === undefined || (revision !== undefined && revision !== before.revision)) return answer(null);
        const saved = { ...before, ...change, revision: before.revision + 1 };
        kept.set(id, saved);
        return answer(saved);
      },
      remove: (id) => answer(kept.delete(id)),
    };
    const storage = {
      getItem: (key: string) => drafts.get(key) ?? null,
      setItem: (key: string, value: string) => void drafts.set(key, value),
      removeItem: (key: string) => void drafts.delete(key),
    };
    return { kept, drafts, state, open: () => new QueryTabs(server, storage, 'p', [...kept.values()]) };
  }
  const chosen = (tabs: QueryTabs) => tabs.view().chosen;
  const settle = () => vi.advanceTimersByTimeAsync(10_000);

  test('are kept a moment after the last key, once, and an untouched one is not', async () => {
    const { kept, open } = world();
    const tabs = open();
    tabs.setText(chosen(tabs), 'sel');
    tabs.setText(chosen(tabs), 'select 1');
    expect(tabs.view().save.kind).toBe('waiting');
    await settle();
    expect([...kept.values()]).toMatchObject([{ name: 'Query 1', query: 'select 1', revision: 1 }]);
    expect(tabs.view().save.kind).toBe('saved');
    tabs.add();
    await settle();
    expect(kept.size).toBe(1);
  });

  test('survive an outage and a reload in the middle of it', async () => {
    const { kept, state, drafts, open } = world();
    const tabs = open();
    state.isDown = true;
    tabs.setText(chosen(tabs), 'select 1');
    await settle();
    expect(tabs.view().save).toEqual({ kind: 'failed', reason: 'offline' });
    state.isDown = false;
    const after = open();
    expect(after.view().tabs.map(({ text }) => text)).toEqual(['select 1']);
    await settle();
    expect([...kept.values()].map(({ query }) => query)).toEqual(['select 1']);
    expect(drafts.size).toBe(0);
  });

  test('that somebody else has changed become a copy, and nothing is lost', async () => {
    const { kept, open } = world();
    const tabs = open();
    tabs.setText(chosen(tabs), 'select 1');
    await settle();
    const [theirs] = kept.values();
    if (theirs !== undefined) kept.set(theirs.id, { ...theirs, query: 'theirs', revision: 2 });
    tabs.setText(chosen(tabs), 'mine');
    await settle();
    expect([...kept.values()].map(({ name, query }) => [name, query])).toEqual([
      ['Query 1', 'theirs'],
      ['Query 1 (copy)', 'mine'],
    ]);
    expect(tabs.view().tabs).toMatchObject([{ id: 'q2', name: 'Query 1 (copy)' }]);
  });

  test('are closed and stay saved, unless they are empty', async () => {
    const { kept, open } = world();
    const tabs = open();
    tabs.setText(chosen(tabs), 'select 1');
    await tabs.close(chosen(tabs));
    await settle();
    expect([...kept.values()]).toMatchObject([{ is_open: false, query: 'select 1' }]);
    expect(tabs.view().tabs.map(({ text }) => text)).toEqual(['']);
    const [saved] = kept.values();
    if (saved !== undefined) tabs.open(saved);
    await settle();
    expect([...kept.values()]).toMatchObject([{ is_open: true }]);
    tabs.setText(chosen(tabs), ' ');
    await tabs.close(chosen(tabs));
    await settle();
    expect(kept.size).toBe(0);
  });
});
