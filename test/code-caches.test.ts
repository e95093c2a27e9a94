/** The code caches of the built program: used by the processes of a start, and never needed by them. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const copy = mkdtempSync(join(tmpdir(), 'catnap-caches-'));

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** What V8 thought of each file's cache: false where it was taken, true where not, null where there was none. */
function loadIn(folder: string, name: string): { readonly exports: string[]; readonly rejected: (boolean | null)[] } {
  const script = `
    const { createLoader } = require(${JSON.stringify(`${folder}/program/processes/cached-modules.js`)});
    const rejected = [];
    const loaded = createLoader((path, script) => rejected.push(script.cachedDataRejected ?? null))(process.argv[1]);
    console.log(JSON.stringify({ exports: Object.keys(loaded), rejected }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script, name], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

test.each(['processes/api', 'processes/worker', 'processes/proxy', 'processes/backup'])('%s has caches', (name) => {
  const { rejected } = loadIn(dist, name);
  expect(rejected.length).toBeGreaterThan(3);
  expect(new Set(rejected)).toEqual(new Set([false]));
});

test('a damaged cache, or none, changes nothing', () => {
  cpSync(dist, copy, { recursive: true, filter: (path) => !path.endsWith('/console') });
  const caches = readdirSync(copy, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.cache'));
  for (const path of caches) truncateSync(join(copy, path), 20);
  const damaged = loadIn(copy, 'processes/proxy');
  for (const path of caches) rmSync(join(copy, path));
  const none = loadIn(copy, 'processes/proxy');
  expect(damaged.exports).toEqual(['startProxyProcess']);
  expect(new Set(damaged.rejected)).toEqual(new Set([true]));
  expect(none.exports).toEqual(damaged.exports);
  expect(new Set(none.rejected)).toEqual(new Set([null]));
});
