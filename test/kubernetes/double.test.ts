/** The double is asked what a real API server was asked, and has to answer in the same words. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clusters, pods, secrets, volumeSnapshots } from '../../src/compute/kubernetes/objects/kinds.ts';
import { ApiServerDouble } from '../helpers/kubernetes-double/api-server.ts';

interface Recorded {
  readonly id: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly contentType?: string;
    readonly body?: unknown;
  };
  readonly reply: { readonly status: number; readonly body: unknown };
}

const fixture = new URL('../fixtures/kubernetes/errors.json', import.meta.url);
const { replies } = JSON.parse(readFileSync(fixture, 'utf8')) as { replies: readonly Recorded[] };

const double = new ApiServerDouble([clusters, pods, secrets, volumeSnapshots], { namespace: 'default' });
let url: URL;
beforeAll(async () => {
  url = await double.listen();
  const { store } = double;
  const head = (kind: string, apiVersion = 'v1') => ({ kind, apiVersion, metadata: { name: 'demo' } });
  const spec = { instances: 1, imageName: 'localhost/postgresql:15.18', storage: { size: '1Gi' } };
  store.create(clusters, { ...head('Cluster', 'postgresql.cnpg.io/v1'), spec } as never);
  store.create(secrets, { ...head('Secret'), metadata: { name: 'demo-alice' } });
  const resources = { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '500m', memory: '512Mi' } };
  const containers = [{ name: 'postgres', resources }];
  store.create(pods, { ...head('Pod'), metadata: { name: 'demo-1' }, spec: { containers } } as never);
});
afterAll(() => double.close());

/** What names a moment or an object of that cluster, or belongs to a part of the reply that nobody reads. */
function comparable(body: unknown): unknown {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const general = text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
    .replaceAll(/(too old resource version: \d+) \(\d+\)/g, '$1 (NOW)');
  if (typeof body === 'string') return general;
  const { message, reason, code, details, stream } = JSON.parse(general);
  const causes = details?.causes?.map(({ reason, field }: { reason?: string; field?: string }) => ({ reason, field }));
  return { message, reason, code, causes, stream };
}

async function ask({ method, path, contentType, body }: Recorded['request']) {
  const headers = contentType === undefined ? {} : { 'content-type': contentType };
  const text = body === undefined ? null : JSON.stringify(body);
  const reply = await fetch(new URL(path, url), { method, headers, body: text });
  const answer = await reply.text();
  const isJson = reply.headers.get('content-type') === 'application/json';
  if (path.includes('watch=1')) {
    const stream = answer.trim().split('\n');
    return { status: reply.status, body: { stream: stream.map((line) => JSON.parse(line)) } };
  }
  return { status: reply.status, body: isJson ? JSON.parse(answer) : answer };
}

describe('the double answers as the real server did', () => {
  const refusals = replies.filter(({ reply }) => reply.status >= 400 || 'stream' in (reply.body as object));

  test.each(refusals)('$id', async ({ id, request, reply }) => {
    double.isOperatorUp = !id.startsWith('operator-down');
    const answer = await ask(request);
    expect(answer.status).toBe(reply.status);
    expect(comparable(answer.body)).toEqual(comparable(reply.body));
  });

  test('operator-down-get', async () => {
    double.isOperatorUp = false;
    const recorded = replies.find(({ id }) => id === 'operator-down-get');
    if (recorded === undefined) throw new Error('the recording is gone');
    expect(await ask(recorded.request)).toMatchObject({ status: 200, body: { kind: 'Cluster' } });
  });
});
