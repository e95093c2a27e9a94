import { afterEach, beforeEach, expect, test } from 'vitest';
import { StaleGenerationError } from '../../src/compute/interface/driver.ts';
import { type ComputeRecord, ComputeRecords } from '../../src/compute/kubernetes/driver/compute-records.ts';
import { labelsOfProject } from '../../src/compute/kubernetes/manifests/labels.ts';
import { secrets } from '../../src/compute/kubernetes/objects/kinds.ts';
import { newBranchId, newEndpointId, newProjectId } from '../../src/lib/ids.ts';
import { type OpenDouble, openDouble } from '../helpers/kubernetes-double/open-double.ts';

let open: OpenDouble;
let records: ComputeRecords;
beforeEach(async () => {
  open = await openDouble();
  records = new ComputeRecords(open.client());
});
afterEach(() => open.close());

const newRecord = (generation: number): ComputeRecord => ({
  projectId: newProjectId(),
  branchId: newBranchId(),
  endpointId: newEndpointId(),
  generation,
  adminSecret: 'secret',
});

test('a record is what was claimed last, also for another worker and on another branch', async () => {
  const first = newRecord(3);
  expect(await records.find(first.endpointId)).toBeNull();
  expect(await records.claim(first)).toBeNull();
  expect(await records.claim(first)).toEqual(first);
  const moved = { ...first, branchId: newBranchId(), generation: 4, adminSecret: 'another' };
  expect(await new ComputeRecords(open.client()).claim(moved)).toEqual(first);
  expect(await records.find(first.endpointId)).toEqual(moved);
});

test('an older generation is refused and changes nothing', async () => {
  const record = newRecord(3);
  await records.claim(record);
  await expect(records.claim({ ...record, generation: 2, adminSecret: 'old' })).rejects.toThrow(StaleGenerationError);
  expect(await records.find(record.endpointId)).toEqual(record);
});

test('of many that come at once in any order the newest stays', async () => {
  const record = newRecord(0);
  const generations = [3, 7, 1, 6, 2, 5, 4];
  const claims = generations.map((generation) => records.claim({ ...record, generation }));
  const outcomes = await Promise.allSettled(claims);
  expect((await records.find(record.endpointId))?.generation).toBe(7);
  expect(outcomes[generations.indexOf(7)]?.status).toBe('fulfilled');
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StaleGenerationError);
  }
});

test('one that is removed while it is claimed is made anew', async () => {
  const record = newRecord(1);
  await records.claim(record);
  let removals = 0;
  open.double.interfere = ({ method }) => {
    const isFirst = method === 'PATCH' && removals++ === 0;
    if (isFirst) open.double.store.remove('secrets', record.endpointId, { foreground: false, uid: undefined });
    return undefined;
  };
  expect(await records.claim({ ...record, generation: 2 })).toBeNull();
  expect((await records.find(record.endpointId))?.generation).toBe(2);
});

test('all are listed, and go by their own name or with their project', async () => {
  const [one, two] = [newRecord(1), newRecord(1)];
  for (const record of [one, two]) await records.claim(record);
  const metadata = { name: 'other', labels: labelsOfProject(one) };
  await open.client().create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque' });
  const names = async () => (await records.list()).map(({ endpointId }) => endpointId).sort();
  expect(await names()).toEqual([one.endpointId, two.endpointId].sort());
  const ofProject = await open.client().list(secrets, labelsOfProject(one));
  expect(ofProject.items.map(({ metadata }) => metadata.name).sort()).toEqual([one.endpointId, 'other'].sort());
  await records.remove(one.endpointId);
  await records.remove(one.endpointId);
  expect(await names()).toEqual([two.endpointId]);
});
