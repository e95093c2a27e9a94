import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type ComputeRef, StaleGenerationError } from '../../src/compute/interface/driver.ts';
import { BranchClusters } from '../../src/compute/kubernetes/driver/branch-clusters.ts';
import { addressOf } from '../../src/compute/kubernetes/driver/pod-address.ts';
import type { Platform } from '../../src/compute/kubernetes/manifests/cluster.ts';
import { labelsOfBranch, labelsOfProject } from '../../src/compute/kubernetes/manifests/labels.ts';
import { readinessOf } from '../../src/compute/kubernetes/manifests/sleep.ts';
import { clusters, pods, volumeSnapshots } from '../../src/compute/kubernetes/objects/kinds.ts';
import { adminLogin, isNotReady, withSession } from '../../src/compute/server/admin-session.ts';
import { newBranchId, newEndpointId, newProjectId } from '../../src/lib/ids.ts';
import { eventually } from '../helpers/eventually.ts';
import { testPatience } from '../helpers/kubernetes-double/open-double.ts';
import { type OpenOperator, openOperator } from '../helpers/kubernetes-double/open-operator.ts';

let open: OpenOperator;
let branches: BranchClusters;
let ref: ComputeRef;
beforeAll(async () => {
  open = await openOperator();
  branches = new BranchClusters(open.client(), platform());
});
beforeEach(() => {
  ref = { projectId: newProjectId(), branchId: newBranchId(), endpointId: newEndpointId(), tenantUid: null };
});
afterAll(() => open.close());

const platform = (): Platform => ({
  namespace: open.double.namespace,
  images: { 17: 'registry.test/postgresql:17.6' },
  storageClass: null,
  snapshotClass: null,
  volumeSize: '1Gi',
});
const serving = (generation: number, change: Partial<ComputeRef> = {}, settings: Record<string, string> = {}) => ({
  ref: { ...ref, ...change },
  generation,
  settings,
});

/** As Catnap itself, at the address of the pod, as soon as it answers; what it answers may be an error. */
async function query(text: string, branchId = ref.branchId): Promise<Record<string, unknown>[]> {
  const secret = await branches.readAdminSecret(branchId);
  const answer = await eventually(async () => {
    const cluster = await branches.find({ ...ref, branchId });
    const pod = await open.client().find(pods, (cluster && readinessOf(cluster).primary) ?? '');
    const address = pod && addressOf(pod);
    if (address === null) throw new Error('there is no pod yet');
    try {
      return await withSession(address, adminLogin(secret), async (sql) => [...(await sql.unsafe(text))]);
    } catch (error) {
      if (isNotReady(error)) throw error;
      return { error };
    }
  });
  if ('error' in answer) throw answer.error;
  return answer;
}
const podOf = (branchId: string) => open.client().find(pods, `${branchId}-1`);
const isServed = async (branchId: string) => (await open.volumes.find(`${branchId}-1`)) !== null;

test('a branch is made asleep, and serves with the settings of its compute', async () => {
  await branches.createEmpty(ref, 17);
  await eventually(async () => expect(await isServed(ref.branchId)).toBe(false));
  await branches.createEmpty(ref, 17);
  await branches.wake(serving(1, {}, { work_mem: '5MB', shared_preload_libraries: 'pg_stat_statements', port: '1' }));
  const [found] = await query(`SELECT current_setting('work_mem') AS "workMem", rolsuper AS "isSuper",
    current_setting('shared_preload_libraries') AS libraries,
    (SELECT count(*)::int FROM pg_database WHERE datname = 'catnap_spare') AS spares
    FROM pg_roles WHERE rolname = current_user`);
  expect(found).toEqual({ workMem: '5MB', isSuper: true, libraries: 'pg_stat_statements', spares: 1 });
  // A setting that is no longer wanted goes, and is not kept by the merge.
  await branches.wake(serving(1, {}, {}));
  await eventually(async () => expect(await query('SHOW work_mem')).toEqual([{ work_mem: '4MB' }]));
});

