/** From which commit a build is, as `dist/origin.json` says. */
import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Null where git cannot say. The checkout may belong to somebody else than the user who builds. */
export function readCommit() {
  const git = (...words) => {
    const { status, stdout } = spawnSync('git', ['-c', 'safe.directory=*', ...words], { cwd: root, encoding: 'utf8' });
    return status === 0 ? stdout.trim() : null;
  };
  const commit = git('rev-parse', '--short=12', 'HEAD');
  if (commit === null) return null;
  return git('status', '--porcelain', '--', 'src', 'console', 'package-lock.json') === ''
    ? commit
    : `${commit}, changed`;
}

/** A build stays good when its sources are committed, or a commit leaves them alone; only its name is then another. */
export function renameCommit() {
  const path = `${root}dist/origin.json`;
  const origin = JSON.parse(readFileSync(path, 'utf8'));
  const commit = readCommit();
  if (commit === origin.commit) return;
  const fresh = `${path}.${process.pid}`;
  try {
    writeFileSync(fresh, `${JSON.stringify({ ...origin, commit }, null, 2)}\n`);
    renameSync(fresh, path);
  } catch (error) {
    // In a checkout of somebody else the name stays that of the build.
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error;
  }
}
