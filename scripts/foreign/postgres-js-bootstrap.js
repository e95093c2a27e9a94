/** In place of the suite's set-up, which needs a superuser: `scripts/foreign/suites.mjs` has made the logins. */
import { spawnSync } from 'node:child_process';

export function exec(command, args) {
  spawnSync(command, args, { stdio: 'ignore' });
}
