import { expect, test } from 'vitest';
import { mountsUnder, parseMountPoints } from './mounts.ts';

const sample = String.raw`22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:28 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
40 22 7:0 / /data\040home/it\134s/temp rw,nosuid,nodev,noexec,noatime shared:9 master:2 - ext4 /dev/loop0 rw
41 40 7:1 / /data\040home/it\134s/temp rw - ext4 /dev/loop1 rw
`;

test('mount points are read with their blanks and backslashes', () => {
  expect(parseMountPoints(sample)).toEqual(['/', '/proc', '/data home/it\\s/temp', '/data home/it\\s/temp']);
  expect(parseMountPoints('')).toEqual([]);
});

test.runIf(process.platform === 'linux')('only what is under the directory is found', async () => {
  expect(await mountsUnder('/proc')).toContain('/proc');
  expect(await mountsUnder('/pro')).toEqual([]);
});
