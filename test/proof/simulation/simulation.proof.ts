/** The long form: as many schedules as asked for, 100,000 by default. */
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { runInProcesses } from './processes.ts';

/** Of each process: while a schedule waits for its servers, another one goes on. */
const grounds = 3;
const statuses = ['finished', 'error', 'cancelled', 'skipped'];

it('schedules of the operation queue break no rule', async () => {
  const options = proofOptions();
  const startedAt = performance.now();
  const { seed, minutes } = options;
  const wanted = { seed, minutes, count: options.count ?? 100_000, grounds };
  const say = (text: string) => process.stdout.write(`${text}\n`);
  const { schedules, counts, endings, findings } = await runInProcesses(availableParallelism(), wanted, say);
  const ledger = {
    seed: options.seed,
    seconds: (performance.now() - startedAt) / 1_000,
    totals: {
      schedules,
      steps: counts.moves,
      commands: counts.commands,
      'commands refused': counts.refusals,
      'operations run': counts.operations,
      'faults injected': counts.faults,
      crashes: counts.crashes,
      'leases lost': counts.stalls,
      violations: findings.reduce((sum, { times }) => sum + times, 0),
    },
    tables: [
      {
        title: 'Operations, by how they ended',
        columns: ['job', ...statuses],
        rows: Object.entries(endings)
          .sort()
          .map(([job, times]) => [job, ...statuses.map((status) => times[status] ?? 0)]),
      },
    ],
  };
  keepLedger('simulation', ledger, options);
  expect(findings.map(({ seed, times, text }) => `${times} times, first in schedule ${seed}: ${text}`)).toEqual([]);
});
