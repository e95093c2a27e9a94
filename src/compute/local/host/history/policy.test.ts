import { describe, expect, test } from 'vitest';
import { lsnText } from '../../../../lib/moments.ts';
import { segmentName } from '../postgres/wal-segments.ts';
import type { BaseRecord, HistoryState } from './files.ts';
import { type BaseQuestion, basesToDrop, isBaseDue, isLogUnneeded, windowOf } from './policy.ts';

const megabyte = 1024 ** 2;
const hour = (n: number) => new Date(Date.UTC(2026, 0, 1, n)).toISOString();
const atMegabyte = (n: number) => lsnText(BigInt(n * megabyte));

const base = (change: Partial<BaseRecord> = {}): BaseRecord => ({
  name: 'b',
  timeline: 1,
  start: atMegabyte(16),
  lsn: atMegabyte(17),
  at: hour(1),
  bytes: 40 * megabyte,
  bytesShared: 40 * megabyte,
  isLive: false,
  ...change,
});

describe('a base image is due', () => {
  const ask = (change: Partial<BaseQuestion> & { readonly written: number }) => {
    const { written, ...rest } = change;
    const copied = { at: hour(2), lsn: atMegabyte(17 + written) };
    const usual = { last: base(), copied, timeline: 1, isAwake: true, isShared: true, now: new Date(hour(2)) };
    return isBaseDue({ ...usual, retentionSeconds: 86_400, ...rest });
  };

  test('when there is none, and when the log was interrupted', () => {
    expect(ask({ written: 0, last: undefined })).toBe(true);
    expect(ask({ written: 0, copied: null })).toBe(true);
    expect(ask({ written: 0 })).toBe(false);
  });

  test('by the log since the last one, which is less where blocks are shared and the branch sleeps', () => {
    expect(ask({ written: 511 })).toBe(false);
    expect(ask({ written: 512 })).toBe(true);
    expect(ask({ written: 15, isAwake: false })).toBe(false);
    expect(ask({ written: 16, isAwake: false })).toBe(true);
  });

  test('where it is a whole copy, only for as much log as data, within bounds', () => {
    const copied = (bytes: number, written: number) =>
      ask({ written, isShared: false, last: base({ bytes: bytes * megabyte, bytesShared: 0 }) });
    expect(copied(40, 63)).toBe(false);
    expect(copied(40, 64)).toBe(true);
    expect(copied(1_000, 999)).toBe(false);
    expect(copied(1_000, 1_000)).toBe(true);
    expect(copied(100_000, 4_095)).toBe(false);
    expect(copied(100_000, 4_096)).toBe(true);
  });

  test('when the last one is older than the window, so that log can be given up', () => {
    const [now, last] = [new Date(hour(26)), base({ bytes: 1_000 * megabyte, bytesShared: 0 })];
    expect(ask({ written: 16, now })).toBe(true);
    expect(ask({ written: 64, now, isShared: false, last })).toBe(true);
    expect(ask({ written: 63, now, isShared: false, last })).toBe(false);
  });
});

test('a base image is due when the log has gone on to another timeline', () => {
  const copied = { at: hour(2), lsn: atMegabyte(17) };
  const usual = { last: base(), copied, isAwake: true, isShared: false, now: new Date(hour(2)) };
  expect(isBaseDue({ ...usual, timeline: 1, retentionSeconds: 86_400 })).toBe(false);
  expect(isBaseDue({ ...usual, timeline: 2, retentionSeconds: 86_400 })).toBe(true);
});

describe('what is given up', () => {
  const bases = [1, 5, 9].map((n) => base({ name: `b${n}`, at: hour(n), start: atMegabyte(16 * n) }));
  const names = (found: readonly BaseRecord[]) => found.map(({ name }) => name);

  test('base images before the one from which the window begins', () => {
    expect(names(basesToDrop(bases, hour(0)))).toEqual([]);
    expect(names(basesToDrop(bases, hour(1)))).toEqual([]);
    expect(names(basesToDrop(bases, hour(6)))).toEqual(['b1']);
    expect(names(basesToDrop(bases, hour(9)))).toEqual(['b1', 'b5']);
    expect(names(basesToDrop(bases, hour(20)))).toEqual(['b1', 'b5']);
  });

  test('where the clock has gone back, base images before it in the log, whatever their time', () => {
    const ahead = base({ name: 'ahead', at: hour(30), start: atMegabyte(32) });
    const [b1, ...later] = bases as [BaseRecord, BaseRecord, BaseRecord];
    expect(names(basesToDrop([b1, ahead, ...later], hour(6)))).toEqual(['b1', 'ahead']);
  });

  test('log before every base image that is left', () => {
    const left = bases.slice(1);
    expect(isLogUnneeded(segmentName(1, 4), left)).toBe(true);
    expect(isLogUnneeded(segmentName(1, 5), left)).toBe(false);
    expect(isLogUnneeded(segmentName(1, 8), left)).toBe(false);
    expect(isLogUnneeded(segmentName(1, 4), bases)).toBe(false);
    expect(isLogUnneeded(segmentName(2, 4), left)).toBe(true);
  });
});

describe('the window', () => {
  const state: HistoryState = {
    branchId: 'br-a',
    pgVersion: 17,
    timeline: 1,
    copied: { at: hour(9), lsn: atMegabyte(90) },
    gaps: [],
    lostSince: null,
  };
  const marks = [2, 3, 4].map((n) => ({ at: hour(n), lsn: atMegabyte(10 * n) }));

  test('begins with the first base image, or with what is kept, and ends with the log', () => {
    const facts = { state, bases: [base()], marks };
    expect(windowOf({ ...facts, keepFrom: hour(0) })).toEqual({
      from: { at: hour(1), lsn: base().lsn },
      until: state.copied,
    });
    expect(windowOf({ ...facts, keepFrom: hour(3) }).from).toEqual({ at: hour(3), lsn: atMegabyte(30) });
  });

  test('is empty without a base image, and ends where the log was lost', () => {
    expect(windowOf({ state, bases: [], marks, keepFrom: hour(0) })).toEqual({ from: null, until: null });
    const lost = { ...state, copied: null, lostSince: { at: hour(4), lsn: atMegabyte(40) } };
    expect(windowOf({ state: lost, bases: [base()], marks, keepFrom: hour(0) }).until).toEqual(lost.lostSince);
  });
});
