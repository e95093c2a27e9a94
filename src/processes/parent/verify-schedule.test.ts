import { expect, test } from 'vitest';
import { isVerifyDue } from './verify-schedule.ts';

const now = new Date('2026-03-10T12:00:00Z');

test.each([
  ['never before', null, true],
  ['an hour ago', new Date('2026-03-10T11:00:00Z'), false],
  ['a day ago', new Date('2026-03-09T12:00:00Z'), true],
  ['in a future that a clock has taken back', new Date('2026-03-12T12:00:00Z'), true],
])('a daily check that last ran %s', (_, last, isDue) => {
  expect(isVerifyDue(last, 86_400, now)).toBe(isDue);
});
