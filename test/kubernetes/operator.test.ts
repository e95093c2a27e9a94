/** The double's operator is held to recordings of a real one: the same states, in the same order. */
import { readFileSync } from 'node:fs';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { KubernetesClient } from '../../src/compute/kubernetes/client/client.ts';
import { addressOf } from '../../src/compute/kubernetes/driver/pod-address.ts';
import { deepSleepPatch, napPatch, wakePatch } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { type Cluster, clusters, pods, secrets, volumeSnapshots } from '../../src/compute/kubernetes/objects/kinds.ts';
import { eventually } from '../helpers/eventually.ts';
import { type OpenOperator, openOperator } from '../helpers/kubernetes-double/open-operator.ts';

interface Seen {
  readonly type: string;
  readonly object: {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
    readonly status?: Readonly<Record<string, unknown>>;
  };
}

const fixture = new URL('../fixtures/kubernetes/events.json', import.meta.url);
const { scenarios } = JSON.parse(readFileSync(fixture, 'utf8')) as { scenarios: Record<string, readonly Seen[]> };

/** How far an object is, in a few words; the random end of a job's name is left out. */
function stateOf({ type, object: { kind, metadata, status = {} } }: Seen): string {
  if (type === 'DELETED') return 'gone';
  const conditions = (status.conditions ?? []) as readonly { type: string; status: string; reason?: string }[];
  const of = (name: string) => conditions.find((one) => one.type === name);
  const isGoing = metadata.deletionTimestamp === undefined ? '' : 'going';
  const words: Record<string, readonly unknown[]> = {
    Cluster: [
      status.phase,
      of('Ready')?.status,
      of('cnpg.io/hibernation')?.reason,
      status.readyInstances,
      status.targetPrimary,
      status.currentPrimary,
      Object.keys(status.instancesStatus ?? {}).join(),
    ],
    Pod: [status.phase, status.podIP === undefined ? 'no address' : 'address', of('Ready')?.status],
    PersistentVolumeClaim: [status.phase],
    VolumeSnapshot: [status.readyToUse, status.error === undefined ? '' : 'error'],
  };
  return [...(words[kind] ?? []), isGoing]
    .map((word) => word ?? '-')
    .join(' ')
    .trim();
}

/** Of each object its states in order, without repetitions. */
function coursesOf(events: readonly Seen[], names: RegExp): Record<string, string[]> {
  const courses: Record<string, string[]> = {};
  for (const event of events) {
    const { kind, metadata } = event.object;
    if (!names.test(metadata.name) || !/^(Cluster|Pod|PersistentVolumeClaim|VolumeSnapshot)$/.test(kind)) continue;
    const key = `${kind} ${metadata.name.replace(/-[a-z0-9]{5}$/, '')}`;
    const course = courses[key] ?? [];
    const state = stateOf(event);
    if (course.at(-1) !== state) courses[key] = [...course, state];
  }
  return courses;
}

let open: OpenOperator;
let client: KubernetesClient;
let seen: Seen[] = [];
const stop = new AbortController();
beforeAll(async () => {
  open = await openOperator();
  client = open.client();
  open.double.store.onEvent((event) => seen.push(event), stop.signal);
});
afterAll(async () => {
  stop.abort();
  await open.close();
});
beforeEach(() => {
  seen = [];
});

const cluster = (name: string, bootstrap: Cluster['spec']['bootstrap']): Cluster => ({
  apiVersion: 'postgresql.cnpg.io/v1',
  kind: 'Cluster',
  metadata: { name },
  spec: {
    instances: 1,
    imageName: 'test/postgresql:17.6',
    storage: { size: '1Gi' },
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '1', memory: '512Mi' } },
    bootstrap: bootstrap ?? {},
  },
});
const login = { database: 'app', owner: 'app', secret: { name: 'demo-login' } };
const snapshot = (name: string, claim: string) => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { name },
  spec: { source: { persistentVolumeClaimName: claim } },
});

