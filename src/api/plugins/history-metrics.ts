/** What histories cost and whether they keep up, asked of the system database at each scrape. */
import { Gauge, type Registry } from 'prom-client';
import type { Scope } from '../../core/context.ts';
import { type HistoryTotals, readHistoryTotals } from '../../core/moments.ts';

const gauges: readonly (readonly [name: string, help: string, value: keyof HistoryTotals])[] = [
  ['catnap_history_branches', 'Branches that have a history.', 'branches'],
  [
    'catnap_history_base_bytes',
    'What the base images of histories take beyond the blocks that they share.',
    'baseBytes',
  ],
  ['catnap_history_log_bytes', 'What the write-ahead log of histories takes.', 'logBytes'],
  ['catnap_history_gaps', 'Spans of histories that are lost.', 'gaps'],
  ['catnap_history_lag_seconds', 'How far the history of an awake branch is behind, at most.', 'lagSeconds'],
  ['catnap_history_behind', 'Awake branches whose history is more than a minute behind.', 'behind'],
];

export function useHistoryMetrics(registry: Registry, scope: Scope): void {
  // One query for all gauges: they are collected together.
  let asked: { readonly at: number; readonly answer: Promise<HistoryTotals> } | null = null;
  const ask = () => {
    if (asked === null || performance.now() - asked.at > 100) {
      asked = { at: performance.now(), answer: readHistoryTotals(scope) };
    }
    return asked.answer;
  };
  for (const [name, help, value] of gauges) {
    const gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: async () => {
        // Without the system database the other numbers are still worth having.
        const totals = await ask().catch(() => null);
        if (totals === null) gauge.reset();
        else gauge.set(totals[value]);
      },
    });
  }
}
