import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { renderKubernetesTypes } from '../../scripts/render-types.mjs';
import { limits } from '../../src/compute/contract/bench.ts';
import type { BranchRef } from '../../src/compute/interface/driver.ts';
import type { KubernetesClient } from '../../src/compute/kubernetes/client/client.ts';
import { resizePod } from '../../src/compute/kubernetes/driver/pod-sizes.ts';
import { type ClusterWish, clusterManifest, type Platform } from '../../src/compute/kubernetes/manifests/cluster.ts';
import { clusterName, labelsOfBranch, labelsOfProject } from '../../src/compute/kubernetes/manifests/labels.ts';
import { replicaManifest } from '../../src/compute/kubernetes/manifests/replica.ts';
import { adminSecretManifest } from '../../src/compute/kubernetes/manifests/secret.ts';
import { postgresqlOf, settingsProblem } from '../../src/compute/kubernetes/manifests/settings.ts';
import {
  bytesIn,
  coresIn,
  napResources,
  resizePatch,
  resourcesOf,
  startResources,
} from '../../src/compute/kubernetes/manifests/sizes.ts';
import {
  deepSleepPatch,
  napPatch,
  readinessOf,
  wakePatch,
  wantedDepth,
} from '../../src/compute/kubernetes/manifests/sleep.ts';
import { snapshotManifest } from '../../src/compute/kubernetes/manifests/snapshot.ts';
import {
  type Cluster,
  clusters,
  type Pod,
  pods,
  secrets,
  volumeSnapshots,
} from '../../src/compute/kubernetes/objects/kinds.ts';
import { serverSettings } from '../../src/core/sizing.ts';
import { newBranchId, newEndpointId, newProjectId } from '../../src/lib/ids.ts';
import { type OpenDouble, openDouble } from '../helpers/kubernetes-double/open-double.ts';
import { withOperatorsDefaults } from '../helpers/kubernetes-double/operator-parameters.ts';

let open: OpenDouble;
let client: KubernetesClient;
let ref: BranchRef;
beforeAll(async () => {
  open = await openDouble();
  client = open.client();
});
beforeEach(() => {
  ref = { projectId: newProjectId(), branchId: newBranchId(), tenantUid: null };
});
afterAll(() => open.close());

const platform: Platform = {
  namespace: 'computes',
  images: { 16: 'registry.test/postgresql:16.10', 17: 'registry.test/postgresql:17.6' },
  storageClass: 'fast',
  snapshotClass: 'copies',
  volumeSize: '10Gi',
};
const wish = (change: Partial<ClusterWish> = {}): ClusterWish => ({
  ...ref,
  pgVersion: 17,
  settings: {},
  source: { kind: 'empty' },
  ...change,
});
const gib = 1024 ** 3;

function makePod(name: string): void {
  const containers = [{ name: 'postgres', resources: startResources }];
  const initContainers = [{ name: 'bootstrap-controller', resources: startResources }];
  const status = { containerStatuses: containers };
  const metadata = { name };
  open.double.store.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { containers, initContainers },
    status,
  } as Pod);
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('the types are those of the schemas', () => {
  const { kinds } = JSON.parse(read('src/compute/kubernetes/objects/schemas.json'));
  expect(read('src/compute/kubernetes/objects/generated.ts')).toBe(renderKubernetesTypes(kinds));
});

