import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServerRefusalError } from '../../src/compute/interface/refusal.ts';
import { errorOf, InvalidObjectError, unreachable } from '../../src/compute/kubernetes/client/api-error.ts';
import type { KubernetesClient } from '../../src/compute/kubernetes/client/client.ts';
import { pauseMs } from '../../src/compute/kubernetes/client/retries.ts';
import { type Cluster, clusters, type Secret, secrets } from '../../src/compute/kubernetes/objects/kinds.ts';
import type { SeenRequest } from '../helpers/kubernetes-double/api-server.ts';
import { type OpenDouble, openDouble, testPatience } from '../helpers/kubernetes-double/open-double.ts';

let open: OpenDouble;
let client: KubernetesClient;
beforeEach(async () => {
  open = await openDouble();
  client = open.client();
});
afterEach(() => open.close());

const secret = (name: string, labels: Record<string, string> = {}): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, labels },
  type: 'Opaque',
  stringData: { text: 'one' },
});
const cluster = (change: object = {}): Cluster => ({
  apiVersion: 'postgresql.cnpg.io/v1',
  kind: 'Cluster',
  metadata: { name: 'br-one' },
  spec: { instances: 1, imageName: 'postgresql:17', storage: { size: '1Gi' }, ...change },
});
const writes = () => open.double.requests.filter(({ method }) => method !== 'GET');
const annotate = (annotations: Record<string, string>) => ({ metadata: { annotations } });

describe('objects', () => {
  test('are made once, read, changed and removed', async () => {
    expect(await client.find(secrets, 'a')).toBeNull();
    expect(await client.create(secrets, secret('a'))).toBe(true);
    expect(await client.create(secrets, secret('a', { late: 'yes' }))).toBe(false);
    expect(await client.find(secrets, 'a')).toMatchObject({ metadata: { name: 'a', labels: {} } });
    expect(await client.patch(secrets, 'a', { stringData: { text: 'two' } })).toMatchObject({
      data: { text: btoa('two') },
    });
    expect(await client.patch(secrets, 'b', {})).toBeNull();
    expect(await client.remove(secrets, 'a')).toBe(true);
    expect(await client.remove(secrets, 'a')).toBe(false);
  });

  test('of the same name that were made later are left alone', async () => {
    await client.create(secrets, secret('a'));
    const first = await client.find(secrets, 'a');
    await client.remove(secrets, 'a');
    await client.create(secrets, secret('a'));
    expect(await client.remove(secrets, 'a', { uid: first?.metadata.uid ?? '' })).toBe(false);
    const second = await client.find(secrets, 'a');
    expect(await client.remove(secrets, 'a', { uid: second?.metadata.uid ?? '' })).toBe(true);
  });

  test('are listed whole, page by page, by their labels', async () => {
    for (let n = 0; n < 1_100; n++)
      open.double.store.create(secrets, secret(`a-${n}`, { of: n < 1_050 ? 'us' : 'them' }));
    const { items } = await client.list(secrets, { of: 'us' });
    expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(1_050);
    expect(open.double.requests).toHaveLength(3);
  });

  test('are listed again from the start when the server has forgotten the first page', async () => {
    for (let n = 0; n < 600; n++) open.double.store.create(secrets, secret(`a-${n}`));
    let compactions = 0;
    open.double.interfere = ({ path }) => {
      if (path.includes('continue=') && compactions++ === 0) open.double.store.compact();
      return undefined;
    };
    expect((await client.list(secrets)).items).toHaveLength(600);
    expect(open.double.requests).toHaveLength(4);
  });
});

describe('a change', () => {
  beforeEach(() => client.create(clusters, cluster()));

  test('is decided again when somebody else was quicker, and loses nothing of theirs', async () => {
    let rivals = 0;
    open.double.interfere = ({ method }) => {
      if (method === 'PATCH' && rivals++ < 2) {
        open.double.store.update('clusters', 'br-one', (it) => ({
          ...it,
          metadata: { ...it.metadata, annotations: { rival: String(rivals) } },
        }));
      }
      return undefined;
    };
    const seen: unknown[] = [];
    const changed = await client.change(clusters, 'br-one', ({ metadata }) => {
      seen.push(metadata.annotations?.rival);
      return annotate({ ours: 'yes' });
    });
    expect(seen).toEqual([undefined, '1', '2']);
    expect(changed?.metadata.annotations).toEqual({ rival: '2', ours: 'yes' });
  });

  test('that somebody always comes before ends, and is a conflict', async () => {
    let rivals = 0;
    open.double.interfere = ({ method }) => {
      const annotations = { rival: String(rivals++) };
      if (method === 'PATCH') {
        open.double.store.update('clusters', 'br-one', (it) => ({ ...it, metadata: { ...it.metadata, annotations } }));
      }
      return undefined;
    };
    const fight = client.change(clusters, 'br-one', () => annotate({ ours: 'yes' }));
    await expect(fight).rejects.toMatchObject({ verdict: 'conflict' });
  });

  test('may find that there is nothing to do, or nothing at all', async () => {
    open.double.requests.length = 0;
    expect(await client.change(clusters, 'br-one', () => null)).toMatchObject({ metadata: { name: 'br-one' } });
    expect(await client.change(clusters, 'br-two', () => annotate({}))).toBeNull();
    expect(writes()).toEqual([]);
  });
});

