/** What the parent does for computes on a cluster, against the double of its API server: objects without servers. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { KubernetesDriverHost } from '../../src/compute/kubernetes/host/driver-host.ts';
import { clusterManifest } from '../../src/compute/kubernetes/manifests/cluster.ts';
import { labelsOfBranch } from '../../src/compute/kubernetes/manifests/labels.ts';
import { unservedSettings } from '../../src/compute/kubernetes/manifests/settings.ts';
import { type Cluster, clusters, pods } from '../../src/compute/kubernetes/objects/kinds.ts';
import { createLayout } from '../../src/compute/local/host/home/layout.ts';
import { newBranchId, newProjectId } from '../../src/lib/ids.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from '../helpers/eventually.ts';
import { type OpenDouble, openDouble } from '../helpers/kubernetes-double/open-double.ts';
import { makeTempHome, type TempHome } from '../helpers/temp-home.ts';

let open: OpenDouble;
let home: TempHome;
let folder: string;
let host: KubernetesDriverHost;
beforeAll(async () => {
  open = await openDouble();
  home = await makeTempHome();
  folder = await mkdtemp(join(tmpdir(), 'catnap-kube-'));
  const path = join(folder, 'kubeconfig');
  const named = 'double';
  const file = {
    'current-context': named,
    contexts: [{ name: named, context: { cluster: named, user: named, namespace: open.double.namespace } }],
    clusters: [{ name: named, cluster: { server: open.server.href } }],
    users: [{ name: named, user: {} }],
  };
  await writeFile(path, stringify(file));
  const none = { namespace: undefined, storageClass: undefined, snapshotClass: undefined, deepSleepSeconds: 0 };
  const settings = { access: { kind: 'file', path } as const, images: {}, volumeSize: '1Gi', ...none };
  // Twenty seconds pass from one look to the next.
  let now = Date.now();
  const clock = {
    now: () => {
      now += 20_000;
      return new Date(now);
    },
  };
  const log = createLogger({ level: 'silent', process: 'test' });
  host = new KubernetesDriverHost(settings, home.config, createLayout(home.path), log, clock);
});
afterAll(async () => {
  await host.close();
  await open.close();
  await home.remove();
  await rm(folder, { recursive: true, force: true });
});

/** An awake Cluster that the operator does not call ready, and its pod, at an address where nothing listens. */
function makeSilent(isPodReady: boolean): string {
  const { store, namespace } = open.double;
  const ref = { projectId: newProjectId(), branchId: newBranchId(), tenantUid: null };
  const images = { 17: 'registry.test/postgresql:17.6' };
  const platform = { namespace, images, storageClass: null, snapshotClass: null, volumeSize: '1Gi' };
  const wish = { ...ref, pgVersion: 17, settings: unservedSettings, source: { kind: 'empty' } as const };
  const name = `${ref.branchId}-1`;
  const cluster: Cluster = { ...clusterManifest(wish, platform), status: { currentPrimary: name } };
  store.create(clusters, cluster);
  const ports = [{ name: 'postgresql', containerPort: 1 }];
  const running = { startedAt: new Date().toISOString() };
  store.create(pods, {
    apiVersion: 'v1',
    kind: pods.kind,
    metadata: { name, namespace, labels: labelsOfBranch(ref) },
    spec: { containers: [{ name: 'postgres', ports }] },
    status: {
      podIP: '127.0.0.1',
      conditions: [{ type: 'Ready', status: isPodReady ? 'True' : 'False' }],
      containerStatuses: [{ name: 'postgres', state: { running } }],
    },
  } as never);
  return name;
}

test('a pod is deleted in which no server has come back, and not one that the kubelet calls ready', async () => {
  const [silent, ready] = [makeSilent(false), makeSilent(true)];
  await host.prepare(() => undefined);
  await eventually(() => expect(open.double.store.find('pods', silent)).toBeUndefined());
  expect(open.double.store.find('pods', ready)).toBeDefined();
});