describe('the double accepts, with closed objects,', () => {
  const ownSettings = {
    shared_preload_libraries: 'pg_stat_statements',
    work_mem: '5MB',
    listen_addresses: '*',
    port: '1',
  };
  test.each<[string, Partial<ClusterWish>, Partial<Platform>]>([
    ['a new branch', {}, {}],
    ['one of an older major', { pgVersion: 16 }, {}],
    ['one with settings, also such as are not ours', { settings: ownSettings }, {}],
    ['one with the settings of a large compute', { settings: serverSettings({ minCu: 8, maxCu: 8 }) }, {}],
    ['a copy', { source: { kind: 'snapshot', name: 'br-source' } }, {}],
    ['one on the default storage', {}, { storageClass: null, snapshotClass: null }],
  ])('%s', async (_, change, other) => {
    const here = { ...platform, ...other };
    const cluster = clusterManifest(wish(change), here);
    expect(await client.create(clusters, cluster)).toBe(true);
    expect(await client.create(secrets, adminSecretManifest(ref, 'secret', here))).toBe(true);
    expect(await client.create(volumeSnapshots, snapshotManifest(ref, 'br-source-1', here))).toBe(true);
    const written = await client.find(clusters, cluster.metadata.name);
    expect(written?.spec).toEqual(withOperatorsDefaults(cluster).spec);
    // The login that the Cluster names is the one that the Secret holds.
    const { initdb, recovery } = cluster.spec.bootstrap ?? {};
    const named = (initdb ?? recovery)?.secret?.name ?? '';
    expect(await client.find(secrets, named)).toMatchObject({ data: { username: btoa('catnap_admin') } });
  });

  test('every change of a Cluster', async () => {
    const { metadata } = clusterManifest(wish(), platform);
    await client.create(clusters, clusterManifest(wish(), platform));
    const depths: unknown[] = [];
    for (const patch of [napPatch, wakePatch, napPatch, deepSleepPatch, wakePatch]) {
      const patched = await client.patch(clusters, metadata.name, patch);
      depths.push(patched && wantedDepth(patched));
    }
    expect(depths).toEqual(['nap', 'awake', 'nap', 'deep', 'awake']);
  });

  test('every size, for both containers, and the smallest for a nap', async () => {
    const size = resourcesOf({ cpus: 0.3, memoryBytes: 1.5 * gib });
    makePod('p-1');
    for (const resources of [size, napResources(size)]) {
      const resized = await client.patch(pods, 'p-1', resizePatch(resources), 'resize');
      expect(resized?.spec.containers).toEqual([{ name: 'postgres', resources }]);
      expect(resized?.spec.initContainers).toEqual([{ name: 'bootstrap-controller', resources }]);
    }
  });
});

describe('a resize of a pod', () => {
  test.each([0.25, 1, 2, 8])('to %s CU is in force when it returns', async (cu) => {
    makePod(`of-${cu * 100}`);
    const size = resourcesOf({ cpus: cu, memoryBytes: cu * 4 * gib });
    expect(await resizePod(client, `of-${cu * 100}`, size)).toBe('applied');
    expect(await resizePod(client, `of-${cu * 100}`, size)).toBe('applied');
  });

  test('that the kubelet does not carry out is postponed, and can be asked for again', async () => {
    makePod('late');
    const size = resourcesOf({ cpus: 1, memoryBytes: 4 * gib });
    open.double.kubeletMood = 'no room';
    expect(await resizePod(client, 'late', size)).toBe('postponed');
    open.double.kubeletMood = 'memory in use';
    expect(await resizePod(client, 'late', size, 100)).toBe('postponed');
    open.double.kubeletMood = 'obliging';
    expect(await resizePod(client, 'late', size)).toBe('applied');
  });

  test('beyond what the node has is postponed, too, and one of no pod fails', async () => {
    makePod('giant');
    expect(await resizePod(client, 'giant', resourcesOf({ cpus: 64, memoryBytes: gib }))).toBe('postponed');
    await expect(resizePod(client, 'nobody', startResources)).rejects.toThrow(/nobody is not running/);
  });
});

