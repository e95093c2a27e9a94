import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { eventually } from '../../test/helpers/eventually.ts';
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
  const watcher = { caller, onChange: () => undefined, onKeysChanged: () => undefined };
  await expect(feed.watch(watcher)).rejects.toThrow('is away');
  expect(feed.size).toBe(0);
  isDown = false;
  const stop = await feed.watch(watcher);
  expect(feed.size).toBe(1);
  stop();
  await feed.close();
});

test('a trickle of notifications does not put off what is to be told', async () => {
  const { core, caller } = made;
  let notify: () => void = () => undefined;
  const listen: typeof core.database.listen = async (_channel, onNotify) => {
    notify = () => onNotify('');
    return () => Promise.resolve();
  };
  const feed = new ChangeFeed({ ...core, database: { ...core.database, listen } }, () => undefined, 3_600_000);
  const told: string[] = [];
  const stop = await feed.watch({
    caller,
    onChange: ({ projectId }) => told.push(projectId),
    onKeysChanged: () => undefined,
  });
  const trickle = setInterval(() => notify(), 10);
  try {
    const { project } = await makeProject(made);
    // By the notifications alone: the poll, which would find it too, is an hour away.
    await eventually(() => expect(told).toContain(project.id));
  } finally {
    clearInterval(trickle);
    stop();
    await feed.close();
  }
});
