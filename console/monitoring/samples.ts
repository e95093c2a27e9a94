/** Measurements of a compute, from the API to the columns that graphs want. */
import { queryOptions } from '@tanstack/react-query';
import { api, at, withQuery } from '../api/client.ts';
import type { GetProjectEndpointMetricsReply } from '../api/generated.ts';

export type Metrics = GetProjectEndpointMetricsReply;
export type Sample = Metrics['samples'][number];

export const ranges = [
  { value: '15m', text: '15 minutes', seconds: 900 },
  { value: '1h', text: '1 hour', seconds: 3_600 },
  { value: '6h', text: '6 hours', seconds: 21_600 },
  { value: '24h', text: '24 hours', seconds: 86_400 },
  { value: '7d', text: '7 days', seconds: 604_800 },
] as const;

const refetchMs = 15_000;

export const metricsQuery = (projectId: string, endpointId: string, seconds: number) =>
  queryOptions({
    queryKey: ['metrics', projectId, endpointId, seconds],
    queryFn: () => {
      const from = new Date(Date.now() - seconds * 1000).toISOString();
      return api<Metrics>('GET', withQuery(at`/projects/${projectId}/endpoints/${endpointId}/metrics`, { from }));
    },
    refetchInterval: refetchMs,
    placeholderData: (previous) => previous,
  });

/** A suspended compute is not measured; a hole stands for that time, so that no line runs across it. */
export function withHoles(metrics: Metrics): readonly (Sample | { readonly at: string })[] {
  const stepMs = metrics.step_seconds * 1000;
  return metrics.samples.flatMap((sample, index) => {
    const next = metrics.samples[index + 1];
    if (next === undefined || Date.parse(next.at) - Date.parse(sample.at) <= 1.5 * stepMs) return [sample];
    return [sample, { at: new Date(Date.parse(sample.at) + stepMs).toISOString() }];
  });
}

export type Column = Exclude<keyof Sample, 'at'>;

/** Null where the compute was suspended, which breaks the line; undefined where only this value is missing. */
export function column(rows: readonly (Sample | { readonly at: string })[], name: Column) {
  return rows.map((row): number | null | undefined => ('memory_bytes' in row ? row[name] : null));
}
