/** How the tests run: real Postgres from test/helpers/postgres-global.ts, three processes at most (much of it is waiting), no shared state. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 3,
    globalSetup: ['test/helpers/postgres-global.ts'],
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
