/** What the Kubernetes driver does beyond the contract, against the double of a cluster. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Bench, limits, noChange, ownerAndDatabase, verifier } from '../../src/compute/contract/bench.ts';
import { deepenSleep } from '../../src/compute/kubernetes/driver/deep-sleep.ts';
import { KubernetesDriver } from '../../src/compute/kubernetes/driver/kubernetes-driver.ts';
import { StalledServers } from '../../src/compute/kubernetes/driver/stalled-servers.ts';
import { wantedDepth } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { type Cluster, clusters, type Pod, pods } from '../../src/compute/kubernetes/objects/kinds.ts';
import { newBranchId, newEndpointId } from '../../src/lib/ids.ts';
import { eventually } from '../helpers/eventually.ts';
import { testPatience } from '../helpers/kubernetes-double/open-double.ts';
import { type DoubleSubject, makeDoubleSubject } from '../helpers/kubernetes-double/subject.ts';

let subject: DoubleSubject;
let b: Bench;
beforeAll(async () => {
  subject = await makeDoubleSubject(17);
});
beforeEach(() => {
  b = new Bench(subject);
});
afterEach(() => b.driver.removeProject(b.ref));
afterAll(() => subject.close());

const client = () => subject.open.client();
const clusterOf = (branchId: string = b.ref.branchId) => client().find(clusters, branchId);
const podOf = () => client().find(pods, `${b.ref.branchId}-1`);
const resourcesIn = (pod: Pod | null) => pod?.status?.containerStatuses?.[0]?.resources;
const day = 86_400_000;

test('a compute that naps keeps its pod and requests next to nothing, until it wakes', async () => {
  await b.started();
  const size = { requests: { cpu: '500m', memory: '512Mi' }, limits: { cpu: '2', memory: '1Gi' } };
  // A size follows the start that it would slow down.
  const untilSized = () => eventually(async () => expect(resourcesIn(await podOf())).toEqual(size));
  await untilSized();
  const awake = await podOf();
  await b.driver.suspend(b.ref, 1);
  const napping = await podOf();
  expect(napping?.metadata.uid).toBe(awake?.metadata.uid);
  expect(resourcesIn(napping)?.requests).toEqual({ cpu: '10m', memory: '64Mi' });
  await b.start(2);
  await untilSized();
});

test('a nap that lasts becomes deep sleep, from which a start brings the data back, and then the size', async () => {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(running, 'CREATE TABLE t AS SELECT 7 AS n');
  expect(await deepenSleep(client(), 3_600, new Date(Date.now() + day))).toBe(0);
  await b.driver.suspend(b.ref, 1);
  expect(await deepenSleep(client(), 3_600)).toBe(0);
  expect(await deepenSleep(client(), 3_600, new Date(Date.now() + day))).toBe(1);
  await eventually(async () => expect(await podOf()).toBeNull());
  expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'absent' });
  // A repeated suspend brings no pod back.
  await b.driver.suspend(b.ref, 1);
  expect(wantedDepth((await clusterOf()) as Cluster)).toBe('deep');
  const again = await b.start(2);
  expect(await b.query(again, 'SELECT n FROM t')).toEqual([{ n: 7 }]);
  // Its pod is a new one, of the smallest size, unless the start was there to see it come.
  expect(await b.driver.resize(b.ref, 2, limits)).toBe('applied');
  expect((await b.driver.sample([b.ref]))[0]).toMatchObject({ cpus: 2, memoryLimitBytes: 1024 ** 3 });
});

test('a size that there is no room for is postponed, shows in samples, and is given when there is room', async () => {
  const running = await b.started();
  const larger = { ...limits, memoryBytes: 2 * 1024 ** 3 };
  try {
    for (const mood of ['no room', 'memory in use'] as const) {
      subject.open.double.kubeletMood = mood;
      expect(await b.driver.resize(b.ref, 1, larger)).toBe('postponed');
      expect((await b.driver.sample([b.ref]))[0]).toMatchObject({ memoryLimitBytes: limits.memoryBytes });
    }
  } finally {
    subject.open.double.kubeletMood = 'obliging';
  }
  // More than any node has.
  expect(await b.driver.resize(b.ref, 1, { ...limits, cpus: 64 })).toBe('postponed');
  expect(await b.driver.resize(b.ref, 1, larger)).toBe('applied');
  expect((await b.driver.sample([b.ref]))[0]).toMatchObject({ memoryLimitBytes: larger.memoryBytes });
  expect(await b.driver.observe(b.ref)).toEqual(running);
});

test('with the operator down a wake fails with the reason, and succeeds when it is back', async () => {
  await b.started();
  await b.driver.suspend(b.ref, 1);
  const { double, checkSettings } = subject.open;
  const hasty = subject.open.client({ ...testPatience, forMs: 0 });
  const impatient = new KubernetesDriver({ client: hasty, platform: subject.platform, checkSettings });
  double.isOperatorUp = false;
  try {
    await expect(impatient.start(b.spec(2))).rejects.toThrow(/failed calling webhook/);
    expect(await impatient.observe(b.ref)).toMatchObject({ state: 'absent' });
  } finally {
    double.isOperatorUp = true;
  }
  expect(await b.start(2)).toMatchObject({ state: 'running', generation: 2 });
});

test('tenants are kept out of the database of Catnap, and its login out of theirs', async () => {
  const running = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  const admin = { username: 'catnap_admin', password: b.adminSecret };
  expect(await b.query(running, 'SELECT 1 AS n', { ...admin, database: 'catnap' })).toEqual([{ n: 1 }]);
  await expect(b.query(running, 'SELECT 1', { ...admin, database: 'app' })).rejects.toThrow(/rejects connection/);
  await expect(b.query(running, 'SELECT 1', { database: 'catnap' })).rejects.toThrow(/rejects connection/);
});

test('a setting that is taken away is not waited for where the operator’s default is the same', async () => {
  const settings = { wal_sender_timeout: '5s', work_mem: '5MB' };
  await b.createBranch();
  const running = await b.start(1, { settings });
  await b.driver.configure(b.ref, ownerAndDatabase);
  expect(await b.driver.reload(b.spec(1, { settings: { work_mem: '5MB' } }))).toEqual([]);
  expect((await clusterOf())?.spec.postgresql?.parameters).toMatchObject({ wal_sender_timeout: '5s' });
  // One that the operator has no default of is gone when the call returns.
  expect(await b.driver.reload(b.spec(1, { settings: {} }))).toEqual([]);
  expect(await b.query(running, 'SHOW work_mem')).toEqual([{ work_mem: '4MB' }]);
});

const operatorsRoles = ['postgres', 'streaming_replica', 'cnpg_metrics_exporter'];
test.each(operatorsRoles)('the role %s is the operator’s, and no tenant’s', async (name) => {
  await b.started();
  const change = { ...noChange, roles: [{ name, verifier }] };
  await expect(b.driver.configure(b.ref, change)).rejects.toThrow(/reserved/);
  expect((await b.driver.readCatalog(b.ref)).roles).toEqual([]);
});

test('probes of the operator are nobody’s work', async () => {
  const running = await b.started();
  const asAdmin = (text: string) =>
    b.query(running, text, { username: 'catnap_admin', password: b.adminSecret, database: 'catnap' });
  await asAdmin(`ALTER ROLE postgres PASSWORD '${verifier}'`);
  const probe = b.query(running, 'SELECT pg_sleep(600)', { username: 'postgres', database: 'postgres' });
  const ended = expect(probe).rejects.toThrow(/canceling statement/);
  const theirs = `FROM pg_stat_activity WHERE usename = 'postgres' AND state = 'active'`;
  await eventually(async () => expect(await asAdmin(`SELECT count(*)::int AS n ${theirs}`)).toEqual([{ n: 1 }]));
  expect(await b.driver.observeWork(b.ref)).toEqual({ work: null, lastWorkAt: null });
  expect(await b.driver.measure(b.ref)).toMatchObject({ connectionsActive: 0, connectionsIdle: 0 });
  await asAdmin(`SELECT pg_cancel_backend(pid) ${theirs}`);
  await ended;
});

test('a branch whose name its data left behind gets data of another name', async () => {
  await b.createBranch();
  const stagingId = newBranchId();
  await b.cloneBranch(stagingId);
  await b.driver.replaceBranch(b.ref, { stagingId, keepAs: null });
  const receipt = await b.cloneBranch(stagingId);
  expect(await b.cloneBranch(stagingId)).toEqual(receipt);
  expect((await clusterOf(`${stagingId}-2`))?.metadata.labels?.['catnap.internal/branch']).toBe(stagingId);
  // Each goes by itself.
  await b.driver.removeBranch({ ...b.ref, branchId: stagingId });
  expect(await b.start(1)).toMatchObject({ state: 'running' });
});

test('a replica follows its primary to another pod, sleeps deeply by itself, and comes back', async () => {
  const primary = await b.started();
  await b.driver.configure(b.ref, ownerAndDatabase);
  await b.query(primary, 'CREATE TABLE t AS SELECT 1 AS n');
  const replica = { endpointId: newEndpointId(), readOnly: true };
  const ref = { ...b.ref, ...replica };
  // Built, and never started: a suspend still stops it.
  expect(await b.driver.buildReplica(b.spec(1, replica))).toBe('built');
  await b.driver.suspend(ref, 1);
  expect(wantedDepth((await clusterOf(replica.endpointId)) as Cluster)).toBe('nap');
  const running = await b.start(1, replica);
  await eventually(async () => {
    const podOfReplica = await client().find(pods, `${replica.endpointId}-1`);
    expect(resourcesIn(podOfReplica)?.limits).toEqual({ cpu: '2', memory: '1Gi' });
  });
  expect((await b.driver.sample([ref, b.ref])).map(({ endpointId }) => endpointId).sort()).toEqual(
    [replica.endpointId, b.ref.endpointId].sort(),
  );
  expect(await b.driver.settle(ref)).toBeNull();
  await client().remove(pods, `${b.ref.branchId}-1`);
  const elsewhere = await eventually(async () => {
    const found = await b.untilRunning();
    expect(found.address).not.toEqual(primary.address);
    return found;
  });
  await b.query(elsewhere, 'INSERT INTO t VALUES (2)');
  const count = (on: typeof running) => b.query(on, 'SELECT count(*)::int AS n FROM t');
  await eventually(async () => expect(await count(running)).toEqual([{ n: 2 }]));
  await b.driver.suspend(ref, 1);
  expect(await deepenSleep(client(), 3_600, new Date(Date.now() + day))).toBe(1);
  await eventually(async () => expect(await client().find(pods, `${replica.endpointId}-1`)).toBeNull());
  await b.query(elsewhere, 'INSERT INTO t VALUES (3)');
  expect(await b.driver.buildReplica(b.spec(2, replica))).toBe('kept');
  const again = await b.start(2, replica);
  await eventually(async () => expect(await count(again)).toEqual([{ n: 3 }]));
});

test('a server whose end goes unnoticed after a wake comes back in another pod, and only such a one', async () => {
  const running = await b.started();
  const { operator } = subject.open;
  const before = await podOf();
  const stalled = new StalledServers(client());
  const startedAt = Date.parse(before?.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? '');
  const lookAfter = (seconds: number) => stalled.look(new Date(startedAt + seconds * 1_000));
  // One that answers is left alone, however long it is looked at.
  for (const seconds of [60, 120]) expect(await lookAfter(seconds)).toEqual([]);
  operator.overlooksEnds = true;
  try {
    await subject.kill(running);
    await eventually(async () => expect((await clusterOf())?.status?.readyInstances).toBeUndefined());
    expect(await b.driver.observe(b.ref)).toMatchObject({ state: 'starting', generation: 1 });
    // Its container is young, then it is the first look that finds nothing, then that is not long ago.
    for (const seconds of [0, 29, 60, 69]) expect(await lookAfter(seconds)).toEqual([]);
    expect(await lookAfter(70)).toEqual([`${b.ref.branchId}-1`]);
    expect(await b.untilRunning()).toMatchObject({ generation: 1 });
    expect((await podOf())?.metadata.uid).not.toBe(before?.metadata.uid);
    for (const seconds of [60, 120]) expect(await lookAfter(seconds)).toEqual([]);
  } finally {
    operator.overlooksEnds = false;
  }
  // Nor is one that naps, in which nothing listens either.
  await b.driver.suspend(b.ref, 1);
  for (const seconds of [60, 120]) expect(await lookAfter(seconds)).toEqual([]);
});
