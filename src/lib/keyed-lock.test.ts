import { describe, expect, test } from 'vitest';
import { KeyedLock } from './keyed-lock.ts';

/** A piece of work that the test ends by hand. */
function task(log: string[], name: string) {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    log.push(`+${name}`);
    await ended;
    log.push(`-${name}`);
  };
  return { work, end };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('KeyedLock', () => {
  test('exclusive work of one key runs one after the other, of two keys side by side', async () => {
    const lock = new KeyedLock();
    const log: string[] = [];
    const [a, b, c] = [task(log, 'a'), task(log, 'b'), task(log, 'c')];
    const all = [lock.exclusive('x', a.work), lock.exclusive('x', b.work), lock.exclusive('y', c.work)];
    await settle();
    expect(log).toEqual(['+a', '+c']);
    for (const { end } of [a, b, c]) end();
    await Promise.all(all);
    expect(log.indexOf('+b')).toBeGreaterThan(log.indexOf('-a'));
    expect(lock.size).toBe(0);
  });

  test('sharers run together, and do not pass somebody who waits to be alone', async () => {
    const lock = new KeyedLock();
    const log: string[] = [];
    const [a, b, alone, late] = ['a', 'b', 'alone', 'late'].map((name) => task(log, name));
    if (!a || !b || !alone || !late) return expect.unreachable();
    const all = [
      lock.shared('x', a.work),
      lock.shared('x', b.work),
      lock.exclusive('x', alone.work),
      lock.shared('x', late.work),
    ];
    await settle();
    expect(log).toEqual(['+a', '+b']);
    for (const { end } of [a, b, alone, late]) end();
    await Promise.all(all);
    expect(log.indexOf('+late')).toBeGreaterThan(log.indexOf('-alone'));
  });

  test('a failure opens the door again', async () => {
    const lock = new KeyedLock();
    const failing = lock.exclusive('x', () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await lock.exclusiveAll(['y', 'x', 'y'], async () => 'in')).toBe('in');
    expect(lock.size).toBe(0);
  });
});
