import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pidFileName, watchPidFile } from './pid-file-watch.ts';

const never = 3_600_000;

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'cn-pid-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test.runIf(process.platform === 'linux')('what is written is heard of without a poll, before and after', async () => {
  const directory = await makeDirectory();
  const watch = watchPidFile(directory, never);
  onTestFinished(watch.close);
  await writeFile(join(directory, pidFileName), '1\n');
  await watch.change();
  const next = watch.change();
  await writeFile(join(directory, pidFileName), '1\nready\n');
  await next;
});

test('other news ends the waiting too', async () => {
  const watch = watchPidFile(await makeDirectory(), never);
  onTestFinished(watch.close);
  const waiting = watch.change();
  watch.wake();
  await waiting;
});

test('a directory that cannot be watched is looked at often', async () => {
  const watch = watchPidFile(join(await makeDirectory(), 'missing'), never);
  onTestFinished(watch.close);
  let looks = 0;
  for (; looks < 3; looks++) await watch.change();
  expect(looks).toBe(3);
});
