/** What every way of installing needs: programs to run, sizes, times and ports. */
import { spawnSync } from 'node:child_process';
import { lstatSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** Returns what the program printed; its output is shown instead if `show` says so. */
export function run([command, ...words], { cwd, env, show = false }) {
  const stdio = ['ignore', show ? 2 : 'pipe', 2];
  const { status, error, stdout } = spawnSync(command, words, { cwd, env, stdio, encoding: 'utf8', maxBuffer: 1e8 });
  if (status !== 0) throw error ?? new Error(`${command} ${words.join(' ')} ended with ${status}`);
  return stdout;
}

export function isInstalled(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

export function secondsSince(startedAt) {
  return (performance.now() - startedAt) / 1000;
}

export function bytesBelow(path) {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name)), 0);
}

export function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export function printLine(name, bytes) {
  console.log(`  ${megabytes(bytes).padStart(9)}  ${name}`);
}

export function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
