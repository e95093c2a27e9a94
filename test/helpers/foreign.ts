/** Programs from npm that tests run against Catnap; `scripts/test.mjs` installs them in `test/foreign`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const neonctl = fileURLToPath(new URL('../foreign/node_modules/neonctl/cli.js', import.meta.url));

export const hasNeonctl = existsSync(neonctl);

export interface NeonctlOptions {
  readonly apiHost: string;
  readonly apiKey: string;
  /** For its configuration and its context, which must not be those of whoever runs the tests. */
  readonly folder: string;
}

/** Runs one command and returns what it prints. */
export async function runNeonctl(options: NeonctlOptions, words: readonly string[]): Promise<string> {
  const { apiHost, apiKey, folder } = options;
  const common = ['--api-host', apiHost, '--api-key', apiKey, '--config-dir', folder, '--no-analytics', '--no-color'];
  const { stdout } = await promisify(execFile)(process.execPath, [neonctl, ...words, ...common], {
    cwd: folder,
    // Told that it runs unattended, it opens no browser and asks for nothing.
    env: { PATH: process.env.PATH, HOME: folder, CI: 'true' },
  });
  return stdout;
}
