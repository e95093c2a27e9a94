/**
 * What `npm test` runs: build, see to the tools, then vitest. The last line is always `N passed, N failed`, with
 * `, N skipped` behind it where some were. Further arguments go to vitest. With `--coverage` it measures that too, which
 * makes everything slower.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const wanted = process.argv.slice(2).filter((word) => word !== '--coverage');
const isWholeRun = wanted.length === 0;
const isMeasured = process.argv.includes('--coverage');

/** Programs that some tests use as referees. A run of tests installs none of them: the machine is not its own. */
const tools = [
  { program: 'psql', used: 'tests with psql', install: 'on Debian: apt-get install postgresql-client' },
  {
    program: 'slirp4netns',
    used: 'as root, tests of outbound connections and subscriptions',
    install: 'on Debian: apt-get install slirp4netns',
  },
];

/** What depends most on the runtime; run once more with the proxy on Bun, where that is installed. */
const onBunToo = ['src/proxy/listener.test.ts', 'src/proxy/proxy.test.ts', 'src/proxy/pool/pool.test.ts'];
const vitest = join(root, 'node_modules/vitest/vitest.mjs');

process.exitCode = main();

function main() {
  if (run(process.execPath, [join(root, 'scripts/build.mjs')]).status !== 0) return finish({ failed: 1 });
  for (const { program, used, install } of tools) {
    if (!isInstalled(program)) console.log(`SKIPPED: ${used}: ${program} is not installed; ${install}`);
  }
  run(process.execPath, [join(root, 'scripts/install-foreign.mjs')]);
  const folder = mkdtempSync(join(tmpdir(), 'catnap-test-'));
  try {
    return runVitest(join(folder, 'report.json'), join(folder, 'coverage'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runVitest(report, coverage) {
  const words = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  words.push(`--coverage.enabled=${isMeasured}`, `--coverage.reportsDirectory=${coverage}`);
  const { status } = run(process.execPath, [vitest, ...words, ...wanted]);
  printCoverage(join(coverage, 'coverage-summary.json'));
  return finish(sum(countResults(report, status), isWholeRun ? runOnBun(`${report}.bun`) : {}));
}

/** Only where the npm package is installed: it is an optional one. */
function runOnBun(report) {
  if (!existsSync(join(root, 'node_modules/bun/package.json'))) {
    console.log('SKIPPED: tests with the proxy on Bun: the optional npm package bun is not installed');
    return {};
  }
  const words = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const env = { ...process.env, CATNAP_TEST_PROXY_RUNTIME: 'bun' };
  const { status } = run(process.execPath, [vitest, ...words, ...onBunToo], env);
  return countResults(report, status);
}

function sum(one, other) {
  const keys = ['passed', 'failed', 'skipped'];
  return Object.fromEntries(keys.map((key) => [key, (one[key] ?? 0) + (other[key] ?? 0)]));
}

function isInstalled(program) {
  return spawnSync('/bin/sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}

/** One line for each folder below `src` that is measured. There is no summary where tests have failed. */
function printCoverage(path) {
  if (!existsSync(path)) return;
  const { total: _, ...files } = JSON.parse(readFileSync(path, 'utf8'));
  const rooms = new Map();
  for (const [file, { lines }] of Object.entries(files)) {
    const [, name] = relative(root, file).split(sep);
    const sum = rooms.get(name) ?? { total: 0, covered: 0 };
    rooms.set(name, { total: sum.total + lines.total, covered: sum.covered + lines.covered });
  }
  for (const [name, { total, covered }] of rooms) {
    console.log(`coverage ${name}: ${Math.floor((100 * covered) / total)}% of lines`);
  }
}

function run(program, args, env = process.env) {
  return spawnSync(program, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
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
  if (isWholeRun) for (const test of skipped) console.log(`SKIPPED: ${test.fullName}`);
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
