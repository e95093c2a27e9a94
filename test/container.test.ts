/** What containers are told to do; docs/container.md says when they were built and run for real. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { usualDeadlineMs } from './helpers/eventually.ts';

const pathOf = (name: string) => fileURLToPath(new URL(`../container/${name}`, import.meta.url));

test('services stand behind those that they need, since podman-compose stops them from the last to the first', () => {
  const { services } = parse(readFileSync(pathOf('compose.yaml'), 'utf8'));
  const names = Object.keys(services);
  expect(names).toHaveLength(3);
  for (const [name, { depends_on: needed = [] }] of Object.entries<{ depends_on?: string[] }>(services)) {
    expect(names.slice(0, names.indexOf(name)), name).toEqual(expect.arrayContaining(needed));
  }
});

/** Processes of its own: the script looks at all that there are. */
const asUser = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const alone = [...asUser, '--pid', '--fork', '--kill-child', '--mount-proc', '--'];
const isPossible = spawnSync('unshare', [...alone, 'true']).status === 0;

describe.skipIf(!isPossible)('the first program of the container', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'catnap-container-'));
    mkdirSync(join(folder, 'bin'));
    copyFileSync('/bin/sleep', join(folder, 'bin/postgres'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** `catnap` is another script, and `meanwhile` is what happens to the container while it runs. */
  function run(catnap: string, meanwhile: string) {
    writeFileSync(join(folder, 'bin/catnap'), `#!/bin/sh\n${catnap}`, { mode: 0o755 });
    rmSync(join(folder, 'up'), { force: true });
    const begin = `cd ${folder}; sh ${pathOf('entrypoint.sh')} up & container=$!`;
    const script = `${begin}\n${meanwhile}\nwait $container; echo "exit code $?"`;
    const env = { PATH: `${folder}/bin:${process.env.PATH}` };
    return spawnSync('unshare', [...alone, 'sh', '-c', script], {
      env,
      encoding: 'utf8',
      timeout: usualDeadlineMs,
      killSignal: 'SIGKILL',
    }).stdout;
  }

  const waitUntilUp = 'until [ -e up ]; do sleep 0.01; done';
  const startServer = 'env --default-signal=INT postgres 1000 &';

  test('hands the signal to stop on, waits for Catnap, then stops servers, and ends as Catnap has ended', () => {
    const seeServer = 'kill -0 "$server" && echo "Catnap stops before servers"; exit 3';
    const catnap = `${startServer} server=$!\ntrap '${seeServer}' TERM\ntouch up\nwhile :; do sleep 0.01; done\n`;
    expect(run(catnap, `${waitUntilUp}; kill -TERM $container`)).toBe('Catnap stops before servers\nexit code 3\n');
  });

  test('ends when Catnap ends by itself, with its exit code', () => {
    expect(run(`${startServer}\nexit 7\n`, '')).toBe('exit code 7\n');
    expect(run('exit 0\n', '')).toBe('exit code 0\n');
  });
});