describe('what is wrong', () => {
  test.each([
    ['a value', { instances: 0 }, /spec\.instances in body should be greater than or equal to 1/],
    ['what the webhook checks', { storage: { size: 'banana' } }, /spec\.storage\.size.*Size value isn't valid/],
    ['a field that there is not', { instance: 1 }, /unknown field "spec\.instance"/],
  ])('%s is refused for good, with the reason, and asked once', async (_, change, message) => {
    const failed = await client.create(clusters, cluster(change)).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(InvalidObjectError);
    // By which an operation knows that it need not try again.
    expect(failed).toBeInstanceOf(ServerRefusalError);
    expect((failed as Error).message).toMatch(message);
    expect(open.double.requests).toHaveLength(1);
  });

  test('in a patch, too', async () => {
    await client.create(clusters, cluster());
    const shrink = client.patch(clusters, 'br-one', { spec: { storage: { size: '512Mi' } } });
    await expect(shrink).rejects.toThrow(/can't shrink existing storage from 1Gi to 512Mi/);
  });

  test('rights that are missing are told at once, and are not final', async () => {
    const body = { message: 'clusters.postgresql.cnpg.io is forbidden', reason: 'Forbidden', code: 403 };
    open.double.interfere = () => ({ code: 403, body });
    const failed = await client.create(clusters, cluster()).catch((error: unknown) => error);
    expect(failed).toMatchObject({ verdict: 'refused', status: 403 });
    expect(failed).not.toBeInstanceOf(ServerRefusalError);
    expect(open.double.requests).toHaveLength(1);
  });
});

describe('what passes by itself', () => {
  /** Until `times` requests have come; counts them. */
  const during = (
    times: number,
    what: (request: SeenRequest) => ReturnType<NonNullable<typeof open.double.interfere>>,
  ) => {
    let count = 0;
    open.double.interfere = (request) => (count++ < times ? what(request) : undefined);
  };

  test('an operator that is down holds up writes of its kinds alone, until it is back', async () => {
    await client.create(clusters, cluster());
    open.double.isOperatorUp = false;
    let asked = 0;
    open.double.interfere = ({ method }) => {
      if (method === 'PATCH' && asked++ === 3) open.double.isOperatorUp = true;
      return undefined;
    };
    expect(await client.find(clusters, 'br-one')).not.toBeNull();
    expect(await client.create(secrets, secret('a'))).toBe(true);
    const patched = await client.patch(clusters, 'br-one', annotate({ a: 'b' }));
    expect(patched?.metadata.annotations).toEqual({ a: 'b' });
    expect(asked).toBe(4);
    open.double.isOperatorUp = false;
    expect(await client.remove(clusters, 'br-one')).toBe(true);
  });

  test('an operator that stays down is named when the patience ends', async () => {
    open.double.isOperatorUp = false;
    const impatient = open.client({ ...testPatience, forMs: 0 });
    const failed = await impatient.create(clusters, cluster()).catch((error: unknown) => error);
    expect(failed).toMatchObject({ verdict: 'retryable', status: 500, isOutage: true });
    expect((failed as Error).message).toMatch(/failed calling webhook "mcluster\.cnpg\.io"/);
  });

  test('a server that is busy, or away, is asked again', async () => {
    during(2, () => ({ code: 429, body: { message: 'too many requests', code: 429 } }));
    expect(await client.create(secrets, secret('a'))).toBe(true);
    during(2, () => 'hang up');
    expect(await client.find(secrets, 'a')).not.toBeNull();
  });

  test('a create whose reply is lost has made one object', async () => {
    during(1, () => 'lose the reply');
    expect(await client.create(secrets, secret('a'))).toBe(false);
    expect((await client.list(secrets)).items).toHaveLength(1);
  });

  test('pauses grow to a limit, and differ', () => {
    const patience = { forMs: 1, firstPauseMs: 100, pauseMsMax: 1_000 };
    const pauses = [0, 1, 2, 3, 4, 50].map((attempt) => pauseMs(patience, attempt, () => 1));
    expect(pauses).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(pauseMs(patience, 1, () => 0)).toBe(100);
  });

  test('a server says how long it wants to be left alone, in its header or in its body', () => {
    expect(errorOf(429, { details: { retryAfterSeconds: 2 } })).toMatchObject({ retryAfterMs: 2_000 });
    expect(errorOf(504, {}, '1')).toMatchObject({ retryAfterMs: 1_000, verdict: 'retryable' });
    expect(errorOf(503, 'no')).toMatchObject({ retryAfterMs: null, message: expect.stringMatching(/503: no$/) });
  });

  test('a certificate that is not trusted does not become so', () => {
    const server = new URL('https://10.0.0.1:6443');
    const failed = (code: string) => unreachable(server, Object.assign(new Error('no'), { code })).verdict;
    const codes = ['SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ECONNREFUSED', 'ENOTFOUND'];
    expect(codes.map(failed)).toEqual(['refused', 'refused', 'retryable', 'retryable']);
  });
});
