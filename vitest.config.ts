/**
 * How the tests run: real Postgres from test/helpers/postgres-global.ts, three processes at most (much of it is
 * waiting). A process loads the program once for all its files, so no file may leave anything behind in a module.
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Vitest begins with the files that have the most text, until it has seen how long each takes. These have little, run
 * for a minute and more, and would go on alone after all others have ended.
 */
const longest = ['/test/console/journeys.test.ts', '/src/compute/local/local.test.ts'];
const isLongest = ({ moduleId }: TestSpecification) => longest.some((path) => moduleId.endsWith(path));

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 3,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/helpers/postgres-global.ts'],
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
