import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import type { BranchId } from '../lib/ids.ts';
import { deleteBranch, getBranch, updateBranchOf } from './branch.ts';
import { createBranch } from './branch-create.ts';
import { restoreBranch } from './branch-restore.ts';
import { readScope } from './context.ts';
import { createDatabase } from './database.ts';
import { createEndpoint } from './endpoint.ts';
import type { CreatedProject } from './project-create.ts';
import { createRole, listRoles } from './role.ts';

let made: TestCore;
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

class Stage {
  readonly driver = new FakeDriver();
  readonly project: CreatedProject;

  constructor(project: CreatedProject) {
    this.project = project;
  }

  get id() {
    return this.project.project.id;
  }

  drain = () => drain(made.core, this.driver);

  async branch(name: string, parentId = this.project.branch.id, withCompute = true) {
    const endpoints = withCompute ? [{ type: 'read_write' as const }] : [];
    const input = { name, parentId, annotation: {}, endpoints };
    const result = await command(made, (scope) => createBranch(scope, made.caller, this.id, input));
    await this.drain();
    return result;
  }

  restore(branchId: BranchId, sourceId: BranchId, preserveUnderName: string | null = null) {
    const input = { projectId: this.id, branchId, sourceId, preserveUnderName };
    return command(made, (scope) => restoreBranch(scope, made.caller, input));
  }

  role(branchId: BranchId, name: string) {
    const input = { projectId: this.id, branchId, name, noLogin: false };
    return command(made, (scope) => createRole(scope, made.caller, input));
  }

  get = (id: BranchId) => getBranch(readScope(made.core), made.caller, this.id, id);
  pid = (id: string) => this.driver.computes.get(id)?.process?.pid;

  async roleNames(branchId: BranchId) {
    const roles = await listRoles(readScope(made.core), made.caller, this.id, branchId);
    return roles.map(({ name }) => name);
  }
}

async function stage(): Promise<Stage> {
  const staged = new Stage(await makeProject(made));
  await staged.drain();
  return staged;
}

const actionsOf = (operations: readonly { action: string | null; status: string }[]) =>
  operations.map(({ action, status }) => [action, status]);

describe('a reset to the parent', () => {
  test('gives the branch the data and roles of the parent; its compute comes back on them', async () => {
    const s = await stage();
    const { branch, endpoints } = await s.branch('dev');
    const [endpoint] = endpoints;
    await s.role(branch.id, 'only_here');
    await s.role(s.project.branch.id, 'since_then');
    await s.drain();
    const before = s.pid(endpoint?.id ?? '');
    const { branch: resetting, operations } = await s.restore(branch.id, s.project.branch.id);
    expect(resetting).toMatchObject({ id: branch.id, currentState: 'resetting', pendingState: 'ready' });
    expect(actionsOf(operations)).toEqual([
      ['create_branch', 'running'],
      ['start_compute', 'scheduling'],
    ]);
    await s.drain();
    expect(await s.get(branch.id)).toMatchObject({
      name: 'dev',
      currentState: 'ready',
      pendingState: null,
      parentId: s.project.branch.id,
      lastResetAt: expect.any(Date),
    });
    expect(await s.roleNames(branch.id)).toEqual(['neondb_owner', 'since_then']);
    expect([...(s.driver.branches.get(branch.id)?.roles.keys() ?? [])]).toEqual(['neondb_owner', 'since_then']);
    expect(s.pid(endpoint?.id ?? '')).toBeGreaterThan(before ?? 0);
    expect(s.driver.branches.size).toBe(2);
  });

  test('has the server write out what it holds while the copy is made, and goes on where that fails', async () => {
    const s = await stage();
    const { branch } = await s.branch('dev');
    const callsOf = async (work: () => Promise<unknown>) => {
      const before = s.driver.calls.length;
      await work();
      await s.drain();
      return s.driver.calls.slice(before).map(({ method }) => method);
    };
    const reset = () => s.restore(branch.id, s.project.branch.id);
    const methods = await callsOf(reset);
    expect(methods.filter((method) => ['settle', 'suspend', 'replaceBranch'].includes(method))).toEqual([
      'settle',
      'suspend',
      'replaceBranch',
    ]);
    s.driver.failNext('settle', new Error('the disk is slow'));
    expect(await callsOf(reset)).toContain('replaceBranch');
    expect(await s.get(branch.id)).toMatchObject({ currentState: 'ready' });
  });

  test('leaves a compute asleep that was asleep, and keeps the passwords of the source', async () => {
    const s = await stage();
    const { branch } = await s.branch('dev', undefined, false);
    const { role } = await s.role(s.project.branch.id, 'since_then');
    await s.drain();
    expect(actionsOf((await s.restore(branch.id, s.project.branch.id)).operations)).toEqual([
      ['create_branch', 'running'],
    ]);
    await s.drain();
    const roles = await listRoles(readScope(made.core), made.caller, s.id, branch.id);
    const found = roles.find(({ name }) => name === 'since_then');
    expect(found?.verifier).toBe(role.verifier);
    expect(Buffer.from(found?.password ?? [])).toEqual(Buffer.from(role.password ?? []));
  });
});

