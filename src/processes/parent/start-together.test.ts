import { expect, test } from 'vitest';
import { startTogether } from './start-together.ts';

test('a start that fails is told when the others have ended, with the failure that came first', async () => {
  let letGo = () => {};
  const slow = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const running: string[] = [];
  const slower = slow.then(() => running.push('proxy')).then(() => Promise.reject(new Error('the second')));
  const together = startTogether([slower, Promise.reject(new Error('the first'))]);
  const told = together.then(
    () => 'started',
    (error: Error) => `${error.message} with ${running.join()}`,
  );
  // Everything that could be told too early has been by now.
  await new Promise((resolve) => setImmediate(resolve));
  letGo();
  expect(await told).toBe('the first with proxy');
});

test('without a failure there is nothing to tell', async () => {
  await expect(startTogether([Promise.resolve(), Promise.resolve()])).resolves.toBeUndefined();
});
