import { describe, expect, test } from 'vitest';
import { newBranchId, newEndpointId, newProjectId, newSecret } from '../../lib/ids.ts';
import { type DriverSubject, limits } from '../contract/bench.ts';
import { describeDriverContract } from '../contract/contract.ts';
import type { ComputeSpec } from '../interface/driver.ts';
import { FakeDriver } from './fake-driver.ts';
import type { FakeOptions } from './world.ts';

describeDriverContract('the fake driver', async () => fakeSubject({ startupMs: 5 }));

describe('the fake driver', () => {
  test('fails as told, and then works', async () => {
    const { driver, spec } = await withBranch();
    driver.failNext('start', new Error('no room'), 2);
    await expect(driver.start(spec)).rejects.toThrow('no room');
    await expect(driver.start(spec)).rejects.toThrow('no room');
    expect(driver.computes.size).toBe(0);
    await driver.start(spec);
    expect(driver.computes.get(spec.endpointId)?.process?.generation).toBe(1);
  });

  test('is starting until it answers', async () => {
    const { driver, spec } = await withBranch({ startupMs: 30 });
    await driver.start(spec);
    expect(await driver.observe(spec)).toMatchObject({ state: 'starting', address: null });
    await expect.poll(async () => (await driver.observe(spec)).state).toBe('running');
  });

  test('remembers the calls', async () => {
    const { driver, spec } = await withBranch();
    await driver.start(spec);
    expect(driver.calls.map(({ method }) => method)).toEqual(['createBranch', 'start']);
  });
});

async function withBranch(options: FakeOptions = {}): Promise<{ driver: FakeDriver; spec: ComputeSpec }> {
  const driver = new FakeDriver(options);
  const spec: ComputeSpec = {
    projectId: newProjectId(),
    branchId: newBranchId(),
    endpointId: newEndpointId(),
    tenantUid: null,
    generation: 1,
    pgVersion: 17,
    settings: {},
    tempDiskBytes: 1_048_576,
    limits,
    adminSecret: newSecret(),
  };
  await driver.createBranch({ ...spec, source: { kind: 'template' } });
  return { driver, spec };
}

function fakeSubject(options: FakeOptions): DriverSubject {
  const driver = new FakeDriver(options);
  return {
    driver,
    pgVersion: 17,
    reopen: () => new FakeDriver({ ...options, world: driver }),
    newTenant: () => ({ projectId: newProjectId(), tenantUid: null }),
    kill: ({ endpointId }) => driver.kill(endpointId),
    leftovers: async () => [
      ...Array.from(driver.branches, ([id, { projectId }]) => `${projectId}/${id}`),
      ...Array.from(driver.replicas, ([id, { projectId }]) => `${projectId}/${id}`),
      ...Array.from(driver.computes, ([id, { ref }]) => `${ref.projectId}/${id}`),
    ],
    close: async () => undefined,
  };
}