describe('preserve_under_name', () => {
  test('keeps the old data and roles in a new branch, which takes the children over', async () => {
    const s = await stage();
    const { branch: root } = s.project;
    const { branch: dev } = await s.branch('dev');
    const { branch: feature } = await s.branch('feature', dev.id);
    await s.role(dev.id, 'old_one');
    await s.drain();
    await expect(s.restore(dev.id, root.id)).rejects.toThrow(/preserve_under_name is required.*feature/);
    await s.restore(dev.id, root.id, 'dev_old');
    await s.drain();
    const { parentId: kept } = await s.get(feature.id);
    expect(await s.get(kept as BranchId)).toMatchObject({ name: 'dev_old', parentId: root.id, currentState: 'ready' });
    expect(await s.roleNames(kept as BranchId)).toEqual(['neondb_owner', 'old_one']);
    expect(await s.roleNames(dev.id)).toEqual(['neondb_owner']);
    expect(s.driver.branches.get(kept as string)?.roles.has('old_one')).toBe(true);
    expect(s.driver.branches.size).toBe(4);
  });

  test('a root restored from its own child stays a root, and so is what it was', async () => {
    const s = await stage();
    const { branch: root } = s.project;
    const { branch: dev } = await s.branch('dev');
    await s.restore(root.id, dev.id, 'main_old');
    await s.drain();
    expect(await s.get(root.id)).toMatchObject({ parentId: null, isDefault: true });
    const { parentId: kept } = await s.get(dev.id);
    expect(await s.get(kept as BranchId)).toMatchObject({ name: 'main_old', parentId: null });
    await command(made, (scope) => deleteBranch(scope, made.caller, s.id, dev.id));
    await s.drain();
  });

  test('needs a free name', async () => {
    const s = await stage();
    const { branch } = await s.branch('dev');
    await expect(s.restore(branch.id, s.project.branch.id, 'dev')).rejects.toThrow(/already exists/);
  });
});

describe('a restore that fails', () => {
  test('leaves the old data serving without a restart, the children where they were, and no copy', async () => {
    const s = await stage();
    const { branch: root } = s.project;
    const { branch: dev, endpoints } = await s.branch('dev');
    const { branch: feature } = await s.branch('feature', dev.id);
    await s.role(dev.id, 'old_one');
    await s.drain();
    const before = s.pid(endpoints[0]?.id ?? '');
    const { operations } = await s.restore(dev.id, root.id, 'dev_old');
    await made.core.database.sql`update operations set deadline_at = now() where id = ${operations[0]?.id ?? ''}`;
    s.driver.failNext('createBranch', new Error('the disk said no'));
    await s.drain();
    expect(s.pid(endpoints[0]?.id ?? '')).toBe(before);
    expect(await s.get(dev.id)).toMatchObject({ currentState: 'ready', parentId: root.id, lastResetAt: null });
    expect((await s.get(feature.id)).parentId).toBe(dev.id);
    expect(await s.roleNames(dev.id)).toEqual(['neondb_owner', 'old_one']);
    expect(s.driver.branches.size).toBe(3);
    const [backup] = await made.core.database.sql`select current_state, pending_state from branches
      where name = 'dev_old' and project_id = ${s.id}`;
    expect(backup).toEqual({ currentState: 'init', pendingState: null });
  });

  test('when it fails while its computes are down, they come back on the old data', async () => {
    const s = await stage();
    const { branch: dev, endpoints } = await s.branch('dev');
    await s.role(dev.id, 'old_one');
    await s.drain();
    const { operations } = await s.restore(dev.id, s.project.branch.id);
    await made.core.database.sql`update operations set deadline_at = now() where id = ${operations[0]?.id ?? ''}`;
    s.driver.failNext('replaceBranch', new Error('the disk said no'));
    await s.drain();
    expect(s.pid(endpoints[0]?.id ?? '')).toBeDefined();
    expect(await s.roleNames(dev.id)).toEqual(['neondb_owner', 'old_one']);
    expect(s.driver.branches.size).toBe(2);
  });
});

describe('while it is under way', () => {
  test('what would have to be thought of twice has to wait', async () => {
    const s = await stage();
    const { branch } = await s.branch('dev');
    await s.restore(branch.id, s.project.branch.id, 'dev_old');
    const projectId = s.id;
    const wait = /is being restored; try again/;
    await expect(s.restore(branch.id, s.project.branch.id)).rejects.toThrow(wait);
    await expect(s.restore(s.project.branch.id, branch.id, 'x')).rejects.toThrow(wait);
    await expect(s.role(branch.id, 'r')).rejects.toThrow(wait);
    await expect(s.branch('child', branch.id)).rejects.toThrow(wait);
    const database = { projectId, branchId: branch.id, name: 'd', ownerName: 'neondb_owner' };
    await expect(command(made, (scope) => createDatabase(scope, made.caller, database))).rejects.toThrow(wait);
    await expect(command(made, (scope) => deleteBranch(scope, made.caller, projectId, branch.id))).rejects.toThrow(
      wait,
    );
    // A replica that is requested meanwhile gets the new data.
    const replica = { type: 'read_only' as const, branchId: branch.id };
    const added = await command(made, (scope) => createEndpoint(scope, made.caller, projectId, replica));
    await s.drain();
    expect(s.pid(added.endpoint.id)).toBeDefined();
    await s.role(branch.id, 'r');
    await s.drain();
  });
});

describe('what cannot be restored', () => {
  test('a protected branch, or from a branch that expires', async () => {
    const s = await stage();
    const { branch } = await s.branch('dev');
    const { branch: other } = await s.branch('other');
    const change = (branchId: BranchId, fields: Parameters<typeof updateBranchOf>[3]) =>
      command(made, (scope) => updateBranchOf(scope, made.caller, { projectId: s.id, branchId }, fields));
    await change(other.id, { expiresAt: new Date(Date.now() + 60_000) });
    await expect(s.restore(branch.id, other.id)).rejects.toThrow(/expires cannot have children/);
    await change(branch.id, { protected: true });
    await expect(s.restore(branch.id, s.project.branch.id)).rejects.toThrow('cannot restore protected branch');
  });
});
