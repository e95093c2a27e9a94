/** How the built program is loaded: with code caches, which are never needed, and some of it only when it is used. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
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

test('the API process holds what agents need, and loads it when it could no longer find it', () => {
  const folder = join(copy, 'held');
  mkdirSync(`${folder}/program/cli/mcp`, { recursive: true });
  for (const name of ['processes', 'chunks', 'cli/mcp']) {
    cpSync(`${dist}/program/${name}`, `${folder}/program/${name}`, { recursive: true });
  }
  cpSync(`${dist}/package.json`, `${folder}/package.json`);
  const script = `
    const { holdProgram } = require(${JSON.stringify(`${folder}/program/processes/cached-modules.js`)});
    const load = holdProgram('cli/mcp/served');
    require('node:fs').rmSync(${JSON.stringify(folder)}, { recursive: true });
    console.log(JSON.stringify([Object.keys(load()), load() === load()]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([['answerMessage'], true]);
});

test('no process loads the protocol of agents at its start', () => {
  const marks = /modelcontextprotocol|StreamableHTTP/;
  const script = `
    const { createLoader } = require(${JSON.stringify(`${dist}/program/processes/cached-modules.js`)});
    const paths = [];
    const load = createLoader((path) => paths.push(path));
    for (const name of process.argv.slice(1)) load(name);
    console.log(JSON.stringify(paths));`;
  const names = ['processes/api', 'processes/worker', 'processes/proxy', 'processes/backup'];
  const { stdout } = spawnSync(process.execPath, ['-e', script, ...names], { encoding: 'utf8' });
  const paths: string[] = JSON.parse(stdout);
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.filter((path) => marks.test(readFileSync(path, 'utf8')))).toEqual([]);
  expect(readFileSync(`${dist}/program/cli/mcp/served.js`, 'utf8')).toMatch(marks);
});
