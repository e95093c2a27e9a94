import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { addConsumption } from '../../db/consumption.ts';
import { asBranchId, asProjectId } from '../../lib/ids.ts';

let api: TestApi;
let projectId: string;
let orgId: string;
let branchId: string;
const now = new Date();
const dayAgo = new Date(now.getTime() - 86_400_000);
beforeAll(async () => {
  api = await makeApi();
  const { project, branch } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  [projectId, branchId, orgId] = [project.id, branch.id, project.org_id];
  const part = { projectId: asProjectId(projectId), branchId: asBranchId(branchId) };
  for (const at of [dayAgo, now]) {
    await api.core.database.transaction((tx) =>
      addConsumption(
        tx,
        [{ ...part, active: 60, compute: 15, cpu: 4, written: 1024, transfer: 77, storage: 744_000 }],
        at,
      ),
    );
  }
});
afterAll(() => api.close());

const from = () => new Date(dayAgo.getTime() - 3_600_000).toISOString();
const to = () => new Date(now.getTime() + 86_400_000).toISOString();
const get = (path: string, query: Record<string, string>) =>
  api.call('GET', `/api/v2/consumption_history/${path}?${new URLSearchParams({ from: from(), to: to(), ...query })}`);

it('projects by hour and by day', async () => {
  const hours = (await get('projects', { granularity: 'hourly' })).json();
  expect(hours.projects).toHaveLength(1);
  const frames = hours.projects[0].periods.flatMap((period: { consumption: object[] }) => period.consumption);
  expect(frames).toHaveLength(2);
  expect(frames[1]).toMatchObject({
    active_time_seconds: 60,
    compute_time_seconds: 4,
    written_data_bytes: 1024,
    data_transfer_bytes: 77,
    data_storage_bytes_hour: 744_000,
  });
  expect(hours.pagination).toEqual({ cursor: projectId });
  const months = (await get('projects', { granularity: 'monthly', project_ids: `${projectId},nobody` })).json();
  const sum = months.projects[0].periods
    .flatMap((period: { consumption: { active_time_seconds: number }[] }) => period.consumption)
    .reduce((total: number, frame: { active_time_seconds: number }) => total + frame.active_time_seconds, 0);
  expect(sum).toBe(120);
  expect((await get('projects', { granularity: 'daily', cursor: projectId })).json()).toEqual({ projects: [] });
});

it('projects and branches by metric; what is not measured is left out', async () => {
  const metrics = 'compute_unit_seconds,public_network_transfer_bytes,private_network_transfer_bytes';
  const query = { granularity: 'daily', org_id: orgId, metrics };
  const ofProject = (await get('v2/projects', query)).json().projects[0];
  const frames = ofProject.periods.flatMap((period: { consumption: { metrics: object[] }[] }) => period.consumption);
  expect(frames.at(-1)?.metrics).toEqual([
    { metric_name: 'compute_unit_seconds', value: 15 },
    { metric_name: 'public_network_transfer_bytes', value: 77 },
  ]);
  const ofBranch = (await get('v2/branches', { ...query, project_ids: projectId })).json();
  expect(ofBranch.branches).toMatchObject([{ project_id: projectId, branch_id: branchId }]);
  const elsewhere = await get('v2/branches', { ...query, project_ids: projectId, branch_ids: 'br-other' });
  expect(elsewhere.json()).toEqual({ branches: [] });
});

it('refuses what it cannot give', async () => {
  const early = await get('projects', { granularity: 'hourly', from: '2024-05-01T00:00:00Z' });
  expect([early.statusCode, early.json().message]).toEqual([406, expect.stringContaining('168 hours')]);
  const unknown = await get('v2/projects', { granularity: 'daily', org_id: orgId, metrics: 'heat' });
  expect([unknown.statusCode, unknown.json().message]).toEqual([400, expect.stringContaining('metrics must be of')]);
  expect((await get('projects', { granularity: 'yearly' })).statusCode).toBe(400);
  const stranger = await api.call(
    'GET',
    `/api/v2/consumption_history/projects?granularity=daily&from=${from()}&to=${to()}&org_id=${orgId}`,
    { token: api.strangerToken },
  );
  expect(stranger.statusCode).toBe(404);
});
