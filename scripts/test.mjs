/**
 * What `npm test` runs: build, see to the tools, then vitest. The last line is always `N passed, N failed`, with
 * `, N skipped` behind it where some were. Further arguments go to vitest.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const minuteMs = 60_000;

/** Programs that some tests use as referees, and the Debian package of each. */
const tools = [{ program: 'psql', debianPackage: 'postgresql-client', used: 'tests with psql' }];

process.exitCode = main();

function main() {
  if (run(process.execPath, [join(root, 'scripts/build.mjs')]).status !== 0) return finish({ failed: 1 });
  for (const tool of tools) ensureTool(tool);
  const folder = mkdtempSync(join(tmpdir(), 'catnap-test-'));
  try {
    const report = join(folder, 'report.json');
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const reporting = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const { status } = run(process.execPath, [vitest, 'run', ...reporting, ...process.argv.slice(2)]);
    return finish(countResults(report, status));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function ensureTool({ program, debianPackage, used }) {
  if (isInstalled(program)) return;
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version') && isInstalled('apt-get')) {
    console.log(`Installing ${debianPackage}, which ${used} need …`);
    const apt = (...args) =>
      run('apt-get', ['-qq', '-y', '-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=20', ...args], {
        timeout: 3 * minuteMs,
        stdio: 'ignore',
        env: quietApt(),
      }).status === 0;
    apt('install', '--no-install-recommends', debianPackage) ||
      (apt('update') && apt('install', '--no-install-recommends', debianPackage));
  }
  if (!isInstalled(program)) console.log(`SKIPPED: ${program} is not installed (${debianPackage}): no ${used}`);
}

function isInstalled(program) {
  return spawnSync('/bin/sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}

function quietApt() {
  return { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
}

function run(program, args, options = {}) {
  return spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], ...options });
}

/** A file that could not be loaded or set up has no failed test, a run that broke has no report: each is one failure. */
function countResults(reportPath, status) {
  if (!existsSync(reportPath)) return { failed: 1 };
  const report = JSON.parse(readFileSync(reportPath, 'utf8'));
  const hasFailed = (file) => file.assertionResults.some((test) => test.status === 'failed');
  const broken = report.testResults.filter((file) => file.status === 'failed' && !hasFailed(file));
  const failed = report.numFailedTests + broken.length;
  const skipped = report.testResults.flatMap((file) => file.assertionResults.filter(isSkipped));
  // With arguments (`-t`, say) leaving out is what was asked for.
  if (process.argv.length === 2) for (const test of skipped) console.log(`SKIPPED: ${test.fullName}`);
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && status !== 0 ? 1 : failed,
    skipped: skipped.length,
  };
}

function isSkipped(test) {
  return ['skipped', 'pending', 'todo', 'disabled'].includes(test.status);
}

function finish({ passed = 0, failed = 0, skipped = 0 }) {
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return failed === 0 ? 0 : 1;
}
