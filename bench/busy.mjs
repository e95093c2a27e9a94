/** Other work on the machine for as long as a benchmark runs: a process for each core that does nothing but count. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

export async function besideOtherWork(work) {
  const children = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  try {
    return await work();
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}
