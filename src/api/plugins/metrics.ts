/** Counts and durations of requests by route template, never by path: ids would make the series endless. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { App } from '../kit/app-type.ts';

export function useMetrics(app: App, registry: Registry): void {
  const requests = new Counter({
    name: 'catnap_http_requests_total',
    help: 'HTTP requests answered, by route template, method and status.',
    labelNames: ['route', 'method', 'status'] as const,
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'catnap_http_request_duration_seconds',
    help: 'Time from the request to the end of its reply, in seconds.',
    labelNames: ['route', 'method'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    const method = knownMethods.has(request.method) ? request.method : 'other';
    requests.inc({ route, method, status: String(reply.statusCode) });
    durations.observe({ route, method }, reply.elapsedTime / 1000);
    done();
  });
}

/** The method of an unknown route is the caller's choice, so it is bounded. */
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
