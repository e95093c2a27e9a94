import { describe, expect, test } from 'vitest';
import type { Moment } from '../../../../lib/moments.ts';
import { NoSuchMomentError } from '../../../interface/driver.ts';
import type { BaseRecord, HistoryState } from './files.ts';
import { planRecovery } from './plan.ts';

const second = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString();
const time = (n: number): Moment => ({ kind: 'time', at: second(n) });
const lsn = (text: string): Moment => ({ kind: 'lsn', lsn: text });

const base = (name: string, at: number, segment: number): BaseRecord => {
  const start = `0/${segment.toString(16).toUpperCase()}000000`;
  const size = { bytes: 1, bytesShared: 1, isLive: false };
  return { name, timeline: 1, start, lsn: start.replace(/000000$/, '000100'), at: second(at), ...size };
};
const state: HistoryState = {
  branchId: 'br-a',
  pgVersion: 17,
  timeline: 1,
  copied: { at: second(50), lsn: '0/9000800' },
  gaps: [],
  lostSince: null,
};
const facts = {
  state,
  bases: [base('early', 10, 2), base('late', 30, 5)],
  marks: [20, 40, 50].map((n, index) => ({ at: second(n), lsn: ['0/3000800', '0/6000800', '0/9000800'][index] ?? '' })),
};
const segments = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `00000001000000000000000${from + index}`);

describe('a recovery', () => {
  test('to a time begins at the base image before it, and reads no log beyond what was there by then', () => {
    expect(planRecovery(facts, time(15))).toEqual({
      base: facts.bases[0],
      segments: segments(2, 3),
      target: { recovery_target_time: second(15).replace('Z', '+00') },
    });
    expect(planRecovery(facts, time(30))).toMatchObject({ base: facts.bases[1], segments: segments(5, 6) });
  });

  test('to a position stops before the record that begins there', () => {
    expect(planRecovery(facts, lsn('0/5000200'))).toEqual({
      base: facts.bases[1],
      segments: segments(5, 6),
      target: { recovery_target_lsn: '0/5000200', recovery_target_inclusive: 'off' },
    });
    expect(planRecovery(facts, lsn('0/5000000')).base).toEqual(facts.bases[0]);
  });

  test('over a change of timeline takes the segment of that change from the new one', () => {
    const ended = [{ timeline: 1, end: 0x700_0400n }];
    const changed = { ...facts, state: { ...state, timeline: 2 }, ended };
    const expected = [...segments(5, 6), ...[7, 8, 9].map((n) => `00000002000000000000000${n}`)];
    expect(planRecovery(changed, time(60)).segments).toEqual(expected);
    // At the boundary of two segments the first one belongs to the old timeline.
    const atBoundary = { ...changed, ended: [{ timeline: 1, end: 0x700_0000n }] };
    expect(planRecovery(atBoundary, time(60)).segments).toEqual(expected);
  });

  test('to a time that the clock showed twice reads the log behind the base image', () => {
    const marks = [20, 45, 35, 50].map((n, index) => ({ at: second(n), lsn: `0/${index + 3}000800` }));
    const twice = { ...facts, bases: [base('early', 10, 2), base('late', 30, 5)], marks };
    // The mark of second 45 is older than the base image of second 30, which was made after the clock had gone back.
    expect(planRecovery(twice, time(40))).toMatchObject({ base: { name: 'late' }, segments: segments(5, 6) });
  });

  test('to the end has no target', () => {
    for (const moment of [time(51), time(99), lsn('0/9000800')]) {
      expect(planRecovery(facts, moment)).toMatchObject({ segments: segments(5, 9), target: {} });
    }
    // Read just before the end of the log was: something may have been committed in between.
    expect(planRecovery(facts, time(50)).target).not.toEqual({});
  });

  test('is refused before the first base image and behind the end', () => {
    for (const moment of [time(9), lsn('0/2000000')]) {
      expect(() => planRecovery(facts, moment)).toThrow(/history of the branch begins at .*0\/2000100/);
    }
    expect(() => planRecovery(facts, lsn('0/9000801'))).toThrow(/ends at 0\/9000800/);
    expect(() => planRecovery({ ...facts, bases: [] }, time(20))).toThrow(NoSuchMomentError);
  });

  test('is refused where log was lost, and possible on both sides', () => {
    const gap = { from: { at: second(22), lsn: '0/3000900' }, until: { at: second(30), lsn: '0/5000100' } };
    const broken = { ...facts, state: { ...state, gaps: [gap] } };
    for (const moment of [time(25), lsn('0/4000000')]) {
      expect(() => planRecovery(broken, moment)).toThrow(/between .* was lost/);
    }
    expect(planRecovery(broken, time(20)).base.name).toBe('early');
    expect(planRecovery(broken, time(30)).base.name).toBe('late');
    const open = { ...facts, bases: facts.bases.slice(0, 1), state: { ...state, copied: null, lostSince: gap.from } };
    expect(() => planRecovery(open, time(25))).toThrow(/and now was lost/);
    expect(planRecovery(open, time(20)).base.name).toBe('early');
  });
});
