import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import type { Core } from '../core/context.ts';
import { createSnapshot, deleteSnapshot } from '../core/snapshot.ts';
import { createLogger } from '../lib/log.ts';
import { makeStoredSnapshots } from './stored-snapshots.ts';

const backup = { url: 'file:///mnt/backup', s3: undefined, bytesPerSecond: undefined, delaySeconds: 30 };
let domain: TestCore;
beforeAll(async () => {
  domain = await makeCore();
});
afterAll(() => domain.close());
beforeEach(() => domain.core.database.sql`delete from projects`);

/** A project with a snapshot, and a reconciler for it. */
async function stage(config: Partial<Core['config']> = { backup }) {
  const driver = new FakeDriver();
  const { project, branch } = await makeProject(domain);
  const [projectId, branchId] = [project.id, branch.id];
  const take = async () => {
    const { snapshot } = await command(domain, (scope) =>
      createSnapshot(scope, domain.caller, { projectId, branchId }, {}),
    );
    await drain(domain.core, driver);
    return snapshot.id;
  };
  const kept = vi.spyOn(driver, 'keepHistory');
  const log = createLogger({ level: 'silent', process: 'test' });
  const failed = vi.spyOn(log, 'error');
  const { turn } = makeStoredSnapshots();
  const core = { ...domain.core, config: { ...domain.core.config, ...config } };
  /** What the driver was asked for in a turn. */
  const turned = async () => {
    kept.mockClear();
    await turn({ core, driver, log });
    return kept.mock.calls.map(([ref, policy]) => [ref.branchId, policy]);
  };
  return { projectId, first: await take(), take, kept, failed, turned };
}

const wanted = { retentionSeconds: 86_400, isSnapshot: true };

test('each snapshot is made ready for the store once, and none that is deleted', async () => {
  const { projectId, first, take, turned } = await stage();
  expect(await turned()).toEqual([[first, wanted]]);
  expect(await turned()).toEqual([]);
  const [second, third] = [await take(), await take()];
  await command(domain, (scope) => deleteSnapshot(scope, domain.caller, { projectId, snapshotId: third }));
  expect(await turned()).toEqual([[second, wanted]]);
});

test('one that fails is tried again, and logged once', async () => {
  const { first, kept, failed, turned } = await stage();
  kept.mockRejectedValueOnce(new Error('no space')).mockRejectedValueOnce(new Error('no space'));
  expect(await turned()).toHaveLength(1);
  expect(await turned()).toHaveLength(1);
  expect(failed).toHaveBeenCalledTimes(1);
  expect(await turned()).toEqual([[first, wanted]]);
  expect(await turned()).toEqual([]);
});

test('without a store nothing is kept of it', async () => {
  const { first, turned } = await stage({ backup: undefined });
  expect(await turned()).toEqual([[first, { retentionSeconds: 0, isSnapshot: true }]]);
  expect(await turned()).toEqual([]);
});
