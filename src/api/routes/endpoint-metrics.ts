/** What a compute used, over time: as JSON for people, and the last minute of all of them for Prometheus. */
import { Gauge } from 'prom-client';
import { readScope } from '../../core/context.ts';
import { getEndpointMetrics, latestMetrics, type Metrics } from '../../core/metrics.ts';
import type { EndpointId } from '../../lib/ids.ts';
import type { App } from '../kit/app-type.ts';
import type { ApiParts } from '../kit/parts.ts';
import { EndpointParams } from '../schemas/common.ts';
import { errorReply } from '../schemas/error.ts';
import { MetricsQuery, MetricsReply } from '../schemas/metrics.ts';
import { present, time } from '../views/common.ts';
import { endpointAddress } from '../views/params.ts';
import { ask } from './command.ts';

export function endpointMetricsRoutes(app: App, parts: ApiParts): void {
  const schema = {
    tags: ['Endpoints'],
    operationId: 'getProjectEndpointMetrics',
    summary: 'What a compute used',
    description: 'Its size, CPU, memory, connections and more over time, and why its size changed. Wakes nothing.',
    params: EndpointParams,
    querystring: MetricsQuery,
    response: { 200: MetricsReply, ...errorReply },
  };
  app.get('/projects/:project_id/endpoints/:endpoint_id/metrics', { schema }, (request) =>
    ask(parts, request, async (scope, caller) => {
      const { from, to, step } = request.query;
      const address = endpointAddress(request.params);
      const wanted = { from: dateOf(from), to: dateOf(to), stepSeconds: step };
      return metricsView(address.endpointId, await getEndpointMetrics(scope, caller, address, wanted));
    }),
  );
  exportGauges(parts);
}

const dateOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text));

function metricsView(endpointId: EndpointId, metrics: Metrics) {
  return {
    endpoint_id: endpointId,
    from: time(metrics.from),
    to: time(metrics.to),
    step_seconds: metrics.stepSeconds,
    samples: metrics.points.map((point) => ({
      at: time(point.at),
      memory_bytes: point.memoryBytes,
      cache_bytes: point.cacheBytes,
      working_set_bytes: point.workingSetBytes,
      ...present({
        cu: point.cu,
        cpu_cores: point.cpuCores,
        connections_active: point.connectionsActive,
        connections_idle: point.connectionsIdle,
        connections_max: point.connectionsMax,
        transactions_per_second: point.transactionsPerSecond,
        cache_hit_ratio: point.cacheHitRatio,
        replication_lag_bytes: point.replicationLagBytes,
        database_size_bytes: point.databaseBytes,
      }),
    })),
    size_changes: metrics.sizeChanges.map(({ at, fromCu, toCu, reason }) => ({
      at: time(at),
      from_cu: fromCu,
      to_cu: toCu,
      reason,
    })),
  };
}

type Latest = Awaited<ReturnType<typeof latestMetrics>>[number];

/** The gauges of one scrape are read together. */
const scrapeMs = 1_000;

const exported: readonly (readonly [name: string, help: string, pick: (row: Latest) => number | null])[] = [
  ['cu', 'Size of a compute that is awake.', (row) => row.cu],
  ['cpu_seconds', 'CPU time since its start.', (row) => row.cpuSeconds],
  ['memory_bytes', 'Memory in use, without cache.', (row) => row.memoryBytes],
  ['cache_bytes', 'Page cache of its files.', (row) => row.cacheBytes],
  ['connections_active', 'Sessions that run a statement.', (row) => row.connectionsActive],
  ['connections_idle', 'Sessions that do not.', (row) => row.connectionsIdle],
  ['connections_max', 'max_connections.', (row) => row.connectionsMax],
  ['transactions', 'Transactions since its start.', (row) => row.transactions],
  ['cache_hit_ratio', 'Blocks found in shared buffers, of those asked for, since its start.', hitRatio],
  ['replication_lag_bytes', 'Of a read replica.', (row) => row.replicationLagBytes],
  ['database_bytes', 'Size of all databases.', (row) => row.databaseBytes],
];

function hitRatio({ blocksHit, blocksRead }: Latest): number | null {
  const blocks = (blocksHit ?? 0) + (blocksRead ?? 0);
  return blocks === 0 ? null : (blocksHit ?? 0) / blocks;
}

/** Read from the database at each scrape: the worker that measures is another process. */
function exportGauges({ core, metrics, log }: ApiParts): void {
  let scrape = { at: Number.NEGATIVE_INFINITY, rows: Promise.resolve<Latest[]>([]) };
  const latest = () => {
    if (performance.now() - scrape.at > scrapeMs) {
      const rows = latestMetrics(readScope(core)).catch((error: unknown) => {
        log.warn({ err: error }, 'the metrics of computes could not be read');
        return [];
      });
      scrape = { at: performance.now(), rows };
    }
    return scrape.rows;
  };
  for (const [name, help, pick] of exported) {
    new Gauge({
      name: `catnap_endpoint_${name}`,
      help,
      labelNames: ['endpoint', 'project'],
      registers: [metrics],
      async collect() {
        const rows = await latest();
        this.reset();
        for (const row of rows) {
          const value = pick(row);
          if (value !== null) this.set({ endpoint: row.endpointId, project: row.projectId }, value);
        }
      },
    });
  }
}
