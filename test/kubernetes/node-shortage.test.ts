/** Which computes give up their pods where a node is short of room, against the double of the API server. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { KubernetesClient } from '../../src/compute/kubernetes/client/client.ts';
import { NodeShortage } from '../../src/compute/kubernetes/driver/node-shortage.ts';
import { clusterManifest } from '../../src/compute/kubernetes/manifests/cluster.ts';
import { asleepAnnotation, labelsOfBranch } from '../../src/compute/kubernetes/manifests/labels.ts';
import { unservedSettings } from '../../src/compute/kubernetes/manifests/settings.ts';
import { napPatch, wakePatch, wantedDepth } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { type Cluster, clusters, type Pod, pods } from '../../src/compute/kubernetes/objects/kinds.ts';
import { newBranchId, newProjectId } from '../../src/lib/ids.ts';
import { type OpenDouble, openDouble } from '../helpers/kubernetes-double/open-double.ts';

let open: OpenDouble;
let client: KubernetesClient;
let shortage: NodeShortage;
beforeEach(async () => {
  open = await openDouble();
  client = open.client();
  shortage = new NodeShortage(client);
});
afterEach(() => open.close());

type Condition = NonNullable<NonNullable<Pod['status']>['conditions']>[number];

/** Its pod requests so much, on that node. Returns the name of the Cluster. */
async function makeCompute(requests: { cpu: string; memory: string }, node?: string, condition?: Condition) {
  const { store, namespace } = open.double;
  const ref = { projectId: newProjectId(), branchId: newBranchId(), tenantUid: null };
  const images = { 17: 'registry.test/postgresql:17.6' };
  const platform = { namespace, images, storageClass: null, snapshotClass: null, volumeSize: '1Gi' };
  const wish = { ...ref, pgVersion: 17, settings: unservedSettings, source: { kind: 'empty' } as const };
  const manifest = clusterManifest(wish, platform);
  const cluster: Cluster = { ...manifest, status: { currentPrimary: `${manifest.metadata.name}-1` } };
  store.create(clusters, cluster);
  await client.patch(clusters, manifest.metadata.name, wakePatch);
  store.create(pods, {
    apiVersion: 'v1',
    kind: pods.kind,
    metadata: { name: `${manifest.metadata.name}-1`, namespace, labels: labelsOfBranch(ref) },
    spec: {
      ...(node !== undefined && { nodeName: node }),
      containers: [{ name: 'postgres', resources: { requests, limits: requests } }],
    },
    status: { conditions: condition === undefined ? [] : [condition] },
  } as never);
  return manifest.metadata.name;
}

const napRequests = { cpu: '10m', memory: '64Mi' };

async function makeNap(since: string, node: string): Promise<string> {
  const name = await makeCompute(napRequests, node);
  await client.patch(clusters, name, napPatch);
  await client.patch(clusters, name, { metadata: { annotations: { [asleepAnnotation]: since } } });
  return name;
}

const depthOf = async (name: string) => wantedDepth((await client.find(clusters, name)) as Cluster);
const depths = (names: readonly string[]) => Promise.all(names.map(depthOf));
const unschedulable = (message: string): Condition => ({
  type: 'PodScheduled',
  status: 'False',
  reason: 'Unschedulable',
  message,
});

test('the computes that have napped for longest give up what a pod lacks, and no more', async () => {
  const young = await makeNap('2026-11-03T00:00:00.000Z', 'a');
  const old = await makeNap('2026-11-01T00:00:00.000Z', 'a');
  const middle = await makeNap('2026-11-02T00:00:00.000Z', 'a');
  const awake = await makeCompute({ cpu: '500m', memory: '512Mi' }, 'a');
  const lacking = unschedulable('0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate');
  await makeCompute({ cpu: '100m', memory: '128Mi' }, undefined, lacking);
  expect(await shortage.look()).toBe(2);
  expect(await depths([old, middle, young, awake])).toEqual(['deep', 'deep', 'nap', 'awake']);
  // It waits still, for their pods to go, or for something else than naps.
  expect(await shortage.look()).toBe(0);
  expect(await depthOf(young)).toBe('nap');
});

test('a place on a node is one nap, on the node that has most of them', async () => {
  const alone = await makeNap('2026-11-01T00:00:00.000Z', 'a');
  const [first, second] = [
    await makeNap('2026-11-02T00:00:00.000Z', 'b'),
    await makeNap('2026-11-03T00:00:00.000Z', 'b'),
  ];
  await makeCompute(
    { cpu: '100m', memory: '256Mi' },
    undefined,
    unschedulable('0/2 nodes are available: 2 Too many pods.'),
  );
  expect(await shortage.look()).toBe(1);
  expect(await depths([alone, first, second])).toEqual(['nap', 'deep', 'nap']);
});

test('a size that a node puts off gets the room of naps on that node', async () => {
  const [near, far] = [await makeNap('2026-11-02T00:00:00.000Z', 'a'), await makeNap('2026-11-01T00:00:00.000Z', 'b')];
  const message = "Node didn't have enough resource: cpu, requested: 1900, used: 700, capacity: 2000";
  const deferred = { type: 'PodResizePending', status: 'True', reason: 'Deferred', message };
  await makeCompute({ cpu: '1900m', memory: '1Gi' }, 'a', deferred);
  expect(await shortage.look()).toBe(1);
  expect(await depths([near, far])).toEqual(['deep', 'nap']);
});

test.each([
  ['waits for its volume', '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found'],
  ['may run on no node', "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."],
])('no compute pays for a pod that %s', async (_, message) => {
  const nap = await makeNap('2026-11-01T00:00:00.000Z', 'a');
  await makeCompute({ cpu: '100m', memory: '256Mi' }, undefined, unschedulable(message));
  expect(await shortage.look()).toBe(0);
  expect(await depthOf(nap)).toBe('nap');
});
