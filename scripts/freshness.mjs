/** Is dist/ what the sources would give? Decided by times: the stamp of the build against every file and folder. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const stampName = '.built-at';

const root = fileURLToPath(new URL('..', import.meta.url));
const settings = [
  'package.json',
  // What is imported from npm is part of the bundle.
  'package-lock.json',
  'scripts/build.mjs',
  'scripts/build-console.mjs',
  'scripts/bundle-server.mjs',
  'scripts/make-code-caches.mjs',
  'scripts/origin.mjs',
  'scripts/third-party.mjs',
];

export function isBuildFresh() {
  const builtAt = readStamp();
  if (builtAt === null) return false;
  const changes = [
    ...settings.map((name) => `${root}${name}`),
    ...['src', 'console'].flatMap((name) => filesBelow(`${root}${name}`)),
  ];
  return changes.every((path) => changedAt(path) < builtAt);
}

function readStamp() {
  try {
    return Date.parse(readFileSync(`${root}dist/${stampName}`, 'utf8').trim());
  } catch {
    return null;
  }
}

/** Folders too: a file that was removed leaves its trace there. An installation without sources has none. */
function filesBelow(folder) {
  try {
    const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
    const sources = entries.filter((entry) => !entry.name.endsWith('.test.ts'));
    return [folder, ...sources.map((entry) => `${entry.parentPath}/${entry.name}`)];
  } catch {
    return [];
  }
}

function changedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
