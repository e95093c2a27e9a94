import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually, stays } from '../../../../../test/helpers/eventually.ts';
import { pidFileName, watchPidFile } from './pid-file-watch.ts';

const never = 3_600_000;

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'cn-pid-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Returns whether the wait has ended so far. */
function follow(change: Promise<void>): () => boolean {
  let hasEnded = false;
  void change.then(() => {
    hasEnded = true;
  });
  return () => hasEnded;
}

const expectEnd = (hasEnded: () => boolean) => eventually(() => expect(hasEnded()).toBe(true));
const expectNoEnd = (hasEnded: () => boolean) => stays(() => expect(hasEnded()).toBe(false), 50);

test.runIf(process.platform === 'linux')('what is written is heard of without a poll, before and after', async () => {
  const directory = await makeDirectory();
  const watch = watchPidFile(directory, never);
  onTestFinished(watch.close);
  const first = follow(watch.change());
  await writeFile(join(directory, 'postmaster.opts'), '');
  await expectNoEnd(first);
  await writeFile(join(directory, pidFileName), '1\n');
  await expectEnd(first);
  const another = watchPidFile(directory, never);
  onTestFinished(another.close);
  await writeFile(join(directory, pidFileName), '1\nready\n');
  await expectEnd(follow(another.change()));
});

test('other news ends the waiting too', async () => {
  const watch = watchPidFile(await makeDirectory(), never);
  onTestFinished(watch.close);
  const waiting = follow(watch.change());
  await expectNoEnd(waiting);
  watch.wake();
  await expectEnd(waiting);
});

test('a directory that cannot be watched is looked at often', async () => {
  const watch = watchPidFile(join(await makeDirectory(), 'missing'), never);
  onTestFinished(watch.close);
  let looks = 0;
  for (; looks < 3; looks++) await watch.change();
  expect(looks).toBe(3);
});
