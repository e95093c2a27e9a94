/** Whether a foreign program is on this machine; tests that need one skip without it. */
import { spawnSync } from 'node:child_process';

export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}
