/** The parts of the data grid that are plain functions. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layOut } from '../../console/grid/columns.ts';
import { type Format, writeCells } from '../../console/grid/formats.ts';
import { nextSort, sortedRows } from '../../console/grid/order.ts';
import { cellAt, extendedTo, movedBy, rangeOf, rowsTo } from '../../console/grid/selection.ts';
import { kindOf, noTypeNames, typeName } from '../../console/grid/types.ts';
import { byteCount, hexDump, indentJson, parseArray, type Row } from '../../console/grid/values.ts';

const field = (name: string, dataTypeID: number, dataTypeModifier = -1) => ({ name, dataTypeID, dataTypeModifier });
const int4 = 23;
const numeric = 1700;
const text = 25;

describe('types', () => {
  test('have the names that people write, with lengths and brackets', () => {
    const names = (typeId: number, modifier?: number) => typeName(field('a', typeId, modifier), new Map([[9, 'mood']]));
    expect([names(int4), names(1043, 24), names(numeric, ((10 << 16) | 2) + 4), names(1184, 3), names(1007)]).toEqual([
      'int4',
      'varchar(20)',
      'numeric(10,2)',
      'timestamptz(3)',
      'int4[]',
    ]);
    expect([names(9), names(10)]).toEqual(['mood', '']);
    expect([kindOf(3807), kindOf(16), kindOf(9), kindOf(11, new Map([[11, 'mood[]']]))]).toEqual([
      'array',
      'boolean',
      'text',
      'array',
    ]);
  });
});

describe('values', () => {
  test('of arrays are taken apart, quotes, bounds and all', () => {
    expect(parseArray('{1,NULL,"NULL","a \\"b\\" \\\\ c, {d}"}')).toEqual(['1', null, 'NULL', 'a "b" \\ c, {d}']);
    expect(parseArray('[0:1][1:2]={{1,2},{3,4}}')).toEqual([
      ['1', '2'],
      ['3', '4'],
    ]);
    expect(parseArray('{}')).toEqual([]);
    expect([parseArray('{1,2'), parseArray('no'), parseArray('x{1}'), parseArray('{1} ')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  test('of JSON get an indent and keep every digit', () => {
    expect(indentJson('{"a":[1,12345678901234567890.10],"b":{},"c":"x, {y}\\"","d":[]}')).toBe(
      '{\n  "a": [\n    1,\n    12345678901234567890.10\n  ],\n  "b": {},\n  "c": "x, {y}\\"",\n  "d": []\n}',
    );
    expect([indentJson('{a}'), indentJson('12'), indentJson('"a"'), indentJson('[1')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    fc.assert(
      fc.property(fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue())), (value) => {
        const json = JSON.stringify(value);
        expect(JSON.parse(indentJson(json) ?? '')).toEqual(JSON.parse(json));
      }),
    );
  });

  test('of bytes are dumped with their places and letters, as far as asked', () => {
    expect([byteCount('\\x6869'), byteCount('\\x'), byteCount('abc'), byteCount('\\x6')]).toEqual([2, 0, null, null]);
    const dump = hexDump(`\\x${'61'.repeat(17)}00`, 64).split('\n');
    expect(dump).toHaveLength(2);
    expect(dump[0]).toBe(`00000000  ${'61 '.repeat(15)}61  ${'a'.repeat(16)}`);
    expect(dump[1]).toMatch(/^00000010 {2}61 00 +a\.$/);
    expect(hexDump('\\x616263', 2)).toMatch(/ab$/);
  });
});

describe('cells', () => {
  const fields = [field('id', int4), field('note', text), field('ok', 16), field('tags', 1009), field('data', 3802)];
  const rows: Row[] = [
    ['1', 'it\'s "so", \\ yes', 't', '{a,NULL}', '{"x":1}'],
    [null, '', 'f', null, null],
  ];
  const write = (format: Format) => writeCells({ fields, rows, table: '"t"' }, format);

  test('become CSV that tells NULL from an empty text', () => {
    expect(write('csv')).toBe(
      'id,note,ok,tags,data\r\n1,"it\'s ""so"", \\ yes",t,"{a,NULL}","{""x"":1}"\r\n,"",f,,\r\n',
    );
  });

  test('become JSON with the types that JSON has', () => {
    expect(JSON.parse(write('json'))).toEqual([
      { id: 1, note: 'it\'s "so", \\ yes', ok: true, tags: ['a', null], data: { x: 1 } },
      { id: null, note: '', ok: false, tags: null, data: null },
    ]);
    const numbers = { fields: [field('n', numeric), field('n', numeric)], rows: [['12345678901234567890.10', 'NaN']] };
    expect(writeCells({ ...numbers, table: 't' }, 'json')).toBe(
      '[\n  {"n": 12345678901234567890.10, "n_2": "NaN"}\n]\n',
    );
  });

  test('become statements that insert them', () => {
    expect(write('sql')).toBe(
      'insert into "t" ("id", "note", "ok", "tags", "data") values\n' +
        "  (1, E'it''s \"so\", \\\\ yes', true, '{a,NULL}', '{\"x\":1}'),\n  (null, '', false, null, null);\n",
    );
    const many = writeCells(
      { fields: [field('n', int4)], rows: Array.from({ length: 501 }, () => ['1']), table: 't' },
      'sql',
    );
    expect(many.match(/insert into t/g)).toHaveLength(2);
  });

  test('become text for a spreadsheet, and one alone its value', () => {
    expect(writeCells({ fields: [field('a', text)], rows: [['x\t"y"']], table: 't' }, 'text')).toBe('x\t"y"');
    expect(write('text').split('\n')).toEqual([
      '1\t"it\'s ""so"", \\ yes"\ttrue\t{a,NULL}\t"{""x"":1}"',
      '\t\tfalse\t\t',
    ]);
  });
});

describe('an order', () => {
  const orderOf = (values: (string | null)[], kind: 'number' | 'text' | 'moment', isDescending = false) =>
    [
      ...sortedRows(
        values.map((value) => [value]),
        { column: 0, isDescending },
        kind,
      ),
    ].map((at) => values[at]);

  test('of numbers is by their size, whatever their length, with NULL where Postgres has it', () => {
    expect(orderOf(['10', null, '9', '-1', 'NaN', '1e3'], 'number')).toEqual(['-1', '9', '10', '1e3', 'NaN', null]);
    expect(orderOf(['1', null, '2'], 'number', true)).toEqual([null, '2', '1']);
    expect(orderOf(['9007199254740993', '9007199254740992'], 'number')).toEqual([
      '9007199254740992',
      '9007199254740993',
    ]);
  });

  test('of moments knows time zones, infinity and years before ours', () => {
    const moments = [
      '2026-01-01 02:30:00+02',
      '2026-01-01 01:00:00+00',
      'infinity',
      '0044-03-15 BC',
      '2025-12-31',
      '12026-01-01',
    ];
    expect(orderOf(moments, 'moment')).toEqual([
      '0044-03-15 BC',
      '2025-12-31',
      '2026-01-01 02:30:00+02',
      '2026-01-01 01:00:00+00',
      '12026-01-01',
      'infinity',
    ]);
  });

  test('leaves equals as they were, and goes from none to ascending, descending and none', () => {
    expect([...sortedRows([['b'], ['a'], ['b'], ['a']], { column: 0, isDescending: true }, 'text')]).toEqual([
      0, 2, 1, 3,
    ]);
    const ascending = nextSort(null, 2);
    const descending = nextSort(ascending, 2);
    expect([ascending, descending, nextSort(descending, 2), nextSort(descending, 1)]).toEqual([
      { column: 2, isDescending: false },
      { column: 2, isDescending: true },
      null,
      { column: 1, isDescending: false },
    ]);
  });
});

describe('a selection', () => {
  const size = { rows: 100, columns: 5, page: 20 };
  const press = (key: string, from = cellAt({ row: 50, column: 2 }), shiftKey = false, isCommand = false) =>
    movedBy({ key, shiftKey, isCommand }, from, size);

  test('moves by the keys of every grid, and stays inside', () => {
    const active = (key: string, isCommand = false) => press(key, undefined, false, isCommand)?.active;
    expect([active('ArrowUp'), active('PageDown'), active('End'), active('Home', true), active('End', true)]).toEqual([
      { row: 49, column: 2 },
      { row: 70, column: 2 },
      { row: 50, column: 4 },
      { row: 0, column: 0 },
      { row: 99, column: 4 },
    ]);
    expect(press('ArrowUp', cellAt({ row: 0, column: 0 }))?.active).toEqual({ row: -1, column: 0 });
    expect(press('ArrowLeft', cellAt({ row: 0, column: 0 }))?.active).toEqual({ row: 0, column: 0 });
    expect(press('x')).toBeNull();
  });

  test('grows with Shift, takes whole rows, and everything', () => {
    const grown = press('ArrowRight', press('ArrowDown', undefined, true) ?? undefined, true);
    expect(grown && rangeOf(grown, 5)).toEqual({ top: 50, bottom: 51, left: 2, right: 3 });
    const all = press('a', undefined, false, true);
    expect(all && rangeOf(all, 5)).toEqual({ top: 0, bottom: 99, left: 0, right: 4 });
    expect(rangeOf(rowsTo(cellAt({ row: 7, column: 3 }), 4), 5)).toEqual({ top: 4, bottom: 7, left: 0, right: 4 });
    expect(extendedTo(cellAt({ row: -1, column: 1 }), { row: 3, column: 1 })).toEqual(cellAt({ row: 3, column: 1 }));
  });
});

test('pinned columns stand first, and each column knows where it begins', () => {
  const fields = [field('a', int4), field('b', text), field('c', text)];
  const layout = layOut({ fields, names: noTypeNames, widths: [60, 100, 80], pinned: new Set([2]), numbersWidth: 40 });
  expect(layout.columns.map(({ name, left }) => [name, left])).toEqual([
    ['c', 40],
    ['a', 120],
    ['b', 180],
  ]);
  expect(layout).toMatchObject({ pinnedCount: 1, fixedWidth: 120, width: 280 });
});
