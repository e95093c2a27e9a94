/** The long form: as many schedules as asked for, 100,000 by default. */
import { expect, it } from 'vitest';
import { keepLedger, proofOptions } from '../ledger.ts';
import { runCampaign } from './campaign.ts';

const statuses = ['finished', 'error', 'cancelled', 'skipped'];

it('schedules of the operation queue break no rule', async () => {
  const options = proofOptions();
  const startedAt = performance.now();
  const { schedules, counts, endings, findings } = await runCampaign({
    seed: options.seed,
    count: options.count ?? 100_000,
    minutes: options.minutes,
    grounds: 4,
    say: (text) => process.stdout.write(`${text}\n`),
  });
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
        rows: [...endings].sort().map(([job, times]) => [job, ...statuses.map((status) => times[status] ?? 0)]),
      },
    ],
  };
  keepLedger('simulation', ledger, options);
  expect(findings.map(({ seed, times, text }) => `${times} times, first in schedule ${seed}: ${text}`)).toEqual([]);
});
