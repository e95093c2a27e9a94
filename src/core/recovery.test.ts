import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../test/helpers/core.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import {
  type AuthIntegrationRow,
  insertAuthIntegration,
  selectAuthIntegration,
  updateAuthIntegration,
} from '../db/auth-integrations.ts';
import { selectDatabases } from '../db/databases.ts';
import { claimIntegrationsToFollow } from '../db/users-sync.ts';
import type { BranchId, ProjectId } from '../lib/ids.ts';
import { removeIntegration } from './auth-integration.ts';
import { deleteBranch, setDefaultBranch } from './branch.ts';
import { createBranch } from './branch-create.ts';
import { deleteProject } from './project.ts';
import { purgeBranch, purgeProject, recoverBranch, recoverProject } from './recovery.ts';

let made: TestCore;
const driver = new FakeDriver();
beforeAll(async () => {
  made = await makeCore();
});
afterAll(() => made.close());

const providerUrl = 'https://auth.elsewhere.test';

async function addIntegration(projectId: ProjectId, branchId: BranchId, status: AuthIntegrationRow['status']) {
  const { sql } = made.core.database;
  const [database] = await selectDatabases(sql, branchId);
  const { id } = await insertAuthIntegration(sql, {
    id: randomUUID(),
    projectId,
    authProvider: 'stack',
    branchId,
    databaseId: database?.id ?? null,
    databaseName: database?.name ?? '',
    roleName: 'neondb_owner',
    providerUrl,
  });
  const adminKey = Buffer.from('sealed');
  await updateAuthIntegration(sql, id, { status, providerProjectId: randomUUID(), adminKey, syncedAt: new Date() });
  return id;
}

/** A project whose first branch has the integration, and is no longer the default, so that it can be deleted. */
async function makeStage() {
  const { project, branch } = await makeProject(made);
  const { id: projectId } = project;
  await drain(made.core, driver);
  const child = async (parentId: BranchId) => {
    const input = { annotation: {}, endpoints: [], parentId };
    const { branch: added } = await command(made, (scope) => createBranch(scope, made.caller, projectId, input));
    await drain(made.core, driver);
    return added.id;
  };
  const [branchId, later] = [await child(branch.id), await child(branch.id)];
  const makeDefault = (id: BranchId) => command(made, (scope) => setDefaultBranch(scope, made.caller, projectId, id));
  await makeDefault(branchId);
  const id = await addIntegration(projectId, branchId, 'active');
  return { projectId, branchId, later, makeDefault, id };
}

const integration = async (id: string) => selectAuthIntegration(made.core.database.sql, id);
const leftovers = async () => [...(await made.core.database.sql`select provider_project_id from auth_leftovers`)];

describe('the auth integration', () => {
  test('of a deleted branch comes back with it', async () => {
    const { projectId, branchId, later, makeDefault, id } = await makeStage();
    await makeDefault(later);
    await command(made, (scope) => deleteBranch(scope, made.caller, projectId, branchId));
    expect(await integration(id)).toMatchObject({ status: 'detached', branchId });
    await command(made, (scope) => recoverBranch(scope, made.caller, projectId, branchId));
    // All users are copied again: what happened in between is not known.
    expect(await integration(id)).toMatchObject({ status: 'active', branchId, syncedAt: null });
  });

  test('stays detached if another one was made meanwhile, or somebody had deleted it before', async () => {
    const first = await makeStage();
    await first.makeDefault(first.later);
    await command(made, (scope) => deleteBranch(scope, made.caller, first.projectId, first.branchId));
    await addIntegration(first.projectId, first.later, 'active');
    await command(made, (scope) => recoverBranch(scope, made.caller, first.projectId, first.branchId));
    expect(await integration(first.id)).toMatchObject({ status: 'detached' });

    const second = await makeStage();
    await command(made, (scope) => removeIntegration(scope, made.caller, { projectId: second.projectId }, false));
    await second.makeDefault(second.later);
    await command(made, (scope) => deleteBranch(scope, made.caller, second.projectId, second.branchId));
    await command(made, (scope) => recoverBranch(scope, made.caller, second.projectId, second.branchId));
    expect(await integration(second.id)).toMatchObject({ status: 'detached' });
  });

  test('of a branch that is purged is kept for another branch', async () => {
    const { projectId, branchId, later, makeDefault, id } = await makeStage();
    await makeDefault(later);
    await command(made, (scope) => deleteBranch(scope, made.caller, projectId, branchId));
    await command(made, (scope) => purgeBranch(scope, made.caller, projectId, branchId));
    await drain(made.core, driver);
    expect(await integration(id)).toMatchObject({ status: 'detached', branchId: null });
    expect(await leftovers()).toEqual([]);
  });

  test('of a deleted project is not followed, and its project at the provider goes with the purge alone', async () => {
    const { projectId, id } = await makeStage();
    const { sql } = made.core.database;
    const follow = async () => {
      const claim = { lease: randomUUID(), ms: 0, limit: 100 };
      return (await claimIntegrationsToFollow(sql, claim)).map((row) => row.id);
    };
    await command(made, (scope) => deleteProject(scope, made.caller, projectId));
    expect(await follow()).not.toContain(id);
    expect(await leftovers()).toEqual([]);
    await sql`update auth_integrations set poll_at = now() + interval '1 hour' where id = ${id}`;
    await command(made, (scope) => recoverProject(scope, made.caller, projectId));
    expect(await follow()).toContain(id);
    await command(made, (scope) => deleteProject(scope, made.caller, projectId));
    await command(made, (scope) => purgeProject(scope, made.caller, projectId));
    const { providerProjectId } = (await integration(id)) ?? {};
    expect(await leftovers()).toEqual([{ providerProjectId }]);
  });
});
