/**
 * How the tests run: real Postgres from test/helpers/postgres-global.ts, five processes at most (much of it is
 * waiting). A process loads the program once for all its files, so no file may leave anything behind in a module.
 * `--mode unit` leaves out that Postgres and every file that needs it; `--mode proof` runs what takes long and is no
 * test of every day (`scripts/proof.mjs`); `--mode kubernetes` what needs a cluster (`scripts/test-kubernetes.mjs`).
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { usualDeadlineMs, usualTestMs } from './test/helpers/eventually.ts';
import { findUnitTests } from './test/helpers/unit-tests.ts';

/**
 * Vitest begins with the files that have the most text, until it has seen how long each takes. These run for half a
 * minute and more, whatever their text, and would go on alone after all others have ended; the longest come first.
 */
const longest = [
  '/test/e2e/restore.test.ts',
  '/test/console/journeys.test.ts',
  '/test/e2e/neon-cli.test.ts',
  '/src/compute/local/local.test.ts',
  '/test/kubernetes/driver.test.ts',
  '/test/sweeps/operations.test.ts',
  '/src/compute/local/driver/history.test.ts',
  '/src/compute/local/driver/live-clone.test.ts',
  '/test/e2e/logical-replication.test.ts',
  '/test/e2e/backup.test.ts',
  '/src/machine/restore/rebuild.test.ts',
  '/test/e2e/new-build.test.ts',
  '/test/e2e/autoscaling.test.ts',
  '/test/e2e/history.test.ts',
  '/test/e2e/neon-sdk.test.ts',
  '/test/e2e/compute-rules.test.ts',
  '/src/compute/local/host/branches/clone-storage.test.ts',
  '/test/e2e/sleep-wake.test.ts',
  '/src/machine/system-history/system-history.test.ts',
  '/test/e2e/storage.test.ts',
  '/test/e2e/look.test.ts',
  '/test/e2e/quotas.test.ts',
  '/test/e2e/clone-crashes.test.ts',
  '/test/proof/chaos/chaos.test.ts',
  '/test/proof/pieces/pieces.test.ts',
  '/test/e2e/branch-restore.test.ts',
  '/src/machine/system-database.test.ts',
  '/test/sweeps/routes.test.ts',
  '/test/e2e/several-proxies.test.ts',
  '/test/e2e/read-replicas.test.ts',
  '/test/e2e/snapshots.test.ts',
  '/test/e2e/bulk.test.ts',
  '/test/e2e/auth-trouble.test.ts',
  '/test/e2e/full-disk.test.ts',
  '/src/auth-provider/pages/pages.test.ts',
  '/src/compute/schema-dump/dump.test.ts',
  '/test/e2e/undelete.test.ts',
  '/src/backup/upload/uploader-trouble.test.ts',
  '/src/compute/local/driver/schema-only.test.ts',
  '/test/e2e/random-updates.test.ts',
  '/src/backup/upload/uploader.test.ts',
  '/test/e2e/auth.test.ts',
];
const turnOf = ({ moduleId }: TestSpecification) => {
  const turn = longest.findIndex((path) => moduleId.endsWith(path));
  return turn < 0 ? longest.length : turn;
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((one, other) => turnOf(one) - turnOf(other));
  }
}

/** What `npm run test:coverage` measures: the rules, the work and the statements. */
const measured = ['src/core', 'src/operations', 'src/db'];

/** Long runs are bounded by what they were asked for. */
const proofMs = 6 * 3_600_000;

function filesOf(mode: string): string[] {
  if (mode === 'unit') return findUnitTests();
  if (mode === 'proof') return ['test/proof/**/*.proof.ts'];
  if (mode === 'kubernetes') return ['test/kubernetes/**/*.cluster.ts'];
  return ['src/**/*.test.ts', 'test/**/*.test.ts'];
}

export default defineConfig(({ mode }) => ({
  test: {
    pool: 'forks',
    maxWorkers: 5,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    globalSetup: mode === 'unit' ? [] : ['test/helpers/postgres-global.ts'],
    setupFiles: ['test/helpers/after-failures.ts'],
    include: filesOf(mode),
    testTimeout: mode === 'proof' ? proofMs : usualTestMs,
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
