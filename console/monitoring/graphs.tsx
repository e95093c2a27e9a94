/** What a compute did, as graphs: size, CPU, memory, connections, transactions, cache, lag and data. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useMemo } from 'react';
import type { Endpoint } from '../api/generated.ts';
import { loadScript } from '../api/load-script.ts';
import { Ago, Card } from '../ui/bits.tsx';
import { bytes } from '../ui/format.ts';
import { Loaded, Loading } from '../ui/states.tsx';
import type { ChartSeries } from './chart.tsx';
import { type Column, column, type Metrics, metricsQuery, withHoles } from './samples.ts';
import { sleepSpans } from './sleep.ts';

const Chart = lazy(async () => ({ default: (await loadScript(() => import('./chart.tsx'))).Chart }));

export function Graphs({ endpoint, seconds }: { readonly endpoint: Endpoint; readonly seconds: number }) {
  const metrics = useQuery(metricsQuery(endpoint.project_id, endpoint.id, seconds));
  return (
    <Loaded query={metrics} lines={8}>
      {(found) => (
        <Suspense fallback={<Loading lines={8} />}>
          {Date.parse(endpoint.created_at) > Date.parse(found.from) && (
            <p className="hint">
              The compute was created <Ago at={endpoint.created_at} />; before that nothing was measured.
            </p>
          )}
          <Charts metrics={found} endpoint={endpoint} />
          <SizeChanges metrics={found} />
        </Suspense>
      )}
    </Loaded>
  );
}

interface Graph {
  readonly title: string;
  readonly series: readonly (readonly [column: Column, label: string, color: ChartSeries['color']])[];
  readonly text: (value: number) => string;
  readonly max?: number;
  readonly steps?: readonly number[];
  readonly ofReplicas?: boolean;
  readonly limit?: Column;
}

const rounded = (value: number) => String(Number(value.toFixed(value < 0.1 ? 4 : 2)));

/** 1 B, 2 B, 4 B and so on: round numbers of bytes are powers of two. */
const inBytes = { text: bytes, steps: Array.from({ length: 50 }, (_, power) => 2 ** power) };

const graphs: readonly Graph[] = [
  { title: 'Size (CU)', series: [['cu', 'CU', 'accent']], text: rounded },
  { title: 'CPU (cores)', series: [['cpu_cores', 'CPU', 'accent']], text: rounded },
  {
    title: 'Memory',
    series: [
      ['memory_bytes', 'in use', 'accent'],
      ['cache_bytes', 'cache', 'good'],
    ],
    ...inBytes,
  },
  {
    title: 'Connections',
    series: [
      ['connections_active', 'active', 'good'],
      ['connections_idle', 'idle', 'accent'],
      ['connections_max', 'max', 'soft'],
    ],
    limit: 'connections_max',
    text: rounded,
  },
  { title: 'Transactions per second', series: [['transactions_per_second', 'TPS', 'accent']], text: rounded },
  {
    title: 'Cache hits',
    series: [['cache_hit_ratio', 'hits', 'good']],
    text: (value) => `${Number((value * 100).toFixed(1))} %`,
    max: 1,
  },
  { title: 'Replication lag', series: [['replication_lag_bytes', 'lag', 'warn']], ...inBytes, ofReplicas: true },
  { title: 'Database size', series: [['database_size_bytes', 'size', 'accent']], ...inBytes },
];

function Charts({ metrics, endpoint }: { readonly metrics: Metrics; readonly endpoint: Endpoint }) {
  const { times, rows, asleep } = useMemo(() => {
    const found = withHoles(metrics);
    const seconds = found.map((row) => Date.parse(row.at) / 1000);
    return { rows: found, times: seconds, asleep: sleepSpans(metrics, endpoint) };
  }, [metrics, endpoint]);
  const shown = graphs.filter((graph) => endpoint.type === 'read_only' || graph.ofReplicas !== true);
  return (
    <div className="charts">
      {shown.map((graph) => (
        <Chart
          key={graph.title}
          title={graph.title}
          times={times}
          series={graph.series.map(([name, label, color]) => ({
            label,
            color,
            values: column(rows, name),
            isLimit: name === graph.limit,
          }))}
          text={graph.text}
          from={Date.parse(metrics.from) / 1000}
          to={Date.parse(metrics.to) / 1000}
          asleep={asleep}
          {...(graph.max === undefined ? {} : { max: graph.max })}
          {...(graph.steps === undefined ? {} : { steps: graph.steps })}
        />
      ))}
    </div>
  );
}

function SizeChanges({ metrics }: { readonly metrics: Metrics }) {
  if (metrics.size_changes.length === 0) return null;
  return (
    <Card title="Size changes">
      <ul className="activity">
        {metrics.size_changes.toReversed().map((change) => (
          <li key={change.at}>
            <span className="dot active" />
            <span>
              {change.from_cu} → {change.to_cu} CU
            </span>
            <span className="hint">
              {change.reason} · <Ago at={change.at} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
