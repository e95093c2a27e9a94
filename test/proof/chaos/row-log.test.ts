import { describe, expect, it } from 'vitest';
import { compareRows, RowLog } from './row-log.ts';

const once = (...numbers: number[]) => numbers.map((number) => ({ number, copies: 1 }));

describe('the rows of a writer', () => {
  it('are complete when those that were acknowledged are there once, whatever became of the others', () => {
    const log = new RowLog();
    for (const number of [log.next(), log.next(), log.next()]) if (number !== 2) log.acknowledge(number);
    const none = { lost: [], doubled: [], invented: [] };
    expect(compareRows(log.acknowledgedSoFar(), once(1, 3), log.last)).toEqual(none);
    expect(compareRows(log.acknowledgedSoFar(), once(1, 2, 3), log.last)).toEqual(none);
  });

  it('are not when one is missing, there twice, or was never sent', () => {
    expect(compareRows([1, 2], once(2), 2)).toMatchObject({ lost: [1] });
    expect(compareRows([1], [{ number: 1, copies: 2 }], 1)).toMatchObject({ doubled: [1] });
    expect(compareRows([], [{ number: 1, copies: 2 }], 1), 'nor one whose answer was lost').toMatchObject({
      doubled: [1],
    });
    expect(compareRows([1], once(1, 7), 2)).toMatchObject({ invented: [7] });
  });

  it('are compared from a number on', () => {
    const log = new RowLog();
    for (let n = 0; n < 5; n++) log.acknowledge(log.next());
    expect(log.acknowledgedSoFar(3)).toEqual([4, 5]);
  });
});
