import { expect, test } from 'vitest';
import { parseExtents, unionBytes } from './extents.ts';

test('what filefrag prints is read: blocks, what is shared of them, pieces, data without blocks', () => {
  const text = [
    'Filesystem type is: 58465342',
    'File size of /d/one is 24576 (6 blocks of 4096 bytes)',
    ' ext:     logical_offset:        physical_offset: length:   expected: flags:',
    '   0:        0..       1:     262154..    262155:      2:             shared',
    '   1:        2..       5:         40..        43:      4:     262156: last,eof',
    '/d/one: 2 extents found',
    'File size of /d/two is 120 (1 block of 4096 bytes)',
    ' ext:     logical_offset:        physical_offset: length:   expected: flags:',
    '   0:        0..    4095:          0..      4095:   4096:             last,not_aligned,inline,eof',
    '/d/two: 1 extent found',
    'File size of /d/three is 0 (0 blocks of 4096 bytes)',
    '/d/three: 0 extents found',
  ].join('\n');
  expect(parseExtents(text)).toEqual({
    bytes: 6 * 4096 + 4096,
    shared: [[262154 * 4096, 262156 * 4096]],
    sharedBytes: 2 * 4096,
    piecesMax: 2,
  });
});

test('blocks that several have are counted once', () => {
  const ranges = [
    [10, 20],
    [0, 5],
    [15, 30],
    [12, 14],
    [40, 41],
  ] as const;
  expect(unionBytes(ranges)).toBe(5 + 20 + 1);
  expect(unionBytes([])).toBe(0);
});
