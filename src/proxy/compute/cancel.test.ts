/** Keys of backends that have the same process id, as those of different computes may. */
import { expect, it } from 'vitest';
import { createCancelKeys } from './cancel.ts';

const cancellable = () => ({ cancel: async () => {} });

it('a key finds what it was issued for, also among others with its process id', () => {
  const keys = createCancelKeys();
  const targets = [cancellable(), cancellable(), cancellable()];
  const issued = targets.map((target) => keys.issue(target, 4711));
  expect(issued.map(({ key }) => key.processId)).toEqual([4711, 4711, 4711]);
  expect(issued.map(({ key }) => keys.find(key))).toEqual(targets);
  issued[1]?.revoke();
  expect(issued.map(({ key }) => keys.find(key) ?? null)).toEqual([targets[0], null, targets[2]]);
  issued[0]?.revoke();
  issued[2]?.revoke();
  expect(issued.map(({ key }) => keys.find(key) ?? null)).toEqual([null, null, null]);
});

it('each of many proxies knows its own keys, and passes on those of the others', () => {
  const sockets = Array.from({ length: 7 }, (_, number) => `/nonexistent/${number}`);
  for (const number of sockets.keys()) {
    const keys = createCancelKeys({ number, sockets });
    const target = cancellable();
    const { key } = keys.issue(target);
    expect(keys.find(key)).toBe(target);
    expect(key.processId).toBeGreaterThan(0);
    const neighbour = createCancelKeys({ number: (number + 1) % sockets.length, sockets });
    expect(neighbour.findOwn(key)).toBeUndefined();
    expect(neighbour.find(key)).toBeDefined();
  }
});

it('passes keys on to other Catnaps that none of its proxies has given out, from whichever of these they come', async () => {
  const passedOn: number[] = [];
  const elsewhere = async ({ secret }: { secret: number }) => void passedOn.push(secret);
  const sockets = ['/nonexistent/0', '/nonexistent/1'];
  const keys = createCancelKeys({ number: 1, sockets }, 0, elsewhere);
  const { key, revoke } = keys.issue(cancellable());
  await keys.find(key)?.cancel();
  expect(passedOn).toEqual([]);
  revoke();
  await keys.find(key)?.cancel();
  expect(passedOn).toEqual([key.secret]);
});
