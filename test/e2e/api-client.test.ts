/** The published API client, unmodified: creates, lists, reads and deletes one of everything. */
import { createApiClient, EndpointType } from '@neondatabase/api-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let client: ReturnType<typeof createApiClient>;
let projectId: string;
let branchId: string;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  client = createApiClient({ apiKey: await program.apiKey(), baseURL: `http://127.0.0.1:${program.httpPort}/api/v2` });
});
afterAll(() => program.destroy());

describe('@neondatabase/api-client', () => {
  it('knows who it is', async () => {
    const { data: me } = await client.getCurrentUserInfo();
    expect(me.plan).toBe('scale');
    const { data } = await client.getCurrentUserOrganizations();
    expect(data.organizations).toHaveLength(1);
    const { data: regions } = await client.getActiveRegions({});
    expect(regions.regions.map((region) => region.region_id)).toEqual(['local']);
  });

  it('projects', async () => {
    const { data: made, status } = await client.createProject({ project: { name: 'by client' } });
    expect(status).toBe(201);
    projectId = made.project.id;
    branchId = made.branch.id;
    const { data: listed } = await client.listProjects({ limit: 10 });
    expect(listed.projects.map((project) => project.id)).toEqual([projectId]);
    const { data: renamed } = await client.updateProject(projectId, { project: { name: 'renamed' } });
    expect(renamed.project.name).toBe('renamed');
    expect((await client.getProject(projectId)).data.project.name).toBe('renamed');
    expect(await ask(made.connection_uris[0]?.connection_uri ?? '', 'select 1')).toBe('1');
  });

  it('roles', async () => {
    const { data: made } = await client.createProjectBranchRole(projectId, branchId, { role: { name: 'reader' } });
    await program.settle(projectId);
    const { data: uri } = await client.getConnectionUri({ projectId, database_name: 'neondb', role_name: 'reader' });
    expect(uri.uri).toContain(made.role.password);
    expect(await ask(uri.uri, 'select current_user')).toBe('reader');
    const { data: reset } = await client.resetProjectBranchRolePassword(projectId, branchId, 'reader');
    await program.settle(projectId);
    const { data: revealed } = await client.getProjectBranchRolePassword(projectId, branchId, 'reader');
    expect(revealed.password).toBe(reset.role.password);
    await expect(ask(uri.uri, 'select 1')).rejects.toThrow(/password authentication failed/);
    const { data: listed } = await client.listProjectBranchRoles(projectId, branchId);
    expect(listed.roles.map((role) => role.name)).toEqual(['neondb_owner', 'reader']);
    expect((await client.getProjectBranchRole(projectId, branchId, 'reader')).data.role.name).toBe('reader');
  });

  it('databases', async () => {
    const database = { name: 'shop', owner_name: 'neondb_owner' };
    await client.createProjectBranchDatabase(projectId, branchId, { database });
    await program.settle(projectId);
    const { data: shop } = await client.getConnectionUri({
      projectId,
      database_name: 'shop',
      role_name: 'neondb_owner',
    });
    expect(await ask(shop.uri, 'select current_database()')).toBe('shop');
    await client.updateProjectBranchDatabase(projectId, branchId, 'shop', {
      database: { name: 'store', owner_name: 'reader' },
    });
    await program.settle(projectId);
    const { data: store } = await client.getProjectBranchDatabase(projectId, branchId, 'store');
    expect(store.database.owner_name).toBe('reader');
    const owner = `select pg_get_userbyid(datdba) from pg_database where datname = 'store'`;
    expect(await ask(shop.uri.replace('/shop', '/neondb'), owner)).toBe('reader');
    await client.deleteProjectBranchDatabase(projectId, branchId, 'store');
    await client.deleteProjectBranchRole(projectId, branchId, 'reader');
    await program.settle(projectId);
    const count = `select count(*) from pg_database where datname in ('shop', 'store')`;
    expect(await ask(shop.uri.replace('/shop', '/neondb'), count)).toBe('0');
    expect(
      await ask(shop.uri.replace('/shop', '/neondb'), `select count(*) from pg_roles where rolname = 'reader'`),
    ).toBe('0');
    const { data: listed } = await client.listProjectBranchDatabases(projectId, branchId);
    expect(listed.databases.map((found) => found.name)).toEqual(['neondb']);
  });

  it('branches, with the data of their parent', async () => {
    const { data: parent } = await client.getConnectionUri({
      projectId,
      database_name: 'neondb',
      role_name: 'neondb_owner',
    });
    await ask(parent.uri, 'create table fruit as select 1 as apples');
    const { data: made } = await client.createProjectBranch(projectId, {
      branch: { name: 'dev' },
      endpoints: [{ type: EndpointType.ReadWrite }],
    });
    const child = made.connection_uris?.[0]?.connection_uri ?? '';
    expect(await ask(child, 'select apples from fruit')).toBe('1');
    await ask(child, 'update fruit set apples = 2');
    expect(await ask(parent.uri, 'select apples from fruit')).toBe('1');
    await program.settle(projectId);
    const { data: listed } = await client.listProjectBranches({ projectId });
    expect(listed.branches.map((branch) => branch.name).sort()).toEqual(['dev', 'main']);
    const { data: found } = await client.getProjectBranch(projectId, made.branch.id);
    expect(found.branch.current_state).toBe('ready');
    await client.updateProjectBranch(projectId, made.branch.id, { branch: { name: 'development' } });
    await client.setDefaultProjectBranch(projectId, made.branch.id);
    await client.setDefaultProjectBranch(projectId, branchId);
    const { status } = await client.deleteProjectBranch({ projectId, branchId: made.branch.id });
    expect(status).toBe(200);
    await program.settle(projectId);
    await expect(client.getProjectBranch(projectId, made.branch.id)).rejects.toMatchObject({
      response: { status: 404 },
    });
  });

  it('endpoints and operations', async () => {
    const { data: listed } = await client.listProjectEndpoints(projectId);
    const [endpoint] = listed.endpoints;
    if (endpoint === undefined) throw new Error('the project has no endpoint');
    await client.suspendProjectEndpoint(projectId, endpoint.id);
    await program.settle(projectId);
    expect((await client.getProjectEndpoint(projectId, endpoint.id)).data.endpoint.current_state).toBe('idle');
    await client.startProjectEndpoint(projectId, endpoint.id);
    await program.settle(projectId);
    expect((await client.getProjectEndpoint(projectId, endpoint.id)).data.endpoint.current_state).toBe('active');
    await client.deleteProjectEndpoint(projectId, endpoint.id);
    await program.settle(projectId);
    const { data: added } = await client.createProjectEndpoint(projectId, {
      endpoint: { branch_id: branchId, type: EndpointType.ReadWrite },
    });
    expect(added.endpoint.id).not.toBe(endpoint.id);
    await program.settle(projectId);
    const { data: operations } = await client.listProjectOperations({ projectId, limit: 5 });
    const [latest] = operations.operations;
    expect(latest?.action).toBe('start_compute');
    expect((await client.getProjectOperation(projectId, latest?.id ?? '')).data.operation.status).toBe('finished');
  });

  it('keys', async () => {
    const { data: made } = await client.createApiKey({ key_name: 'second' });
    const second = createApiClient({ apiKey: made.key, baseURL: `http://127.0.0.1:${program.httpPort}/api/v2` });
    expect((await second.listApiKeys()).data.map((key) => key.name)).toEqual(['first key', 'second']);
    await client.revokeApiKey(made.id);
    await expect(second.listApiKeys()).rejects.toMatchObject({ response: { status: 401 } });
  });

  it('and deletes the project', async () => {
    await client.deleteProject(projectId);
    await expect(client.getProject(projectId)).rejects.toMatchObject({ response: { status: 404 } });
  });
});
