import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createWriter, type OutputFormat, renderRecord, renderTable } from './writer.ts';

const rows = [
  { id: 7, name: 'short', used: null },
  { id: 1234, name: 'a longer näme', used: 'today' },
];
const columns = { id: 'id', name: 'name', used: 'last used' };

function printed(format: OutputFormat, use: (writer: ReturnType<typeof createWriter>) => void): string {
  const stream = new PassThrough();
  use(createWriter(stream, format));
  return String(stream.read());
}

describe('tables', () => {
  test('are aligned, say - for nothing, and have no blanks at the end of a line', () => {
    expect(renderTable(rows, columns)).toBe(
      ['ID    NAME           LAST USED', '7     short          -', '1234  a longer näme  today'].join('\n'),
    );
  });

  test('show only the columns that were asked for, in their order', () => {
    expect(renderTable(rows, { name: 'name', id: 'number' }).split('\n')[0]).toBe('NAME           NUMBER');
  });

  test('cannot be repainted by a name', () => {
    expect(renderTable([{ name: 'a\u001b[2Jb\nc' }], { name: 'name' })).toBe('NAME\na?[2Jb?c');
  });

  test('give way to a sentence when there is nothing', () => {
    expect(printed('table', (writer) => writer.list([], columns, 'There are none.'))).toBe('There are none.\n');
  });
});

describe('records', () => {
  test('have a line for each field that is there', () => {
    expect(renderRecord({ id: 1, name: undefined, key: 'k' }, { id: 'id', name: 'name', key: 'the key' })).toBe(
      ['id:       1', 'the key:  k'].join('\n'),
    );
  });
});

describe('JSON', () => {
  test('is whole, and without remarks', () => {
    const text = printed('json', (writer) => {
      writer.list(rows, { id: 'id' }, 'There are none.');
      writer.remark('for people');
    });
    expect(JSON.parse(text)).toEqual(rows);
  });

  test('of nothing is an empty list', () => {
    expect(printed('json', (writer) => writer.list([], columns, 'There are none.'))).toBe('[]\n');
  });
});
