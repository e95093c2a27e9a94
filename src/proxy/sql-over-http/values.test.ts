/** JSON to Postgres text and back, without losing a digit. */
import { describe, expect, it } from 'vitest';
import { parameterText, parseJson } from './parameters.ts';
import { jsonOfValue } from './values.ts';

describe('parameters', () => {
  const params = (json: string) => (parseJson(json) as unknown[]).map(parameterText);

  it('are text, null stays null', () => {
    expect(params('["a", "", null, true, false, 1, -1.5, 1e3]')).toEqual([
      'a',
      '',
      null,
      'true',
      'false',
      '1',
      '-1.5',
      '1000',
    ]);
  });

  it('keep every digit of a number, wherever it stands', () => {
    expect(params('[9007199254740993, -9223372036854775808, 0.12345678901234567890, "9007199254740993"]')).toEqual([
      '9007199254740993',
      '-9223372036854775808',
      '0.12345678901234567890',
      '9007199254740993',
    ]);
    expect(params('[[9007199254740993], {"a": 9007199254740993, "b": "12345678901234567890"}]')).toEqual([
      '{"9007199254740993"}',
      '{"a":9007199254740993,"b":"12345678901234567890"}',
    ]);
  });

  it('of array kind are array literals', () => {
    expect(params('[[], [1, null, true], [[1],[2]], ["a\\"b\\\\c,{}", "null", ""], [{"a": 1}]]')).toEqual([
      '{}',
      '{1,NULL,true}',
      '{{1},{2}}',
      '{"a\\"b\\\\c,{}","null",""}',
      '{"{\\"a\\":1}"}',
    ]);
  });

  it('of object kind are JSON', () => {
    expect(params('[{"a": [1, null, "x"]}]')).toEqual(['{"a":[1,null,"x"]}']);
  });

  it('that are no JSON are refused, long numbers or not', () => {
    for (const text of ['[01234567890123456]', '[1234567890123456e]', '[-]', '{', '"a']) {
      expect(() => parseJson(text), text).toThrow(SyntaxError);
    }
  });
});

describe('values', () => {
  it('are JSON of their type, and text where a double could not hold them', () => {
    const cases: [string, number, unknown][] = [
      ['t', 16, true],
      ['f', 16, false],
      ['32767', 21, 32767],
      ['-5', 23, -5],
      ['9223372036854775807', 20, '9223372036854775807'],
      ['1.50', 1700, '1.50'],
      ['1.5', 701, 1.5],
      ['1e+20', 701, 1e20],
      ['NaN', 701, 'NaN'],
      ['-Infinity', 700, '-Infinity'],
      ['{"a": [1]}', 3802, { a: [1] }],
      ['null', 114, null],
      ['text "quoted"\n', 25, 'text "quoted"\n'],
      ['(1,2)', 600, '(1,2)'],
    ];
    for (const [text, type, value] of cases) expect(JSON.parse(jsonOfValue(text, type)), text).toEqual(value);
    expect(jsonOfValue('9007199254740993', 3802)).toBe('9007199254740993');
  });

  it('of array types are arrays, in every form that Postgres prints', () => {
    const cases: [string, number, unknown][] = [
      ['{}', 1007, []],
      ['{1,NULL,3}', 1007, [1, null, 3]],
      [
        '{{1,2},{3,4}}',
        1007,
        [
          [1, 2],
          [3, 4],
        ],
      ],
      ['[0:1]={7,8}', 1007, [7, 8]],
      ['{t,f}', 1000, [true, false]],
      ['{a,"b c","NULL",NULL,"q\\"\\\\{,}"}', 1009, ['a', 'b c', 'NULL', null, 'q"\\{,}']],
      ['{1.5,NaN}', 1022, [1.5, 'NaN']],
      ['{"{\\"a\\": 1}",NULL}', 3807, [{ a: 1 }, null]],
      ['{9223372036854775807}', 1016, ['9223372036854775807']],
      ['{(1,2),(3,4);(5,6),(7,8)}', 1020, '{(1,2),(3,4);(5,6),(7,8)}'],
    ];
    for (const [text, type, value] of cases) expect(JSON.parse(jsonOfValue(text, type)), text).toEqual(value);
  });
});
