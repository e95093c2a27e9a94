import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WaitingLine } from './waiting-line.ts';

const steps = fc.array(
  fc.oneof(
    fc.record({ action: fc.constant('add'), waiter: fc.nat({ max: 20 }) }),
    fc.record({ action: fc.constant('remove'), waiter: fc.nat({ max: 20 }) }),
    fc.record({ action: fc.constant('shift'), waiter: fc.constant(0) }),
  ),
  { maxLength: 200 },
);

it('serves waiters in the order in which they came, except those that have left', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const line = new WaitingLine<number>();
      const model = new Map<number, number>();
      list.forEach(({ action, waiter }, time) => {
        const [first] = model;
        if (action === 'shift') {
          expect(line.shift()).toBe(first?.[0] ?? null);
          if (first) model.delete(first[0]);
        } else if (action === 'remove') {
          line.remove(waiter);
          model.delete(waiter);
        } else {
          line.add(waiter, time);
          if (!model.has(waiter)) model.set(waiter, time);
        }
        expect(line.size).toBe(model.size);
        expect(line.firstSince).toBe([...model.values()][0] ?? null);
      });
    }),
  );
});

it('keeps the order over many times its length', () => {
  const line = new WaitingLine<number>();
  for (let n = 0; n < 3_000; n++) line.add(n, n);
  for (let n = 0; n < 10_000; n++) {
    expect(line.shift()).toBe(n);
    line.add(n + 3_000, n);
  }
  expect(line.size).toBe(3_000);
});

it('removes the waiters that have waited since a given time', () => {
  const line = new WaitingLine<string>();
  for (const [waiter, since] of [['first', 10] as const, ['second', 20] as const, ['third', 30] as const]) {
    line.add(waiter, since);
  }
  line.remove('first');
  expect([...line.shiftSince(20)]).toEqual(['second']);
  expect(line.firstSince).toBe(30);
});
