/** What histories cost and whether they keep up, asked of the system database at each scrape. */
import type { Registry } from 'prom-client';
import type { Scope } from '../../core/context.ts';
import { type HistoryTotals, readHistoryTotals } from '../../core/moments.ts';
import { type AskedGauge, addAskedGauges } from '../kit/asked-gauges.ts';

const gauges: readonly AskedGauge<HistoryTotals>[] = [
  ['catnap_history_branches', 'Branches that have a history.', ({ branches }) => branches],
  [
    'catnap_history_base_bytes',
    'What the base images of histories take beyond the blocks that they share.',
    ({ baseBytes }) => baseBytes,
  ],
  ['catnap_history_log_bytes', 'What the write-ahead log of histories takes.', ({ logBytes }) => logBytes],
  ['catnap_history_gaps', 'Spans of histories that are lost.', ({ gaps }) => gaps],
  [
    'catnap_history_lag_seconds',
    'How far the history of an awake branch is behind, at most.',
    ({ lagSeconds }) => lagSeconds,
  ],
  ['catnap_history_behind', 'Awake branches whose history is more than a minute behind.', ({ behind }) => behind],
  ['catnap_looks', 'Looks into the past that are open, or being opened or closed.', ({ looks }) => looks],
];

export function useHistoryMetrics(registry: Registry, scope: Scope): void {
  addAskedGauges(registry, gauges, () => readHistoryTotals(scope));
}
