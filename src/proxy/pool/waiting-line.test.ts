import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WaitingLine } from './waiting-line.ts';

const steps = fc.array(
  fc.oneof(
    fc.record({ what: fc.constant('add'), who: fc.nat({ max: 20 }) }),
    fc.record({ what: fc.constant('remove'), who: fc.nat({ max: 20 }) }),
    fc.record({ what: fc.constant('shift'), who: fc.constant(0) }),
  ),
  { maxLength: 200 },
);

it('serves in the order of coming, less those who have left', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const line = new WaitingLine<number>();
      const model = new Map<number, number>();
      list.forEach(({ what, who }, time) => {
        const [first] = model;
        if (what === 'shift') {
          expect(line.shift()).toBe(first?.[0] ?? null);
          if (first) model.delete(first[0]);
        } else if (what === 'remove') {
          line.remove(who);
          model.delete(who);
        } else {
          line.add(who, time);
          if (!model.has(who)) model.set(who, time);
        }
        expect(line.size).toBe(model.size);
        expect(line.firstSince).toBe([...model.values()][0] ?? null);
      });
    }),
  );
});

it('goes on for ever', () => {
  const line = new WaitingLine<number>();
  for (let n = 0; n < 3_000; n++) line.add(n, n);
  for (let n = 0; n < 10_000; n++) {
    expect(line.shift()).toBe(n);
    line.add(n + 3_000, n);
  }
  expect(line.size).toBe(3_000);
});
