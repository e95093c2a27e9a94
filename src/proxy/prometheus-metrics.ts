/** The metrics of one proxy, which the API asks for when it is scraped. Each proxy has a label with its number. */
import { Counter, Gauge, Histogram } from 'prom-client';
import { ProcessRegistry } from '../lib/process-metrics.ts';
import type { ProxyMetrics } from './kit/metrics.ts';

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createProxyMetrics(number: number): ProxyMetrics {
  const registry = new ProcessRegistry('catnap_proxy_');
  registry.setDefaultLabels({ proxy: String(number) });
  const registers = [registry];
  const open = new Gauge({
    name: 'catnap_proxy_connections',
    help: 'Open connections of clients to the database port.',
    registers,
  });
  const sessions = new Counter({
    name: 'catnap_proxy_sessions_total',
    help: 'Clients that have reached their compute, or its pool.',
    registers,
  });
  const refused = new Counter({
    name: 'catnap_proxy_refused_total',
    help: 'Clients that were sent away with an error, by SQLSTATE.',
    labelNames: ['sqlstate'] as const,
    registers,
  });
  const authentication = new Histogram({
    name: 'catnap_proxy_authentication_seconds',
    help: 'Time from accepting a client to its proven password.',
    buckets,
    registers,
  });
  const connect = new Histogram({
    name: 'catnap_proxy_connect_seconds',
    help: 'Time from there to its session, a wake included.',
    buckets,
    registers,
  });
  return {
    connectionOpened: () => open.inc(),
    connectionClosed: () => open.dec(),
    connectionRefused: (sqlstate) => refused.inc({ sqlstate }),
    sessionStarted: ({ authenticationMs, connectMs }) => {
      sessions.inc();
      authentication.observe(authenticationMs / 1_000);
      connect.observe(connectMs / 1_000);
    },
    scrape: async () => JSON.stringify(await registry.getMetricsAsJSON()),
  };
}
