import { describe, expect, test } from 'vitest';
import { isLsn, lsnBytes, lsnText } from './moments.ts';

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
