import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { ChangeFeed } from './changes.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

test('a feed that could not begin is begun by the next who watches', async () => {
  const { core, caller } = made;
  let isDown = true;
  const listen: typeof core.database.listen = (...args) =>
    isDown ? Promise.reject(new Error('the system database is away')) : core.database.listen(...args);
  const feed = new ChangeFeed({ ...core, database: { ...core.database, listen } }, () => undefined);
  const watcher = { caller, onChange: () => undefined };
  await expect(feed.watch(watcher)).rejects.toThrow('is away');
  expect(feed.size).toBe(0);
  isDown = false;
  const stop = await feed.watch(watcher);
  expect(feed.size).toBe(1);
  stop();
  await feed.close();
});
