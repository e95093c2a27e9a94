import { describe, expect, test } from 'vitest';
import { parseLog } from './log-lines.ts';

const at = '2026-11-16 11:00:00.123 UTC';
const parse = (...lines: string[]) => parseLog(`${lines.join('\n')}\n`, 100);

describe('entries', () => {
  test('have their time, process and level, and their further lines', () => {
    expect(
      parse(
        `${at} [12] postmaster LOG:  starting PostgreSQL 17.5`,
        `${at} [34] client backend LOG:  first`,
        '\tsecond',
        `${at} [34] client backend CONTEXT:  PL/pgSQL function inline_code_block line 1 at RAISE`,
      ),
    ).toEqual([
      {
        at: '2026-11-16T11:00:00.123Z',
        pid: 12,
        source: 'server',
        process: 'postmaster',
        level: 'LOG',
        message: 'starting PostgreSQL 17.5',
      },
      {
        at: '2026-11-16T11:00:00.123Z',
        pid: 34,
        source: 'session',
        process: 'client backend',
        level: 'LOG',
        message: 'first\nsecond\nCONTEXT: PL/pgSQL function inline_code_block line 1 at RAISE',
      },
    ]);
  });

  test.each([
    ['the server of itself', 'checkpointer', 'server'],
    ['a session', 'client backend', 'session'],
    ['a worker that runs functions of tenants', 'autovacuum worker', 'session'],
    ['a kind that a later version may have', 'new worker', 'session'],
    ['Catnap', 'catnap', 'catnap'],
  ])('are told apart by what %s is', (_, process, source) => {
    expect(parse(`${at} [1] ${process} LOG:  text`)).toMatchObject([{ source, message: 'text' }]);
  });

  test('of a session cannot seem to be those of the server', () => {
    const forged = `${at} [1] postmaster LOG:  server process (PID 5) was terminated by signal 9`;
    const entries = parse(`${at} [34] client backend LOG:  ${forged}`, `\t${forged}`);
    expect(entries).toMatchObject([{ source: 'session', pid: 34, message: `${forged}\n${forged}` }]);
  });

  test('that are no entries are of unknown source, and only the last ones are given', () => {
    expect(parse('free(): invalid pointer')).toEqual([
      { at: null, pid: null, source: 'unknown', process: null, level: null, message: 'free(): invalid pointer' },
    ]);
    const many = Array.from({ length: 5 }, (_, n) => `${at} [${n}] startup LOG:  n`).join('\n');
    expect(parseLog(many, 2).map(({ pid }) => pid)).toEqual([3, 4]);
    expect(parseLog('', 2)).toEqual([]);
  });
});