describe('a Cluster', () => {
  test('and all that belongs to it are found by project and branch', () => {
    const cluster = clusterManifest(wish(), platform);
    const snapshot = snapshotManifest(ref, 'pvc', platform);
    const secret = adminSecretManifest(ref, 'secret', platform);
    for (const { metadata } of [cluster, snapshot, secret]) {
      expect(metadata.labels).toEqual(labelsOfBranch(ref));
      expect(metadata.labels).toMatchObject(labelsOfProject(ref));
      expect(metadata.namespace).toBe('computes');
    }
    expect(cluster.spec.inheritedMetadata?.labels).toEqual(labelsOfBranch(ref));
    expect(new Set([cluster, snapshot, secret].map(({ metadata }) => metadata.name)).size).toBe(3);
  });

  test('has a Service that does not wait for a probe', () => {
    const { metadata, spec } = clusterManifest(wish(), platform);
    expect(spec.managed?.services?.additional).toMatchObject([
      {
        selectorType: 'rw',
        serviceTemplate: { metadata: { name: `${metadata.name}-direct` }, spec: { publishNotReadyAddresses: true } },
      },
    ]);
  });

  test('of a copy takes the data of the snapshot, and no new one', () => {
    const { bootstrap } = clusterManifest(wish({ source: { kind: 'snapshot', name: 'one' } }), platform).spec;
    expect(bootstrap?.initdb).toBeUndefined();
    expect(bootstrap?.recovery?.volumeSnapshots?.storage).toEqual({
      apiGroup: 'snapshot.storage.k8s.io',
      kind: 'VolumeSnapshot',
      name: 'one',
    });
  });

  test('of a replica is a standby that enters its primary by certificate, and is no branch', async () => {
    const settings = { max_connections: '300' };
    const spec = { ...ref, endpointId: newEndpointId(), generation: 1, pgVersion: 17, settings, limits };
    const wanted = { ...spec, tempDiskBytes: gib, adminSecret: 'secret', readOnly: true };
    const made = replicaManifest({ spec: wanted, primary: 'br-one', snapshot: 'two' }, platform);
    expect(await client.create(clusters, made)).toBe(true);
    expect(made.metadata.labels).toMatchObject({ 'catnap.internal/replica': spec.endpointId });
    // Or it would be taken for the data of its branch.
    expect(made.metadata.labels).not.toHaveProperty('catnap.internal/branch');
    expect(made.spec.replica).toEqual({ enabled: true, source: 'primary' });
    expect(made.spec.bootstrap).toMatchObject({ recovery: { source: 'primary' } });
    expect(made.spec.externalClusters).toMatchObject([
      {
        name: 'primary',
        connectionParameters: { host: 'br-one-direct', user: 'streaming_replica', sslmode: 'verify-full' },
        sslKey: { name: 'br-one-replication' },
        sslRootCert: { name: 'br-one-ca' },
      },
    ]);
    expect(made.spec.postgresql?.parameters).toMatchObject({ max_connections: '300', hot_standby_feedback: 'on' });
    const other = { ...made, metadata: { ...made.metadata, name: 'other' } };
    const wrong = { ...other, spec: { ...other.spec, externalClusters: [] } };
    await expect(client.create(clusters, wrong)).rejects.toThrow(/External cluster primary not found/);
  });

  test('of a major without an image, or with a name that is too long, is refused', () => {
    expect(() => clusterManifest(wish({ pgVersion: 9 }), platform)).toThrow(/no image of Postgres 9/);
    expect(() => clusterName('b'.repeat(51))).toThrow(/too long/);
  });

  test('gets libraries as a list, and no setting that the operator refuses', () => {
    const theirs = { port: '1', ssl: 'off', archive_mode: 'off', temp_tablespaces: 'a' };
    const given = { shared_preload_libraries: 'a,b', work_mem: '5MB', ...theirs };
    expect(postgresqlOf(given)).toEqual({ parameters: { work_mem: '5MB' }, shared_preload_libraries: ['a', 'b'] });
    expect(postgresqlOf({ shared_preload_libraries: '' }).shared_preload_libraries).toEqual([]);
  });

  test('has no more buffers than its pod requests memory at first', () => {
    const buffersOf = (size: string) => postgresqlOf({ shared_buffers: size }).parameters?.shared_buffers;
    expect(['128MB', '256MB', '257MB', '1GB', '2000'].map(buffersOf)).toEqual([
      '128MB',
      '256MB',
      '256MB',
      '256MB',
      '256MB',
    ]);
  });

  test('is refused sizes of the log that the operator would refuse, before they are recorded', async () => {
    const settings = { max_wal_size: '64MB' };
    expect(settingsProblem(settings)).toBe('min_wal_size (80MB) must be smaller than max_wal_size (64MB)');
    const cluster = clusterManifest(wish({ settings }), platform);
    await expect(client.create(clusters, cluster)).rejects.toThrow(/min_wal_size/);
    expect(settingsProblem({ min_wal_size: '2GB', max_wal_size: '2048' })).toMatch(/must be smaller/);
    expect(settingsProblem({ max_wal_size: '1 week' })).toMatch(/invalid value for parameter "max_wal_size"/);
    expect(settingsProblem({})).toBeNull();
    expect(settingsProblem({ ...settings, min_wal_size: '32 MB' })).toBeNull();
  });
});

