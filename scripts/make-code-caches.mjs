/**
 * Writes the code caches of a build: `make-code-caches.mjs <dist> <module>…`. It loads these modules and builds the
 * API's application, so that a cache holds the functions which a start runs; V8 leaves out what has not been called.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [dist, ...names] = process.argv.slice(2);
const { createLoader, cachePathOf } = createRequire(import.meta.url)(join(dist, 'program/processes/cached-modules.js'));
const compiled = [];
const load = createLoader((path, script) => compiled.push({ path, script }));

// The command does what it is told here, and something is what it has to be told.
process.argv.splice(2, Infinity, '--version');
for (const name of names) {
  const { buildIdleApi } = load(name);
  await (await buildIdleApi?.())?.close();
}
process.once('exit', () => {
  for (const { path, script } of compiled) {
    // A file that several processes load is in more than one run; the last one has called as much as the others.
    writeFileSync(`${cachePathOf(path)}.new`, script.createCachedData());
    renameSync(`${cachePathOf(path)}.new`, cachePathOf(path));
  }
});
