/** What turning logical replication on does to a project's computes and branches, on the fake driver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { createBranch } from '../core/branch-create.ts';
import { createEndpoint, startEndpoint, suspendEndpoint } from '../core/endpoint.ts';
import { type EndpointChanges, updateEndpointOf } from '../core/endpoint-update.ts';
import { type ProjectSettings, updateProjectOf } from '../core/project.ts';

let domain: TestCore;
beforeAll(async () => {
  domain = await makeCore({ defaultPlan: 'scale' });
});
afterAll(() => domain.close());

async function stage() {
  const driver = new FakeDriver();
  const made = await makeProject(domain);
  await drain(domain.core, driver);
  const { project, branch, endpoint } = made;
  const run = () => drain(domain.core, driver);
  const set = async (settings: Partial<ProjectSettings>) =>
    (await command(domain, (scope) => updateProjectOf(scope, domain.caller, project.id, { settings }))).operations;
  const change = async (changes: EndpointChanges) => {
    const address = { projectId: project.id, endpointId: endpoint.id };
    return (await command(domain, (scope) => updateEndpointOf(scope, domain.caller, address, changes))).operations;
  };
  const compute = (id: string = endpoint.id) => driver.computes.get(id);
  return { driver, project, branch, endpoint, run, set, change, compute };
}

const logical = { enable_logical_replication: true };
const actions = (operations: readonly { action: string | null; endpointId: string | null }[]) =>
  operations.map(({ action, endpointId }) => [action, endpointId]);

describe('logical replication', () => {
  test('restarts what is awake with wal_level logical, primaries first, and lets their roles replicate', async () => {
    const { driver, project, branch, endpoint, run, set, compute } = await stage();
    const { endpoint: replica } = await command(domain, (scope) =>
      createEndpoint(scope, domain.caller, project.id, { type: 'read_only', branchId: branch.id }),
    );
    await run();
    const pids = [endpoint.id, replica.id].map((id) => compute(id)?.process?.pid);
    expect(compute()?.settings.wal_level).toBeUndefined();
    expect(driver.branches.get(branch.id)?.replicates).toBe(false);
    expect(actions(await set(logical))).toEqual([
      ['apply_config', endpoint.id],
      ['apply_config', replica.id],
    ]);
    await run();
    for (const [index, id] of [endpoint.id, replica.id].entries()) {
      expect(compute(id)?.settings).toMatchObject({ wal_level: 'logical', max_logical_replication_workers: '4' });
      expect(compute(id)?.process?.pid).not.toBe(pids[index]);
      expect(compute(id)?.process).not.toBeNull();
    }
    expect(driver.branches.get(branch.id)?.replicates).toBe(true);
  });

  test('does nothing the second time, and cannot be turned off', async () => {
    const { run, set, compute } = await stage();
    await set(logical);
    await run();
    const pid = compute()?.process?.pid;
    expect(await set(logical)).toEqual([]);
    await run();
    expect(compute()?.process?.pid).toBe(pid);
    await expect(set({ enable_logical_replication: false })).rejects.toThrow(
      'body.project.settings.enable_logical_replication cannot be turned off again',
    );
  });

  test('reaches a sleeping compute, and its roles, at its next start', async () => {
    const { driver, project, branch, endpoint, run, set, compute } = await stage();
    await command(domain, (scope) => suspendEndpoint(scope, domain.caller, project.id, endpoint.id));
    await run();
    expect(await set(logical)).toEqual([]);
    await run();
    expect(compute()?.process).toBeNull();
    await command(domain, (scope) => startEndpoint(scope, domain.caller, project.id, endpoint.id));
    await run();
    expect(compute()?.settings.wal_level).toBe('logical');
    expect(driver.branches.get(branch.id)?.replicates).toBe(true);
  });

  test('a new branch is cut off from its parent’s publishers', async () => {
    const { driver, project, run, set } = await stage();
    const add = async () => {
      const input = { annotation: {}, endpoints: [{ type: 'read_write' as const }] };
      const made = await command(domain, (scope) => createBranch(scope, domain.caller, project.id, input));
      await run();
      return driver.branches.get(made.branch.id);
    };
    expect((await add())?.isDetached).toBe(false);
    await set(logical);
    await run();
    expect(await add()).toMatchObject({ isDetached: true, replicates: true, slots: [] });
  });
});

describe('what a server runs with decides whether anything is queued', () => {
  test('outbound connections mean one restart, on and off again', async () => {
    const { endpoint, run, set, compute } = await stage();
    for (const allowed of [true, false]) {
      const pid = compute()?.process?.pid;
      const operations = await set({ allow_outbound_connections: allowed });
      expect(actions(operations)).toEqual([['apply_config', endpoint.id]]);
      await run();
      expect(compute()?.process?.pid).toBeGreaterThan(pid ?? Number.NaN);
      expect(await set({ allow_outbound_connections: allowed })).toEqual([]);
    }
  });

  test('a library of the project is loaded, and a label is only a label', async () => {
    const { endpoint, run, set, change, compute } = await stage();
    expect(compute()?.settings.shared_preload_libraries).toBe('pg_stat_statements');
    const operations = await set({ preload_libraries: { use_defaults: false } });
    expect(actions(operations)).toEqual([['apply_config', endpoint.id]]);
    await run();
    expect(compute()?.settings.shared_preload_libraries).toBe('');
    expect(await set({ allowed_ips: { ips: ['10.0.0.0/8'], protected_branches_only: false } })).toEqual([]);
    expect(await change({ name: 'a label', poolerEnabled: true })).toEqual([]);
  });

  test('settings that mean the same are no change of the server, and others are', async () => {
    const { run, change, compute } = await stage();
    expect(await change({ settings: { preload_libraries: { use_defaults: true } } })).toEqual([]);
    expect(await change({ settings: { pg_settings: { work_mem: '9MB' } } })).toHaveLength(1);
    await run();
    expect(compute()?.settings.work_mem).toBe('9MB');
    expect(await change({ maxCu: 1 })).toHaveLength(1);
  });
});
