/** Programs from npm that tests run against Catnap; `scripts/test.mjs` installs them in `test/foreign`. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const foreignModules = fileURLToPath(new URL('../foreign/node_modules', import.meta.url));

const at = (path: string) => `${foreignModules}/${path}`;

export interface ForeignCli {
  readonly name: string;
  readonly version: string;
  readonly entry: string;
  readonly isOldest: boolean;
  readonly isNewest: boolean;
}

/** Two names and three versions of one command line. */
export const foreignClis: readonly ForeignCli[] = [
  { name: 'neonctl', version: '2.22.2', entry: at('neonctl-2/cli.js'), isOldest: true, isNewest: false },
  { name: 'neonctl', version: '5.0.1', entry: at('neonctl/bin/cli.js'), isOldest: false, isNewest: false },
  { name: 'neon', version: '6.2.3', entry: at('neon/dist/cli.js'), isOldest: false, isNewest: true },
];

export const hasForeignClis = foreignClis.every(({ entry }) => existsSync(entry));

export interface CliOptions {
  readonly apiHost: string;
  readonly apiKey: string;
  /** For its configuration and its context, which must not be those of whoever runs the tests. */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs one command and returns what it prints, or fails with it. */
export async function runCli(cli: ForeignCli, options: CliOptions, words: readonly string[]): Promise<string> {
  const { apiHost, apiKey, folder } = options;
  // Before the words: what stands behind a `--` is for the program that the command starts.
  const common = ['--api-host', apiHost, '--api-key', apiKey, '--config-dir', folder, '--no-analytics', '--no-color'];
  const { stdout } = await promisify(execFile)(process.execPath, [cli.entry, ...common, ...words], {
    cwd: folder,
    // Told that it runs unattended, it opens no browser and asks for nothing.
    env: { PATH: process.env.PATH, HOME: folder, CI: 'true', ...options.env },
  });
  return stdout;
}