const untilReady = (name: string) =>
  eventually(async () => {
    const found = await client.find(clusters, name);
    expect(found?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True');
    expect(found?.status?.readyInstances).toBe(1);
    await open.operator.settled();
  });

async function query(pod: string, text: string): Promise<unknown> {
  const found = await client.find(pods, pod);
  const address = found && addressOf(found);
  if (address?.kind !== 'tcp') throw new Error(`the pod ${pod} has no address`);
  const { host, port } = address;
  const sql = postgres({
    host,
    port,
    username: 'app',
    password: 'secret',
    database: 'app',
    max: 1,
    connect_timeout: 5,
  });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

describe('the double goes the way of the recording', () => {
  test('when a Cluster is made', async () => {
    await client.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'demo-login' },
      type: 'kubernetes.io/basic-auth',
      stringData: { username: 'app', password: 'secret' },
    });
    await client.create(clusters, cluster('demo', { initdb: login }));
    await untilReady('demo');
    expect(coursesOf(seen, /^demo/)).toEqual(coursesOf(scenarios['01-create'] ?? [], /^demo/));
    await query('demo-1', 'CREATE TABLE t AS SELECT 7 AS n');
  });

  test('when it hibernates, and when it wakes', async () => {
    await client.patch(clusters, 'demo', deepSleepPatch);
    await eventually(async () => expect(await client.find(pods, 'demo-1')).toBeNull());
    await open.operator.settled();
    expect(coursesOf(seen, /^demo/)).toEqual(coursesOf(scenarios['02-hibernate'] ?? [], /^demo/));
    seen = [];
    await client.patch(clusters, 'demo', wakePatch);
    await untilReady('demo');
    expect(coursesOf(seen, /^demo/)).toEqual(coursesOf(scenarios['03-wake'] ?? [], /^demo/));
    expect(await query('demo-1', 'SELECT n FROM t')).toEqual([{ n: 7 }]);
  });

  test('when its pod is lost', async () => {
    const before = await client.find(pods, 'demo-1');
    open.double.store.remove('pods', 'demo-1', { foreground: false, uid: undefined, force: true });
    await eventually(async () =>
      expect((await client.find(pods, 'demo-1'))?.metadata.uid).not.toBe(before?.metadata.uid),
    );
    await untilReady('demo');
    expect(coursesOf(seen, /^demo/)).toEqual(coursesOf(scenarios['07-force-delete-pod'] ?? [], /^demo/));
    expect(await query('demo-1', 'SELECT n FROM t')).toEqual([{ n: 7 }]);
  });

  test('when another is made from a snapshot of its volume while it runs', async () => {
    const recorded = coursesOf(scenarios['05-snapshot-branch'] ?? [], /^demo-(s1|br)/);
    await client.create(volumeSnapshots, snapshot('demo-s1', 'demo-1'));
    await eventually(async () =>
      expect((await client.find(volumeSnapshots, 'demo-s1'))?.status?.readyToUse).toBe(true),
    );
    await query('demo-1', 'INSERT INTO t VALUES (8)');
    const storage = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'demo-s1' };
    await client.create(clusters, cluster('demo-br', { recovery: { ...login, volumeSnapshots: { storage } } }));
    await untilReady('demo-br');
    expect(coursesOf(seen, /^demo-(s1|br)/)).toEqual(recorded);
    expect(await query('demo-br-1', 'SELECT n FROM t')).toEqual([{ n: 7 }]);
  });

  test('when there is no volume to take a snapshot of', async () => {
    await client.create(volumeSnapshots, snapshot('demo-bad', 'nothing'));
    await eventually(async () => expect((await client.find(volumeSnapshots, 'demo-bad'))?.status?.error).toBeDefined());
    await client.remove(volumeSnapshots, 'demo-bad');
    await open.operator.settled();
    const recorded = coursesOf(scenarios['05-snapshot-branch'] ?? [], /^demo-bad$/);
    expect(coursesOf(seen, /^demo-bad$/)).toEqual(recorded);
  });

  test('a recovery from a snapshot that there is not makes nothing, and says nothing', async () => {
    const storage = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'none' };
    await client.create(clusters, cluster('lost', { recovery: { ...login, volumeSnapshots: { storage } } }));
    await open.operator.settled();
    expect(coursesOf(seen, /^lost/)).toEqual({ 'Cluster lost': ['- - - - - -'] });
  });

  test('a fence stops the server and keeps pod, primary, phase and Ready', async () => {
    const pod = await client.find(pods, 'demo-1');
    await client.patch(clusters, 'demo', napPatch);
    await eventually(async () => expect((await client.find(clusters, 'demo'))?.status?.readyInstances).toBeUndefined());
    await expect(query('demo-1', 'SELECT 1')).rejects.toThrow(/ECONNREFUSED/);
    const fenced = await client.find(clusters, 'demo');
    expect(fenced?.status).toMatchObject({ phase: 'Cluster in healthy state', currentPrimary: 'demo-1' });
    expect(fenced?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True');
    await client.patch(clusters, 'demo', wakePatch);
    await untilReady('demo');
    const after = await client.find(pods, 'demo-1');
    expect([after?.metadata.uid, after?.status?.podIP]).toEqual([pod?.metadata.uid, pod?.status?.podIP]);
    expect(await query('demo-1', 'SELECT n FROM t ORDER BY n')).toEqual([{ n: 7 }, { n: 8 }]);
  });

  test('a server that dies is started again in its pod', async () => {
    const before = await client.find(pods, 'demo-1');
    const pid = await open.volumes.find('demo-1');
    if (pid === null) throw new Error('there is no server');
    process.kill(pid, 'SIGKILL');
    await eventually(async () => expect([null, pid]).not.toContain(await open.volumes.find('demo-1')));
    await eventually(async () => expect(await query('demo-1', 'SELECT count(*)::int AS n FROM t')).toEqual([{ n: 2 }]));
    expect((await client.find(pods, 'demo-1'))?.metadata.uid).toBe(before?.metadata.uid);
  });

  test('when Clusters are removed, and nothing is left of them', async () => {
    const recorded = coursesOf(scenarios['08-delete'] ?? [], /^demo-(cold|s1)/);
    const renamed = JSON.parse(JSON.stringify(recorded).replaceAll('demo-cold', 'demo-br'));
    await client.remove(clusters, 'demo-br', { foreground: true });
    await client.remove(volumeSnapshots, 'demo-s1');
    await eventually(async () => expect(await client.find(clusters, 'demo-br')).toBeNull());
    await open.operator.settled();
    expect(coursesOf(seen, /^demo-(br|s1)/)).toEqual(renamed);
    await client.remove(clusters, 'demo');
    expect(await client.find(clusters, 'demo')).toBeNull();
    await client.remove(clusters, 'lost');
    await open.operator.settled();
    await eventually(async () => expect(await open.volumes.list()).toEqual([]));
    const kinds = ['clusters', 'pods', 'services', 'persistentvolumeclaims', 'volumesnapshots', 'secrets'];
    const left = kinds.flatMap((kind) => open.double.store.list(kind)).map(({ metadata }) => metadata.name);
    expect(left).toEqual(['demo-login']);
  });
});
