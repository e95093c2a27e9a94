import { mkdir, mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { segmentBytes, segmentName } from '../postgres/wal-segments.ts';
import { copyLog, type LogCopy } from './copy-log.ts';
import { historyPaths, writeState } from './files.ts';
import { firstPiece } from './keep-log.ts';

let folder: string;
let copy: LogCopy;
const name = segmentName(1, 1);

/** A segment whose first page says where it begins. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cn-log-'));
  copy = {
    source: join(folder, 'from'),
    target: join(folder, 'to'),
    sourceOwner: null,
    group: process.getgid?.() ?? 0,
  };
  for (const path of [copy.source, copy.target]) await mkdir(path);
  const file = await open(join(copy.source, name), 'w', 0o600);
  const header = Buffer.alloc(16);
  header.writeBigUInt64LE(segmentBytes, 8);
  await file.write(header, 0, 16, 0);
  await file.truncate(Number(segmentBytes));
  await file.close();
});
afterEach(() => rm(folder, { recursive: true }));

const modeOfCopy = async () => ((await stat(join(copy.target, name))).mode & 0o777).toString(8);

test('a copy can be read by its group, also when a whole one takes the place of a part', async () => {
  const at = { timeline: 1, from: segmentBytes };
  await copyLog(copy, { ...at, to: segmentBytes + 4_096n });
  expect(await modeOfCopy()).toBe('640');
  await copyLog(copy, { ...at, to: 2n * segmentBytes });
  expect(await modeOfCopy()).toBe('640');
});

test('a long log is copied in pieces, each as old as what was copied before it', async () => {
  const paths = historyPaths(folder);
  const copied = { at: '2026-01-01T00:00:00.000Z', lsn: '0/2000028' };
  const facts = { branchId: 'br-1', pgVersion: 17, timeline: 1, gaps: [], lostSince: null };
  const end = { timeline: 1, lsn: '0/20000000', at: '2026-01-01T00:00:10.000Z' };
  expect(await firstPiece({ paths }, end)).toBe(end);
  writeState(paths, { ...facts, copied }, null);
  expect(await firstPiece({ paths }, end)).toEqual({ ...end, lsn: '0/12000028', at: copied.at });
  const near = { ...end, lsn: '0/12000028' };
  expect(await firstPiece({ paths }, near)).toBe(near);
  const other = { ...end, timeline: 2 };
  expect(await firstPiece({ paths }, other)).toBe(other);
});
