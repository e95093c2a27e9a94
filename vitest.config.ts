/**
 * How the tests run: real Postgres from test/helpers/postgres-global.ts, four processes at most (much of it is
 * waiting). A process loads the program once for all its files, so no file may leave anything behind in a module.
 * `--mode unit` leaves out that Postgres and every file that needs it.
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { usualDeadlineMs, usualTestMs } from './test/helpers/eventually.ts';
import { findUnitTests } from './test/helpers/unit-tests.ts';

/**
 * Vitest begins with the files that have the most text, until it has seen how long each takes. These run for a minute
 * and more, whatever their text, or for half a minute with so little text that they would go on alone after all others
 * have ended.
 */
const longest = [
  '/test/console/journeys.test.ts',
  '/test/sweeps/operations.test.ts',
  '/src/compute/local/local.test.ts',
  '/test/e2e/neon-cli.test.ts',
  '/test/e2e/clone-crashes.test.ts',
  '/test/e2e/several-proxies.test.ts',
  '/src/compute/local/driver/live-clone.test.ts',
  '/test/e2e/random-updates.test.ts',
  '/test/e2e/crashes.test.ts',
  '/test/e2e/compute-rules.test.ts',
  '/test/e2e/sleep-wake.test.ts',
  '/test/e2e/idempotency.test.ts',
  '/test/e2e/why-awake.test.ts',
];
const isLongest = ({ moduleId }: TestSpecification) => longest.some((path) => moduleId.endsWith(path));

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

/** What `npm run test:coverage` measures: the rules, the work and the statements. */
const measured = ['src/core', 'src/operations', 'src/db'];

export default defineConfig(({ mode }) => ({
  test: {
    pool: 'forks',
    maxWorkers: 4,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    globalSetup: mode === 'unit' ? [] : ['test/helpers/postgres-global.ts'],
    include: mode === 'unit' ? findUnitTests() : ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: usualTestMs,
    expect: { poll: { timeout: usualDeadlineMs } },
    hookTimeout: usualTestMs,
    coverage: {
      provider: 'v8',
      include: measured.map((folder) => `${folder}/**/*.ts`),
      exclude: ['**/*.test.ts'],
      reporter: ['json-summary'],
    },
  },
}));
