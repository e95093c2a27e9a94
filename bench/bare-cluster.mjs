/**
 * A Cluster of CloudNativePG without Catnap: made, fenced, hibernated, resized and copied by the same requests that
 * Catnap sends, and timed at its pod. What Catnap adds to these times is its own.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { loadSource } from '../scripts/load-source.mjs';

const modules = {
  client: 'compute/kubernetes/open-client',
  kinds: 'compute/kubernetes/objects/kinds',
  cluster: 'compute/kubernetes/manifests/cluster',
  labels: 'compute/kubernetes/manifests/labels',
  secret: 'compute/kubernetes/manifests/secret',
  settings: 'compute/kubernetes/manifests/settings',
  sizes: 'compute/kubernetes/manifests/sizes',
  sleep: 'compute/kubernetes/manifests/sleep',
  snapshot: 'compute/kubernetes/manifests/snapshot',
  pods: 'compute/kubernetes/driver/pod-address',
  podSizes: 'compute/kubernetes/driver/pod-sizes',
  deepSleep: 'compute/kubernetes/driver/deep-sleep',
  ids: 'lib/ids',
  config: 'lib/config',
};
/** Between two attempts to connect, or two looks. */
const lookMs = 10;
const waitMsMax = 300_000;
const pgVersion = 17;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the answer is neither null nor an error. */
export async function until(what, look) {
  const giveUpAt = performance.now() + waitMsMax;
  for (;;) {
    let cause;
    const found = await Promise.resolve(look()).catch((error) => {
      cause = error;
      return null;
    });
    if (found !== null && found !== false) return found;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain for ${what}`, { cause });
    await pause(lookMs);
  }
}

/** The cluster that the settings name, as Catnap's worker sees it. */
export async function openBareCluster(env) {
  const loaded = await loadSource(Object.values(modules));
  const of = Object.fromEntries(Object.entries(modules).map(([name, path]) => [name, loaded[path]]));
  const { kubernetes } = of.config.readConfig(env);
  const { client, platform } = await of.client.openCluster(kubernetes);
  return new BareCluster(of, client, platform);
}

class BareCluster {
  #of;
  #platform;
  #password = randomBytes(24).toString('base64url');
  #project;

  constructor(of, client, platform) {
    this.#of = of;
    this.client = client;
    this.#platform = platform;
    this.#project = { projectId: of.ids.newProjectId(), tenantUid: null };
  }

  newRef() {
    return { ...this.#project, branchId: this.#of.ids.newBranchId() };
  }

  /** Until its first row. */
  async create(ref) {
    await this.#make(ref, { kind: 'empty' });
  }

  /** Of one that naps, until the first row of the copy. */
  async branch(source, ref) {
    const claim = (await this.#cluster(source)).status.currentPrimary;
    const snapshot = this.#of.snapshot.snapshotManifest(ref, claim, this.#platform);
    const { volumeSnapshots } = this.#of.kinds;
    const { name } = snapshot.metadata;
    await this.client.create(volumeSnapshots, snapshot);
    await until('a snapshot', async () => (await this.client.find(volumeSnapshots, name))?.status?.readyToUse === true);
    await this.#make(ref, { kind: 'snapshot', name });
  }

  /** Until nothing listens at its pod any more. */
  async nap(ref) {
    await this.#patch(ref, this.#of.sleep.napPatch);
    const cluster = await this.#cluster(ref);
    await until('the end of a server', async () => {
      const { isStill, podOf } = this.#of.pods;
      return isStill(await podOf(this.client, cluster));
    });
  }

  /** Until it has no pod. */
  async hibernate(ref) {
    await this.#patch(ref, this.#of.sleep.deepSleepPatch);
    await until('deep sleep', async () => (await this.pod(ref.branchId)) === null);
  }

  /** From either sleep, until the first row. */
  async wake(ref) {
    await this.#patch(ref, this.#of.sleep.wakePatch);
    await this.#firstRow(ref);
  }

  /** Until the kubelet says that the size is in force. */
  async resize(ref, cpus) {
    const wanted = this.#of.sizes.resourcesOf({ cpus, memoryBytes: 2 ** 30, settings: {} });
    const { name } = (await this.pod(ref.branchId)).metadata;
    const outcome = await this.#of.podSizes.resizePod(this.client, name, wanted);
    if (outcome !== 'applied') throw new Error(`the bare pod has no room for ${cpus} cores`);
  }

  /** Puts everything of Catnap's that naps into deep sleep, as its host does after a while, and waits for one of it. */
  async deepen(branchId) {
    await this.#of.deepSleep.deepenSleep(this.client, 0, new Date(Date.now() + 1_000));
    await until('deep sleep', async () => (await this.pod(branchId)) === null);
  }

  async limitsOf(branchId) {
    return (await this.pod(branchId))?.status?.containerStatuses?.[0]?.resources?.limits ?? null;
  }

  async hasNothingOf(projectId) {
    const labels = this.#of.labels.labelsOfProject({ projectId });
    return (await this.client.list(this.#of.kinds.clusters, labels)).items.length === 0;
  }

  pod(branchId) {
    return this.client.find(this.#of.kinds.pods, `${branchId}-1`);
  }

  /** All bare ones, and what belongs to them. */
  async close() {
    const { clusters, secrets, volumeSnapshots } = this.#of.kinds;
    const labels = this.#of.labels.labelsOfProject(this.#project);
    for (const resource of [clusters, volumeSnapshots, secrets]) {
      for (const { metadata } of (await this.client.list(resource, labels)).items) {
        await this.client.remove(resource, metadata.name, { foreground: resource === clusters });
      }
    }
    await until('removal', () => this.hasNothingOf(this.#project.projectId));
    this.client.close();
  }

  async #make(ref, source) {
    const { clusters, secrets } = this.#of.kinds;
    const settings = this.#of.settings.unservedSettings;
    await this.client.create(secrets, this.#of.secret.adminSecretManifest(ref, this.#password, this.#platform));
    const wish = { ...ref, pgVersion, settings, source };
    await this.client.create(clusters, this.#of.cluster.clusterManifest(wish, this.#platform));
    await this.#firstRow(ref);
  }

  async #patch(ref, patch) {
    await this.client.change(this.#of.kinds.clusters, ref.branchId, () => patch);
  }

  #cluster(ref) {
    return this.client.find(this.#of.kinds.clusters, ref.branchId);
  }

  /** At the pod itself, as Catnap's login. */
  #firstRow(ref) {
    return until('a first row', async () => {
      const pod = await this.pod(ref.branchId);
      const address = pod && this.#of.pods.addressOf(pod);
      if (!address) return null;
      const { host, port } = address;
      const login = { user: 'catnap_admin', database: 'catnap', password: this.#password };
      const sql = new pg.Client({ host, port, ...login, connectionTimeoutMillis: 2_000 });
      sql.on('error', () => undefined);
      try {
        await sql.connect();
        await sql.query('select 1');
        return true;
      } finally {
        await sql.end().catch(() => undefined);
      }
    });
  }
}
