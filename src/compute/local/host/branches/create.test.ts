import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LocalSubject, makeLocalSubject } from '../../../../../test/helpers/local-subject.ts';
import { newBranchId } from '../../../../lib/ids.ts';
import { Bench } from '../../../contract/bench.ts';
import { dataDirectory } from '../home/layout.ts';

let subject: LocalSubject;
let bench: Bench;
beforeAll(async () => {
  subject = await makeLocalSubject(17);
  bench = new Bench(subject);
  await bench.started();
  await bench.driver.suspend(bench.ref, 1);
});
afterAll(async () => {
  await bench.driver.removeProject(bench.ref);
  expect(await subject.leftovers()).toEqual([]);
  await subject.close();
});

/** A process that a server has left behind in its data. */
async function leaveBehind(seconds: string) {
  const cwd = dataDirectory(subject.layout.branch(bench.ref.projectId, bench.ref.branchId));
  const left = spawn('sleep', [seconds], { cwd });
  await once(left, 'spawn');
  return left;
}

test('a copy waits for the last process of a server that has ended', async () => {
  const left = await leaveBehind('0.5');
  await bench.cloneBranch(newBranchId());
  expect(left.exitCode).toBe(0);
});

test('and is refused while one stays', async () => {
  const left = await leaveBehind('600');
  try {
    await expect(bench.cloneBranch(newBranchId())).rejects.toThrow(/is not asleep/);
  } finally {
    left.kill();
    await once(left, 'exit');
  }
});