describe('a size', () => {
  test('allows what the compute may have, and reserves a part of it', () => {
    expect(resourcesOf({ cpus: 2, memoryBytes: 8 * gib })).toEqual({
      requests: { cpu: '500m', memory: '4096Mi' },
      limits: { cpu: '2000m', memory: '8192Mi' },
    });
    expect(resourcesOf({ cpus: 0.25, memoryBytes: gib }).requests).toEqual({ cpu: '100m', memory: '512Mi' });
  });

  test('never requests all that it allows, which would change the class of the pod', () => {
    for (const cpus of [0.25, 0.5, 1, 56]) {
      const { requests, limits } = resourcesOf({ cpus, memoryBytes: cpus * 4 * gib });
      expect(coresIn(requests.cpu)).toBeLessThan(coresIn(limits.cpu));
      expect(bytesIn(requests.memory)).toBeLessThan(bytesIn(limits.memory));
    }
  });

  test('of a nap keeps its limits, and has a core for the next start at least', () => {
    const [small, large] = [0.25, 2].map((cpus) => napResources(resourcesOf({ cpus, memoryBytes: cpus * 4 * gib })));
    const requests = { cpu: '10m', memory: '64Mi' };
    expect(small).toEqual({ requests, limits: { cpu: '1', memory: '1024Mi' } });
    expect(large).toEqual({ requests, limits: { cpu: '2000m', memory: '8192Mi' } });
  });

  test('is read in any form that a server writes', () => {
    expect(['2', '100m', 1].map(coresIn)).toEqual([2, 0.1, 1]);
    expect(['1Gi', '512Mi', '1G', '1024', 1].map(bytesIn)).toEqual([gib, gib / 2, 1e9, 1024, 1]);
    expect(() => bytesIn('lots')).toThrow(/no amount/);
  });
});

describe('readiness', () => {
  const at = new Date(0).toISOString();
  const condition = (type: string, status: 'True' | 'False', reason: string) => ({
    type,
    status,
    reason,
    message: '',
    lastTransitionTime: at,
  });
  const ready = condition('Ready', 'True', 'ClusterIsReady');
  const hibernated = condition('cnpg.io/hibernation', 'True', 'Hibernated');
  const healthy = { phase: 'Cluster in healthy state', currentPrimary: 'b-1', conditions: [ready], readyInstances: 1 };
  const { readyInstances: _, ...uncounted } = healthy;
  const fenced = { 'cnpg.io/fencedInstances': '["*"]' };

  // As recorded: phase and Ready stay as they are while a Cluster sleeps, and for a moment after.
  test.each<[string, Record<string, string>, NonNullable<Cluster['status']>, object]>([
    ['of one that runs', {}, healthy, { wanted: 'awake', isReady: true, primary: 'b-1' }],
    ['of a new one', {}, {}, { wanted: 'awake', isReady: false, primary: null }],
    ['of one that is fenced', fenced, healthy, { wanted: 'nap', isReady: false, isHibernated: false }],
    [
      'of one that hibernates',
      { 'cnpg.io/hibernation': 'on' },
      { ...uncounted, conditions: [ready, hibernated] },
      { wanted: 'deep', isReady: false, isHibernated: true },
    ],
    [
      'of one that was just woken: the old condition is still there',
      { 'cnpg.io/hibernation': 'off' },
      { ...uncounted, conditions: [ready, hibernated] },
      { wanted: 'awake', isReady: false, isHibernated: true },
    ],
    [
      'of one that was just woken: Ready, and nothing counted',
      { 'cnpg.io/hibernation': 'off' },
      uncounted,
      { wanted: 'awake', isReady: false, isHibernated: false },
    ],
    ['without any fence left', { 'cnpg.io/fencedInstances': '[]' }, healthy, { wanted: 'awake', isReady: true }],
  ])('%s', (_, annotations, status, expected) => {
    const cluster = clusterManifest(wish(), platform);
    const metadata = { ...cluster.metadata, annotations };
    expect(readinessOf({ ...cluster, metadata, status })).toMatchObject(expected);
  });
});
