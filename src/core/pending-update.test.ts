import { describe, expect, test } from 'vitest';
import { requireMaintenanceWindow, windowOpenedAt } from './pending-update.ts';

const window = (weekdays: number[], start: string, end: string) => ({ weekdays, start_time: start, end_time: end });
/** 2026-03-01 is a Sunday. */
const at = (text: string) => new Date(`2026-03-${text}:00Z`);

describe('a maintenance window', () => {
  test.each([
    ['01T05:59', null],
    ['01T06:00', '01T06:00'],
    ['01T06:59', '01T06:00'],
    ['01T07:00', null],
    ['02T06:30', null],
  ])('of Sunday from 6 to 7 at %s', (now, opened) => {
    expect(windowOpenedAt(window([7], '06:00', '07:00'), at(now))).toEqual(opened && at(opened));
  });

  test.each([
    ['06T23:29', null],
    ['06T23:30', '06T23:30'],
    ['07T00:29', '06T23:30'],
    ['07T00:30', null],
    ['07T23:45', null],
  ])('of Friday over midnight at %s', (now, opened) => {
    expect(windowOpenedAt(window([5], '23:30', '00:30'), at(now))).toEqual(opened && at(opened));
  });

  test('of no day never opens', () => {
    expect(windowOpenedAt(window([], '00:00', '23:59'), at('02T12:00'))).toBeNull();
  });

  test('must have a length', () => {
    expect(() => requireMaintenanceWindow(window([1], '06:00', '06:00'))).toThrow(
      /end_time must differ from start_time/,
    );
    expect(() => requireMaintenanceWindow(window([1], '23:00', '01:00'))).not.toThrow();
    expect(() => requireMaintenanceWindow(undefined)).not.toThrow();
  });
});
