/** The version of this program, as its package says, and the commit that it was built from, as the build says. */
import { readFileSync } from 'node:fs';

export function readVersion(): string {
  return readJson<{ readonly version: string }>('../../package.json').version;
}

/** Null where git could not tell the build, and without a build. */
export function readCommit(): string | null {
  try {
    return readJson<{ readonly commit: string | null }>('../origin.json').commit;
  } catch {
    return null;
  }
}

function readJson<Content>(path: string): Content {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
