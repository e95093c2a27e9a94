/** The published SDK, unmodified: every method that has a meaning here, and what it makes of the others. */
import { createNeonClient, type NeonClient } from '@neon/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { foreignClient, methodsOf, recordCalls } from '../helpers/foreign-clients.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let neon: NeonClient<true>;
const called = new Set<string>();
const listed = foreignClient('@neon/sdk', '6.1.2');
let projectId: string;
let branchId: string;
let orgId: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const client = createNeonClient({
    apiKey: await program.apiKey(),
    baseUrl: `http://127.0.0.1:${program.httpPort}/api/v2`,
    throwOnError: true,
    waitForReadiness: true,
    retries: 0,
  });
  neon = recordCalls(client, called);
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
    orgId = project.org_id ?? '';
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

  it('sign-in for applications', async () => {
    const of = { projectId, branchId };
    const { auth_provider_project_id: id } = await neon.auth.create({ ...of, auth_provider: 'stack' });
    expect((await neon.auth.get(of)).auth_provider_project_id).toBe(id);
    const { trustedDomains, oauthProviders, users } = neon.auth;
    const domain = 'https://shop.example.com';
    await trustedDomains.add({ ...of, auth_provider: 'stack', domain });
    expect((await trustedDomains.list(of)).map((trusted) => trusted.domain)).toEqual([domain]);
    await trustedDomains.delete({ ...of, auth_provider: 'stack', domains: [{ domain }] });
    expect(await trustedDomains.list(of)).toEqual([]);
    await oauthProviders.add({ ...of, id: 'google', client_id: 'first', client_secret: 'secret' });
    await oauthProviders.update({ ...of, providerId: 'google', client_id: 'second', client_secret: 'secret' });
    expect((await oauthProviders.list(of)).map(({ client_id }) => client_id)).toEqual(['second']);
    await oauthProviders.delete({ ...of, providerId: 'google' });
    expect(await oauthProviders.list(of)).toEqual([]);
    const ann = await users.create({ ...of, email: 'ann@example.com', name: 'Ann' });
    await users.delete({ ...of, authUserId: ann.id });
    await expect(users.delete({ ...of, authUserId: ann.id })).rejects.toMatchObject({ status: 404 });
    await neon.auth.disable({ ...of, deleteData: true });
    await expect(neon.auth.get(of)).rejects.toMatchObject({ status: 404 });
  });

  it('consumption', async () => {
    const day = 24 * 3_600_000;
    const today = Math.floor(Date.now() / day) * day;
    const [from, to] = [today - day, today + day].map((time) => new Date(time).toISOString());
    const asked = { from: from ?? '', to: to ?? '', granularity: 'daily' as const, orgId };
    const metrics = ['compute_unit_seconds' as const];
    const found = [
      await neon.consumption.perProject(asked).all(),
      await neon.consumption.perProjectV2({ ...asked, metrics }).all(),
    ];
    expect(found.map((projects) => projects.map((project) => project.project_id))).toEqual([[projectId], [projectId]]);
    const branches = await neon.consumption.perBranchV2({ ...asked, metrics, project_ids: [projectId] }).all();
    expect(branches.map((branch) => branch.branch_id)).toContain(branchId);
  });

  it('snapshots', async () => {
    const uri = await neon.postgres.connectionString({ projectId, branchId });
    await ask(uri, "create table kept as select 'first' as state");
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id: snapshotId } = await neon.snapshots.create({ projectId, branchId, name: 'one', expiresAt });
    await neon.snapshots.update({ projectId, snapshotId, name: 'two', expiresAt: null });
    const [snapshot] = await neon.snapshots.list({ projectId });
    expect(snapshot).toMatchObject({ id: snapshotId, name: 'two', source_branch_id: branchId, manual: true });
    const state = () => ask(uri, 'select state from kept');
    await ask(uri, "update kept set state = 'second'");
    // Looked at and refused, then taken over in two steps, then at once.
    await neon.snapshots.restore({ projectId, snapshotId, preview: () => false });
    expect(await state()).toBe('second');
    const restored = await neon.snapshots.restore({ projectId, snapshotId, targetBranchId: branchId });
    await neon.branches.finalizeRestore({ projectId, branchId: restored.id });
    expect(await state()).toBe('first');
    await ask(uri, "update kept set state = 'third'");
    branchId = (await neon.snapshots.restore({ projectId, snapshotId, targetBranchId: restored.id, finalize: true }))
      .id;
    expect(await state()).toBe('first');
    expect((await neon.branches.getDefault({ projectId })).id).toBe(branchId);
    const schedule = [{ frequency: 'weekly' as const, day: 1, hour: 2 }];
    await neon.snapshots.setSchedule({ projectId, branchId, schedule });
    expect((await neon.snapshots.getSchedule({ projectId, branchId })).schedule).toEqual(schedule);
    await neon.snapshots.delete({ projectId, snapshotId });
    expect(await neon.snapshots.list({ projectId })).toEqual([]);
  });

  it('what a branch does not have', async () => {
    const of = { projectId, branchId };
    expect(await neon.storage.buckets.list(of)).toEqual([]);
    expect(await neon.functions.list(of).all()).toEqual([]);
    expect(await neon.functions.customDomains.list(of).all()).toEqual([]);
    expect(await neon.triggers.list(of)).toEqual([]);
    const none = { status: 404, message: expect.stringContaining('not offered by Catnap') };
    await expect(neon.storage.get(of)).rejects.toMatchObject(none);
    await expect(neon.aiGateway.get(of)).rejects.toMatchObject(none);
    await expect(neon.postgres.dataApi.get({ ...of, databaseName: 'neondb' })).rejects.toMatchObject(none);
  });

  it.each(listed.refused)('%s is refused with the reason', async (name) => {
    await expect(callRefused(name)).rejects.toMatchObject({
      status: 501,
      message: expect.stringContaining('not offered by Catnap'),
    });
  });

  it('deletes projects, and brings one back', async () => {
    const { id: spare } = await neon.projects.create({ name: 'spare' });
    await neon.projects.delete({ projectId: spare });
    expect((await neon.projects.recover({ projectId: spare })).name).toBe('spare');
    await neon.projects.delete({ projectId: spare });
    await neon.projects.delete({ projectId });
    await expect(neon.projects.get({ projectId })).rejects.toMatchObject({ status: 404 });
  });

  it('all its methods ran, and are listed', () => {
    expect([...called].sort()).toEqual([...listed.served, ...listed.refused].sort());
    const { client: _transport, ...parts } = neon;
    expect(methodsOf(parts).sort()).toEqual([...called].sort());
  });
});

/** With a value for every parameter that any of them wants; what else there is ends in a body that nobody reads. */
function callRefused(name: string): Promise<unknown> {
  const ids = { projectId, branchId, memberId: 'm', permissionId: 'p', tokenId: 't', triggerId: 't' };
  const names = { name: 'any', bucketName: 'b', objectKey: 'o', prefix: 'p', slug: 's', fieldName: 'f', domain: 'd' };
  const others = {
    key: 'o',
    databaseName: 'neondb',
    authUserId: 'u',
    roles: [],
    schedule: [],
    projectIds: [projectId],
  };
  const organizations = {
    sourceOrgId: orgId,
    fromOrgId: orgId,
    toOrgId: 'org-two',
    destinationOrgId: 'org-two',
  };
  const function_ = { zip: new Blob(['code']), runtime: 'nodejs24', operation: 'download' };
  const person = { email: 'ann@example.com', role: 'admin' };
  const path = name.split('.');
  const owner = path.slice(0, -1).reduce<object>((part, key) => Reflect.get(part, key), neon);
  const result = Reflect.get(
    owner,
    path.at(-1) ?? '',
  )({ ...ids, ...names, ...others, ...organizations, ...function_, ...person });
  return 'all' in result ? result.all() : result;
}
