/**
 * Installs what `test/foreign` has, and does nothing where that is done. It has packages of its own, because they want
 * a newer Node than Catnap does and nobody who installs Catnap needs them. They are installed once for each lock file;
 * without a registry their tests are skipped. `.ci/run` begins with it beside other steps.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../test/foreign', import.meta.url));
const lock = join(folder, 'package-lock.json');
const installed = join(folder, 'node_modules/.installed-lock.json');

if (!isFresh()) install();

function isFresh() {
  return existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8');
}

function install() {
  console.log('Installing neonctl and neon in test/foreign …');
  const words = ['ci', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1'];
  const { status } = spawnSync('npm', words, { timeout: 180_000, stdio: 'ignore' });
  if (status === 0) copyFileSync(lock, installed);
  else {
    rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
    console.log(
      'SKIPPED: tests with neonctl and neon: the npm registry does not answer; with one: npm ci --prefix test/foreign',
    );
  }
}
