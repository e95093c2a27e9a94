import { expect, test } from 'vitest';
import { BackgroundWork } from './background-work.ts';

function gate() {
  let [open, fail] = [() => {}, (_: Error) => {}];
  const passed = new Promise<void>((resolve, reject) => {
    [open, fail] = [resolve, reject];
  });
  return { passed, open, fail };
}

test('short work is done when its caller is, and its failure is the caller’s', async () => {
  const background = new BackgroundWork(60_000);
  let count = 0;
  const work = async () => {
    count += 1;
  };
  await background.run('a', work);
  await background.run('a', work);
  expect(count).toBe(2);
  await expect(background.run('a', () => Promise.reject(new Error('no room')))).rejects.toThrow('no room');
  await background.run('a', work);
  expect(count).toBe(3);
});

test('long work goes on once for each name, and its failure is that of the next caller', async () => {
  const background = new BackgroundWork(0);
  const { passed, fail } = gate();
  const begun: string[] = [];
  const work = (name: string) => () => {
    begun.push(name);
    return passed;
  };
  await background.run('a', work('a'));
  await background.run('a', work('a'));
  await background.run('b', work('b'));
  expect(begun).toEqual(['a', 'b']);
  fail(new Error('no room'));
  await passed.catch(() => undefined);
  await expect(background.run('a', work('a'))).rejects.toThrow('no room');
  await expect(background.run('b', work('b'))).rejects.toThrow('no room');
  expect(begun).toEqual(['a', 'b']);
});
