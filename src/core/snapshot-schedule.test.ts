import { expect, test } from 'vitest';
import { nextOf, nextTime, type ScheduleItem } from './snapshot-schedule.ts';

const cases: readonly (readonly [ScheduleItem, after: string, next: string])[] = [
  [{ frequency: 'hourly' }, '2026-03-04T05:06:07Z', '2026-03-04T06:00:00Z'],
  [{ frequency: 'hourly' }, '2026-12-31T23:00:00Z', '2027-01-01T00:00:00Z'],
  [{ frequency: 'daily' }, '2026-03-04T05:06:07Z', '2026-03-05T00:00:00Z'],
  [{ frequency: 'daily', hour: 6 }, '2026-03-04T05:06:07Z', '2026-03-04T06:00:00Z'],
  [{ frequency: 'daily', hour: 6 }, '2026-03-04T06:00:00Z', '2026-03-05T06:00:00Z'],
  // 4 March 2026 is a Wednesday.
  [{ frequency: 'weekly' }, '2026-03-04T05:06:07Z', '2026-03-09T00:00:00Z'],
  [{ frequency: 'weekly', day: 3, hour: 6 }, '2026-03-04T05:06:07Z', '2026-03-04T06:00:00Z'],
  [{ frequency: 'weekly', day: 7 }, '2026-03-08T00:00:00Z', '2026-03-15T00:00:00Z'],
  [{ frequency: 'monthly' }, '2026-03-04T05:06:07Z', '2026-04-01T00:00:00Z'],
  [{ frequency: 'monthly', day: 31, hour: 1 }, '2026-03-31T01:00:00Z', '2026-04-30T01:00:00Z'],
  [{ frequency: 'monthly', day: 31 }, '2028-02-01T00:00:00Z', '2028-02-29T00:00:00Z'],
  [{ frequency: 'yearly' }, '2026-03-04T05:06:07Z', '2027-01-01T00:00:00Z'],
  [{ frequency: 'yearly', month: 2, day: 29, hour: 12 }, '2026-03-04T05:06:07Z', '2027-02-28T12:00:00Z'],
];

test.each(cases)('%j after %s is due at %s', (item, after, next) => {
  expect(nextTime(item, new Date(after))).toEqual(new Date(next));
});

test('of several the first counts, and without any none is due', () => {
  const after = new Date('2026-03-04T05:06:07Z');
  const items: ScheduleItem[] = [{ frequency: 'yearly' }, { frequency: 'daily', hour: 5 }, { frequency: 'weekly' }];
  expect(nextOf(items, after)).toEqual(new Date('2026-03-05T05:00:00Z'));
  expect(nextOf([], after)).toBeNull();
});
