/** The published SDK, unmodified: every method that has a meaning here, and what it makes of the others. */
import { createNeonClient, type NeonClient } from '@neon/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let neon: NeonClient<true>;
let projectId: string;
let branchId: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  neon = createNeonClient({
    apiKey: await program.apiKey(),
    baseUrl: `http://127.0.0.1:${program.httpPort}/api/v2`,
    throwOnError: true,
    waitForReadiness: true,
    retries: 0,
  });
});
afterAll(() => program.destroy());

describe('@neon/sdk', () => {
  it('knows who it is, and makes and revokes keys', async () => {
    expect((await neon.user.me()).login).toBe('admin');
    expect(await neon.user.organizations()).toHaveLength(1);
    expect((await neon.regions.list()).map(({ region_id }) => region_id)).toEqual(['local']);
    const made = await neon.apiKeys.create({ keyName: 'second' });
    expect((await neon.apiKeys.list()).map(({ name }) => name)).toEqual(['first key', 'second']);
    await neon.apiKeys.revoke({ keyId: made.id });
    expect(await neon.apiKeys.list()).toHaveLength(1);
  });

  it('makes a project and connects to it', async () => {
    const { project, connectionString } = await neon.projects.createAndConnect({ name: 'by sdk' });
    projectId = project.id;
    expect(await ask(connectionString, 'select 1')).toBe('1');
    await neon.projects.update({ projectId, name: 'renamed' });
    expect((await neon.projects.get({ projectId })).name).toBe('renamed');
    expect((await neon.projects.list().all()).map(({ id }) => id)).toEqual([projectId]);
    branchId = (await neon.branches.getDefault({ projectId })).id;
    const members = await neon.projects.members.list({ projectId }).all();
    expect(members.map(({ name }) => name)).toEqual(['Admin']);
    expect(await neon.projects.permissions.list({ projectId })).toEqual([]);
  });

  it('roles and databases', async () => {
    const { roles, databases } = neon.postgres;
    const of = { projectId, branchId };
    await roles.create({ ...of, name: 'reader' });
    expect((await roles.list(of)).map(({ name }) => name)).toEqual(['neondb_owner', 'reader']);
    const { password } = await roles.resetPassword({ ...of, roleName: 'reader' });
    expect(await roles.password({ ...of, roleName: 'reader' })).toBe(password);
    expect((await roles.get({ ...of, roleName: 'reader' })).name).toBe('reader');
    await databases.create({ ...of, name: 'shop', owner_name: 'reader' });
    const uri = await neon.postgres.connectionString({ ...of, databaseName: 'shop', roleName: 'reader', pooled: true });
    expect(await ask(uri, 'select current_user || current_database()')).toBe('readershop');
    await databases.update({ ...of, databaseName: 'shop', name: 'store' });
    expect((await databases.get({ ...of, databaseName: 'store' })).owner_name).toBe('reader');
    await databases.delete({ ...of, databaseName: 'store' });
    expect((await databases.list(of)).map(({ name }) => name)).toEqual(['neondb']);
    await roles.delete({ ...of, roleName: 'reader' });
    expect(await roles.list(of)).toHaveLength(1);
  });

  it('branches', async () => {
    const { branch, connectionString } = await neon.branches.createAndConnect({ projectId, name: 'dev' });
    await ask(connectionString, 'create table only_here (a int)');
    const compared = await neon.branches.compareSchema({
      projectId,
      branchId: branch.id,
      baseBranchId: branchId,
      databaseName: 'neondb',
    });
    expect(compared.diff).toContain('CREATE TABLE public.only_here');
    await neon.branches.resetFromParent({ projectId, branchId: branch.id });
    await program.settle(projectId);
    expect(await ask(connectionString, `select to_regclass('only_here') is null`)).toBe('true');
    await neon.branches.update({ projectId, branchId: branch.id, name: 'next' });
    await neon.branches.setDefault({ projectId, branchId: branch.id });
    expect((await neon.branches.getDefault({ projectId })).name).toBe('next');
    await neon.branches.setDefault({ projectId, branchId });
    await neon.branches.delete({ projectId, branchId: branch.id });
    const bare = await neon.branches.create({ projectId, name: 'bare', noCompute: true });
    expect((await neon.branches.get({ projectId, branchId: bare.id })).name).toBe('bare');
    expect((await neon.branches.list({ projectId }).all()).map(({ name }) => name).sort()).toEqual(['bare', 'main']);
  });

  it('computes and operations', async () => {
    const { endpoints } = neon.postgres;
    const [found] = await endpoints.listByBranch({ projectId, branchId });
    const of = { projectId, endpointId: found?.id ?? '' };
    await endpoints.suspend(of);
    expect((await endpoints.get(of)).current_state).toBe('idle');
    await endpoints.start(of);
    await endpoints.restart(of);
    await endpoints.update({ ...of, suspend_timeout_seconds: 600 });
    expect((await endpoints.get(of)).suspend_timeout_seconds).toBe(600);
    const replica = await endpoints.create({ projectId, branch_id: branchId, type: 'read_only' });
    expect(await endpoints.list({ projectId })).toHaveLength(2);
    await endpoints.delete({ projectId, endpointId: replica.id });
    const operations = await neon.operations.list({ projectId }).all();
    await neon.operations.waitFor({ operations });
    const operationId = operations[0]?.id ?? '';
    expect((await neon.operations.get({ projectId, operationId })).status).toBe('finished');
  });

  it('what a branch does not have', async () => {
    const of = { projectId, branchId };
    expect(await neon.storage.buckets.list(of)).toEqual([]);
    expect(await neon.functions.list(of).all()).toEqual([]);
    expect(await neon.triggers.list(of)).toEqual([]);
    const refused = neon.storage.buckets.create({ ...of, name: 'photos' });
    await expect(refused).rejects.toMatchObject({
      status: 501,
      message: expect.stringContaining('not offered by Catnap'),
    });
    await expect(neon.snapshots.list({ projectId })).rejects.toMatchObject({ status: 501 });
  });

  it('and deletes the project', async () => {
    await neon.projects.delete({ projectId });
    await expect(neon.projects.get({ projectId })).rejects.toMatchObject({ status: 404 });
  });
});
