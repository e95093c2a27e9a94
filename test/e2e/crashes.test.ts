/** Kill anything at any time: afterwards everything is finished or visibly failed, and tenants never noticed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, randomMoment } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

/** Each is followed by a start of everything. */
const kills = Number(process.env.CATNAP_TEST_KILLS ?? 3);
let program: Program;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
});
afterAll(() => program.destroy());

interface Made {
  readonly projectId: string;
  readonly endpointId: string;
  readonly uri: string;
}

async function makeProject(name: string): Promise<Made> {
  const { body } = await program.api('POST', '/projects', { project: { name } });
  return { projectId: body.project.id, endpointId: body.endpoints[0].id, uri: body.connection_uris[0].connection_uri };
}

describe('kill -9', () => {
  it(`of Catnap at ${kills} random moments of project creation loses nothing`, async () => {
    const tenant = await makeProject('bystander');
    const started = await ask(tenant.uri, 'select pg_postmaster_start_time()');
    const made: Made[] = [];
    for (let round = 0; round < kills; round++) {
      const request = makeProject(`round ${round}`).then(
        (project) => made.push(project),
        () => {},
      );
      await randomMoment(400);
      await program.killHard();
      await request;
      await program.start();
    }
    const { body } = await program.api('GET', '/projects?limit=100');
    const names = body.projects.map((project: { name: string }) => project.name);
    expect(new Set(names).size, 'no project was made twice').toBe(names.length);
    for (const project of body.projects) {
      await program.settle(project.id);
      const { body: found } = await program.api('GET', `/projects/${project.id}/endpoints`);
      expect(found.endpoints.map((endpoint: { current_state: string }) => endpoint.current_state)).toEqual(['active']);
    }
    for (const { uri } of made) expect(await ask(uri, 'select 1')).toBe('1');
    const computes = (await program.serverPids('/projects/')).length;
    expect(computes, 'one server for each project, no orphan').toBe(body.projects.length);
    expect(await ask(tenant.uri, 'select pg_postmaster_start_time()'), 'the tenant never noticed').toBe(started);
    for (const { projectId } of made) await program.removeProject(projectId);
  });

  it('of a compute is noticed without a client, repaired, and in the history', async () => {
    const { projectId, endpointId, uri } = await makeProject('victim');
    await ask(uri, 'create table kept as select 1 as one');
    const [pid] = await program.serverPids(endpointId);
    if (pid === undefined) throw new Error('no server runs');
    process.kill(pid, 'SIGKILL');
    const noticed = await eventually(async () => {
      const { body } = await program.api('GET', `/projects/${projectId}/operations`);
      const check = body.operations.find((operation: { action: string }) => operation.action === 'check_availability');
      if (check === undefined) throw new Error('not noticed yet');
      return check;
    });
    expect(noticed.error ?? 'the server process had ended').toMatch(/ended unexpectedly|had ended/);
    expect(await ask(uri, 'select one from kept')).toBe('1');
    await program.settle(projectId);
    const { body } = await program.api('GET', `/projects/${projectId}/operations`);
    const starts = body.operations.filter((operation: { action: string }) => operation.action === 'start_compute');
    expect(starts).toHaveLength(2);
  });
});