test('a nap keeps the pod, deep sleep does not, and both keep the data', async () => {
  await branches.createEmpty(ref, 17);
  await branches.wake(serving(1));
  await query('CREATE TABLE public.t AS SELECT 7 AS n');
  const before = await podOf(ref.branchId);
  expect(await branches.sleep(ref, 1, 'nap')).toBe(true);
  await eventually(async () => expect(await isServed(ref.branchId)).toBe(false));
  await branches.wake(serving(2));
  expect(await query('SELECT n FROM public.t')).toEqual([{ n: 7 }]);
  expect((await podOf(ref.branchId))?.metadata.uid).toBe(before?.metadata.uid);

  await branches.sleep(ref, 2, 'nap');
  expect(await branches.sleep(ref, 2, 'deep')).toBe(true);
  await eventually(async () => expect(await podOf(ref.branchId)).toBeNull());
  // A late nap does not bring a pod back.
  await branches.sleep(ref, 2, 'nap');
  await open.operator.settled();
  expect(await podOf(ref.branchId)).toBeNull();
  await branches.wake(serving(3));
  expect(await query('SELECT n FROM public.t')).toEqual([{ n: 7 }]);
});

test('a branch is served by one compute at a time, in its newest generation', async () => {
  await branches.createEmpty(ref, 17);
  const other = { endpointId: newEndpointId() };
  await branches.wake(serving(3));
  await expect(branches.wake(serving(9, other))).rejects.toThrow(`in use by ${ref.endpointId}`);
  await expect(branches.wake(serving(2))).rejects.toThrow(StaleGenerationError);
  await expect(branches.sleep(ref, 2, 'nap')).rejects.toThrow(StaleGenerationError);
  expect(await branches.sleep({ ...ref, ...other }, 9, 'nap')).toBe(false);
  expect(await query('SELECT 1 AS n')).toEqual([{ n: 1 }]);
  await branches.sleep(ref, 3, 'nap');
  await branches.wake(serving(1, other));
  expect(await branches.sleep(ref, 4, 'nap')).toBe(false);
  // Of two that come at once one is told that it is too late.
  await branches.sleep({ ...ref, ...other }, 1, 'nap');
  const rivals = [ref.endpointId, other.endpointId, newEndpointId()];
  const outcomes = await Promise.allSettled(rivals.map((endpointId) => branches.wake(serving(5, { endpointId }))));
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
  await expect(branches.wake(serving(1, { branchId: newBranchId() }))).rejects.toThrow(/has no data/);
});

test.each(['awake', 'nap', 'deep'] as const)(
  'a copy of a branch (%s) has its data and goes its own way',
  async (depth) => {
    await branches.createEmpty(ref, 17);
    await branches.wake(serving(1));
    await query('CREATE TABLE public.t AS SELECT 7 AS n');
    if (depth !== 'awake') {
      await branches.sleep(ref, 1, depth);
      await eventually(async () => expect(await isServed(ref.branchId)).toBe(false));
      await open.operator.settled();
    }
    const source = await branches.find(ref);
    if (source === null) throw new Error('the source is gone');
    const child = { ...ref, branchId: newBranchId(), endpointId: newEndpointId() };
    await branches.copy(child, 17, source);
    await branches.copy(child, 17, source);
    const snapshots = () => open.client().list(volumeSnapshots, labelsOfBranch(child));
    await eventually(async () => expect((await snapshots()).items).toEqual([]));
    // The source is as it was.
    expect(await isServed(ref.branchId)).toBe(depth === 'awake');
    expect((await podOf(ref.branchId)) === null).toBe(depth === 'deep');
    await branches.wake({ ref: child, generation: 1, settings: {} });
    expect(await query('SELECT n FROM public.t', child.branchId)).toEqual([{ n: 7 }]);
    await query('DROP TABLE public.t', child.branchId);
    await branches.wake(serving(2));
    expect(await query('SELECT n FROM public.t')).toEqual([{ n: 7 }]);
  },
);

