/** The parts of the console that are plain functions. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffLines } from '../../console/pages/diff-lines.ts';
import { createProjectRequest, hidePassword, jdbcUrl, snippetsFor } from '../../console/pages/snippets.ts';
import { groupTransactions, splitStatements } from '../../console/sql/split.ts';
import { bytes, duration, milliseconds, relative } from '../../console/ui/format.ts';
import { sizes as offered, sizesUpTo } from '../../console/ui/sizes.ts';
import { sizes } from '../../src/core/sizing.ts';

describe('statements', () => {
  const texts = (sql: string) => splitStatements(sql).map(({ text }) => text);

  test('end at semicolons, but not at those inside something', () => {
    expect(texts('select 1; select 2')).toEqual(['select 1', 'select 2']);
    expect(texts("select ';', 'it''s;'; select 2;")).toEqual(["select ';', 'it''s;'", 'select 2']);
    expect(texts('select ";" from "a;b"')).toEqual(['select ";" from "a;b"']);
    expect(texts('select 1 -- one; two\n; select 2')).toEqual(['select 1 -- one; two', 'select 2']);
    expect(texts('select /* ; */ 1')).toEqual(['select /* ; */ 1']);
    expect(texts('do $$ begin; end $$; select $a$ ; $$ ; $a$')).toEqual([
      'do $$ begin; end $$',
      'select $a$ ; $$ ; $a$',
    ]);
    expect(texts("select E'\\';'; select 2")).toEqual(["select E'\\';'", 'select 2']);
    expect(texts('; ;\n -- nothing\n;')).toEqual([]);
    expect(texts("select 'open")).toEqual(["select 'open"]);
  });

  test('may hold comments inside comments, and operators right before a comment', () => {
    expect(texts('select 1 /* a /* b; */ ; c */; select 2')).toEqual(['select 1 /* a /* b; */ ; c */', 'select 2']);
    expect(texts('select *-- all; of it\nfrom t; select 2*/* ; */3')).toEqual([
      'select *-- all; of it\nfrom t',
      'select 2*/* ; */3',
    ]);
    expect(texts('/* only; a comment */; -- another;')).toEqual([]);
    expect(texts('select 1; /* open; select 2')).toEqual(['select 1', '/* open; select 2']);
  });

  test('know a backslash only in strings that have an E', () => {
    expect(texts("select 'a\\'; select 2")).toEqual(["select 'a\\'", 'select 2']);
    expect(texts("select e'a\\'; select 2'; select 3")).toEqual(["select e'a\\'; select 2'", 'select 3']);
    expect(texts("select U&'d\\0061t;', b'01', x'1F'; select 2")).toEqual([
      "select U&'d\\0061t;', b'01', x'1F'",
      'select 2',
    ]);
  });

  test('are cut even where they are wrong, so that Postgres can say what is', () => {
    expect(texts('select (1; select 2); selüct ä; ]; $1')).toEqual(['select (1', 'select 2)', 'selüct ä', ']', '$1']);
  });

  test('keep the body of a function whole', () => {
    const body = 'begin atomic insert into t values (1); select case when a then 1 else 2 end; END';
    const made = `create function f() returns int ${body}`;
    expect(texts(`${made}; select 2; begin; end; select 3`)).toEqual([made, 'select 2', 'begin', 'end', 'select 3']);
    const quoted = 'create function g() returns int language sql as $f$ select 1; $f$';
    expect(texts(`${quoted}; select 2`)).toEqual([quoted, 'select 2']);
  });

  test('of a transaction belong together', () => {
    const groups = (sql: string) =>
      groupTransactions(splitStatements(sql)).map((group) => group.map(({ text }) => text));
    expect(groups('select 1; begin; select 2; rollback to a; commit; select 3')).toEqual([
      ['select 1'],
      ['begin', 'select 2', 'rollback to a', 'commit'],
      ['select 3'],
    ]);
    expect(groups('/* a */ START transaction; select 2; ROLLBACK; begin; select 3')).toEqual([
      ['/* a */ START transaction', 'select 2', 'ROLLBACK'],
      ['begin', 'select 3'],
    ]);
    expect(groups('commit; select 1; beginning')).toEqual([['commit'], ['select 1'], ['beginning']]);
  });

  test('say where they begin, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom("'", '"', ';', '$', '$$', '-', '--', '/*', '*/', 'a', ' ', '\n', '\\', 'E'),
        }),
        (sql) => {
          for (const { text, from } of splitStatements(sql)) expect(sql.slice(from, from + text.length)).toBe(text);
        },
      ),
    );
  });
});

describe('snippets', () => {
  const uri = 'postgresql://owner:s%2Fcret@localhost:7432/db?options=endpoint%3Dep-x';

  test('all lead to the same place, and hide the password everywhere', () => {
    for (const { code } of snippetsFor(uri, 'http://localhost:7070')) {
      expect(code).toContain('ep-x');
      expect(code).toMatch(/s%2Fcret/);
      const hidden = hidePassword(code, uri);
      expect(hidden).not.toContain('cret');
      expect(hidden).toContain('••••');
    }
  });

  test('for a first request need nothing but a key in the environment', () => {
    const lines = createProjectRequest('http://localhost:7070/api/v2').split(' \\\n');
    expect(lines[0]).toBe('curl -X POST http://localhost:7070/api/v2/projects');
    expect(lines.slice(1).every((line) => line.startsWith('  -'))).toBe(true);
    expect(JSON.parse(lines.at(-1)?.split("'")[1] ?? '')).toEqual({ project: { name: 'hello' } });
  });

  test('for JDBC have user and password as parameters', () => {
    expect(jdbcUrl(uri)).toBe(
      'jdbc:postgresql://localhost:7432/db?options=endpoint%3Dep-x&user=owner&password=s%2Fcret',
    );
  });
});

test('numbers and times read well', () => {
  expect([bytes(0), bytes(1023), bytes(1536), bytes(300 * 1024 ** 2)]).toEqual(['0 B', '1023 B', '1.5 KB', '300 MB']);
  expect([milliseconds(3.2), milliseconds(2_340), milliseconds(90_000)]).toEqual(['3 ms', '2.3 s', '2 min']);
  expect([
    duration(59),
    duration(300),
    duration(5_400),
    duration(604_800),
    duration(86_400),
    duration(130_000),
  ]).toEqual(['59 s', '5 min', '1.5 h', '7 days', '1 day', '1.5 days']);
  const now = Date.parse('2026-01-01T00:00:00Z');
  expect(relative('2025-12-31T23:57:00Z', now)).toBe('3 min ago');
  expect(relative('2026-01-01T02:00:00Z', now)).toBe('in 2 h');
  expect(relative('2026-01-01T00:00:01Z', now)).toBe('just now');
});

test('the sizes that are offered are those that the API takes', () => {
  expect(offered).toEqual(sizes);
  expect(sizesUpTo(2)).toEqual([0.25, 0.5, 1, 2]);
  expect(sizesUpTo(0)).toEqual(sizes);
});

test('a schema diff is shown without the headings of pg_dump', () => {
  const text = ['--- main', '+++ feature-x', '@@ -1,3 +1,9 @@', ' ', '+--', '+-- Name: t; Type: TABLE', '+--', '+', '+']
    .concat('+CREATE TABLE t ();', '+', '+', '-ALTER TABLE u ADD x int;', ' -- a heading', '+a -- b')
    .join('\n');
  const expected = ['@@ -1,3 +1,9 @@', ' ', '+CREATE TABLE t ();', '+', '-ALTER TABLE u ADD x int;', '+a -- b'];
  expect(diffLines(text)).toEqual(expected);
});
