import { describe, expect, test } from 'vitest';
import { isLsn, lsnBytes, lsnText, readTime } from './moments.ts';

describe('positions in the log', () => {
  test.each([
    ['0/0', 0n],
    ['0/1DE2850', 0x1de2850n],
    ['1/0', 0x1_0000_0000n],
    ['FFFFFFFF/FFFFFFFF', 0xffff_ffff_ffff_ffffn],
  ])('%s is %d bytes', (text, bytes) => {
    expect(lsnBytes(text)).toBe(bytes);
    expect(lsnText(bytes)).toBe(text);
  });

  test.each(['', '0', '0/', '/0', '0/G', '0/123456789', '0/0 ', '-1/0'])('%j is none', (text) => {
    expect(isLsn(text)).toBe(false);
    expect(() => lsnBytes(text)).toThrow(/not an LSN/);
  });
});

describe('times', () => {
  test.each([
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
    ['2026-01-31t12:00:00.5z', '2026-01-31T12:00:00.5Z'],
    ['2026-01-31 12:00:00.123456789+02:00', '2026-01-31T10:00:00.123456Z'],
    ['2026-01-31T00:10:00.000-01:30', '2026-01-31T01:40:00.000Z'],
  ])('%s is %s', (text, time) => {
    expect(readTime(text)).toBe(time);
  });

  test.each([
    '',
    'now',
    '2026-01-31',
    '2026-01-31T12:00Z',
    '2026-01-31T12:00:00',
    '2026-13-01T00:00:00Z',
    '12026-01-31T12:00:00Z',
  ])('%j is none', (text) => {
    expect(readTime(text)).toBeNull();
  });
});