test('a copy of a volume that there is not fails with the reason', async () => {
  await branches.createEmpty(ref, 17);
  const source = await branches.find(ref);
  if (source === null) throw new Error('the source is gone');
  const elsewhere = { ...source, status: { ...source.status, currentPrimary: 'nowhere-1' } };
  const child = { ...ref, branchId: newBranchId() };
  await expect(branches.copy(child, 17, elsewhere)).rejects.toThrow(/volume cannot be copied: cannot get claim/);
  expect(await branches.find(child)).toBeNull();
  // Not held up by what is left of the first attempt, which may still be on its way out.
  await branches.copy(child, 17, source);
  expect(await branches.find(child)).not.toBeNull();
});

test('a snapshot that is on its way out is not copied from, although it says that it is ready', async () => {
  await branches.createEmpty(ref, 17);
  const source = await branches.find(ref);
  if (source === null) throw new Error('the source is gone');
  const child = { ...ref, branchId: newBranchId() };
  let letGo = () => {};
  const isLetGo = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const removeSnapshot = open.volumes.removeSnapshot.bind(open.volumes);
  const slow = vi.spyOn(open.volumes, 'removeSnapshot').mockImplementation(async (name) => {
    await isLetGo;
    await removeSnapshot(name);
  });
  const isOfSnapshot = ({ path }: { path: string }) => path.includes(`volumesnapshots/${child.branchId}`);
  try {
    // As in a restore: the copy becomes another branch's data, and the next one needs a copy of the same name.
    await branches.rename(await branches.copy(child, 17, source), { ...ref, branchId: newBranchId() });
    const askedBefore = open.double.requests.filter(isOfSnapshot).length;
    const again = branches.copy(child, 17, source);
    await eventually(() => expect(open.double.requests.filter(isOfSnapshot).length).toBeGreaterThan(askedBefore + 1));
    expect(await branches.find(child)).toBeNull();
    letGo();
    expect((await again).metadata.labels).toMatchObject(labelsOfBranch(child));
  } finally {
    letGo();
    slow.mockRestore();
  }
});

test('while the operator is down nothing wakes or falls asleep, and nothing is lost', async () => {
  await branches.createEmpty(ref, 17);
  await branches.wake(serving(1));
  await query('CREATE TABLE public.t AS SELECT 7 AS n');
  const impatient = new BranchClusters(open.client({ ...testPatience, forMs: 0 }), platform());
  open.double.isOperatorUp = false;
  try {
    await expect(impatient.sleep(ref, 1, 'nap')).rejects.toThrow(/failed calling webhook/);
    expect(await query('SELECT n FROM public.t')).toEqual([{ n: 7 }]);
  } finally {
    open.double.isOperatorUp = true;
  }
  expect(await impatient.sleep(ref, 1, 'nap')).toBe(true);
});

test('a removal leaves nothing of a branch, and then of its project', async () => {
  await branches.createEmpty(ref, 17);
  const other = { ...ref, branchId: newBranchId() };
  await branches.createEmpty(other, 17);
  await branches.wake(serving(1));
  await branches.remove(labelsOfBranch(ref));
  await branches.remove(labelsOfBranch(ref));
  expect(await branches.find(ref)).toBeNull();
  expect(await branches.find(other)).not.toBeNull();
  await branches.remove(labelsOfProject(ref));
  const kinds = ['clusters', 'pods', 'services', 'persistentvolumeclaims', 'volumesnapshots', 'secrets'];
  const left = kinds.flatMap((kind) => open.double.store.list(kind));
  const names = left.map(({ metadata }) => metadata.name);
  const isTheirs = (name: string) => [ref, other].some(({ branchId }) => name.startsWith(branchId));
  expect(names.filter(isTheirs)).toEqual([]);
  // A volume goes after its claim.
  await eventually(async () => expect((await open.volumes.list()).filter(isTheirs)).toEqual([]));
  expect((await open.client().list(clusters, labelsOfProject(ref))).items).toEqual([]);
});
