import { expect, it } from 'vitest';
import { Random } from './random.ts';

const take = (random: Random) => Array.from({ length: 1_000 }, () => random.below(10));

it('the same seed gives the same choices, and another one others', () => {
  expect(take(new Random(7))).toEqual(take(new Random(7)));
  expect(take(new Random(7))).not.toEqual(take(new Random(8)));
});

it('every choice comes about equally often', () => {
  const counts = Array.from({ length: 10 }, () => 0);
  for (const choice of take(new Random(1))) counts[choice] = (counts[choice] ?? 0) + 1;
  for (const count of counts) {
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(140);
  }
});

it('a fork does not change what its source chooses next', () => {
  const [one, other] = [new Random(3), new Random(3)];
  take(one.fork());
  other.fork();
  expect(take(one)).toEqual(take(other));
});
