/**
 * What the programs of a failed test have logged, and what they were busy with. That is gone with their homes a moment
 * later, and an assertion such as "did not wake within 60 seconds" does not say why.
 */
import { afterEach } from 'vitest';

interface RunningProgram {
  describe(): Promise<string>;
}

const running = new Set<RunningProgram>();

export const noteStart = (program: RunningProgram) => void running.add(program);
export const noteEnd = (program: RunningProgram) => void running.delete(program);

/** For `setupFiles`, which run anew for each file of tests. */
export function describeAfterFailures(): void {
  afterEach(async ({ task }) => {
    if (task.result?.state !== 'fail') return;
    for (const program of running) process.stderr.write(`${task.name}: ${await program.describe()}\n`);
  });
}
