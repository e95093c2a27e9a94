/** The release before this one, built from its sources, for tests of upgrades. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The first tag of a release, or any commit that `CATNAP_TEST_RELEASE_BEFORE` names; undefined without both. */
export function findReleaseBefore(): string | undefined {
  const [first] = run('git', ['-c', 'safe.directory=*', 'tag', '--list', 'v*', '--sort=version:refname']).split('\n');
  return process.env.CATNAP_TEST_RELEASE_BEFORE ?? (first === '' ? undefined : first);
}

export interface BuiltRelease {
  readonly folder: string;
  /** What starts it. */
  readonly entry: string;
}

/** With the packages that are installed here: those of its own would have to be fetched. */
export function buildRelease(commit: string): BuiltRelease {
  const folder = mkdtempSync(join(tmpdir(), 'catnap-before-'));
  // Started as root, Catnap's processes have other uids.
  chmodSync(folder, 0o755);
  const script = 'git -c safe.directory="*" archive "$1" | tar -x -C "$2"';
  run('/bin/bash', ['-o', 'pipefail', '-c', script, 'bash', commit, folder]);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  run(process.execPath, [join(folder, 'scripts/build.mjs')]);
  return { folder, entry: join(folder, 'dist/bin.js') };
}

function run(command: string, words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')}: ${stderr}`);
  return stdout;
}
