/** The proxies' own numbers, asked of them at each scrape. One that does not answer is shown as down. */
import { request as openRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';

const answerMs = 1_000;

/** In the text format, to follow the API's own. */
export async function readProxyMetrics(proxySockets: readonly string[]): Promise<string> {
  const answers = await Promise.all(proxySockets.map((path) => scrape(path).catch(() => null)));
  const up = new Gauge({
    name: 'catnap_proxy_up',
    help: 'Whether the proxy process answers.',
    labelNames: ['proxy'] as const,
    registers: [],
  });
  for (const [number, answer] of answers.entries()) up.set({ proxy: String(number) }, answer === null ? 0 : 1);
  const presence = new Registry();
  presence.registerMetric(up);
  // Each proxy has its number as a label, so nothing is summed: series of the same name are only put together.
  const all = AggregatorRegistry.aggregate([
    ...answers.filter((answer) => answer !== null),
    await presence.getMetricsAsJSON(),
  ]);
  return all.metrics();
}

async function scrape(socketPath: string): Promise<object[]> {
  const answer = await new Promise<string>((resolve, reject) => {
    const request = openRequest({ socketPath, path: '/metrics', agent: false });
    request.setTimeout(answerMs, () => request.destroy(new Error('the proxy does not answer')));
    request.once('response', (response) => text(response).then(resolve, reject));
    request.once('error', reject);
    request.end();
  });
  const parsed: unknown = JSON.parse(answer);
  if (!Array.isArray(parsed)) throw new Error('the proxy answers with something else');
  return parsed;
}
