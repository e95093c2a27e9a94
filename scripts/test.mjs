/**
 * What `npm test` runs: build, see to the tools, then vitest. The last line is always `N passed, N failed`, with
 * `, N skipped` behind it where some were, and a line for each failure before it. Further arguments go to vitest. With
 * `--coverage` it measures that too, which makes everything slower.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBuildFresh } from './freshness.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const wanted = process.argv.slice(2).filter((word) => word !== '--coverage');
const isWholeRun = wanted.length === 0;
const isMeasured = process.argv.includes('--coverage');

/** More than this is no accident. */
const mostFilesToRepeat = 3;

/** Programs that some tests use as referees. A run of tests installs none of them: the machine is not its own. */
const tools = [
  { program: 'psql', used: 'tests with psql', install: 'on Debian: apt-get install postgresql-client' },
  {
    program: 'slirp4netns',
    used: 'as root, tests of outbound connections and subscriptions',
    install: 'on Debian: apt-get install slirp4netns',
  },
];

process.exitCode = main();

function main() {
  if (!isBuildFresh() && run(process.execPath, [join(root, 'scripts/build.mjs')]).status !== 0) {
    return finish({ failed: 1 });
  }
  for (const { program, used, install } of tools) {
    if (!isInstalled(program)) console.log(`SKIPPED: ${used}: ${program} is not installed; ${install}`);
  }
  run(process.execPath, [join(root, 'scripts/install-foreign.mjs')]);
  const folder = mkdtempSync(join(tmpdir(), 'catnap-test-'));
  try {
    return runTests(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runTests(folder) {
  const first = runVitest(join(folder, 'report.json'), [...coverageWords(folder), ...wanted]);
  printCoverage(join(folder, 'coverage', 'coverage-summary.json'));
  if (!first.files) return finish({ failed: 1 });
  const again = isWholeRun ? filesToRepeat(first) : [];
  if (again.length === 0) return finish(countResults(first));
  for (const line of failuresOf(first.files)) console.log(`FAILED AT FIRST: ${line}`);
  const second = runVitest(join(folder, 'second-report.json'), ['--maxWorkers=1', ...again]);
  if (!second.files) return finish({ failed: 1 });
  const kept = first.files.filter((file) => !again.includes(relative(root, file.name)));
  return finish(countResults({ status: second.status, files: [...kept, ...second.files] }));
}

/**
 * A few failures among thousands, beside four other files on a busy machine, are often the machine's. Their files get
 * one more try, alone; what fails twice has failed, and the first failures stay in the output to be looked into.
 */
function filesToRepeat({ files }) {
  const failed = files.filter((file) => file.status === 'failed').map((file) => relative(root, file.name));
  return failed.length <= mostFilesToRepeat ? failed : [];
}

function coverageWords(folder) {
  return [`--coverage.enabled=${isMeasured}`, `--coverage.reportsDirectory=${join(folder, 'coverage')}`];
}

function runVitest(report, words) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { status } = run(process.execPath, [vitest, 'run', ...reporters, ...words]);
  return { status, files: existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : undefined };
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

function run(program, args) {
  return spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
}

/** A file that could not be loaded or set up has no failed test: it is one failure itself. */
function failuresOf(files) {
  return files.flatMap((file) => {
    const name = relative(root, file.name);
    const failed = file.assertionResults.filter((test) => test.status === 'failed');
    if (failed.length > 0) {
      return failed.map((test) => `${name}: ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
    }
    return file.status === 'failed' ? [`${name}: ${firstLine(file.message)}`] : [];
  });
}

function firstLine(text = '') {
  return text.split('\n', 1)[0];
}

function countResults({ status, files }) {
  const tests = files.flatMap((file) => file.assertionResults);
  const skipped = tests.filter(isSkipped);
  // With arguments (`-t`, say) leaving out is what was asked for.
  if (isWholeRun) for (const test of skipped) console.log(`SKIPPED: ${test.fullName}`);
  const failures = failuresOf(files);
  for (const line of failures) console.log(`FAILED: ${line}`);
  return {
    passed: tests.filter((test) => test.status === 'passed').length,
    // An error outside of any test ends the run with a status alone.
    failed: failures.length === 0 && status !== 0 ? 1 : failures.length,
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
