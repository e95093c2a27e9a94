import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeApi, type TestApi } from '../../../test/helpers/contract.ts';
import { insertSamples, type SampleRow } from '../../db/samples.ts';
import { recordSize } from '../../db/sizes.ts';
import { asEndpointId } from '../../lib/ids.ts';

let api: TestApi;
let path: string;
let endpointId: ReturnType<typeof asEndpointId>;
const begin = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 600_000);
beforeAll(async () => {
  api = await makeApi();
  const { project, endpoints } = (await api.call('POST', '/api/v2/projects', { body: { project: {} } })).json();
  endpointId = asEndpointId(endpoints[0].id);
  path = `/api/v2/projects/${project.id}/endpoints/${endpointId}/metrics`;
  const { sql } = api.core.database;
  await insertSamples(
    sql,
    Array.from({ length: 21 }, (_, index) => sampleAt(index * 15)),
  );
  await sql`update endpoints set current_state = 'active', generation = 1, current_cu = 0.25 where id = ${endpointId}`;
  const change = { fromCu: 0.25, toCu: 0.5, reason: 'cpu: 0.25 of 0.25 cores used' };
  await api.core.database.transaction((tx) => recordSize(tx, { id: endpointId, generation: 1 }, change));
});
afterAll(() => api.close());

/** Half a core, 10 transactions a second, nine blocks of ten from the buffers. */
function sampleAt(seconds: number): SampleRow {
  const resolution = seconds % 60 === 0 ? 60 : 15;
  const asked = resolution === 60;
  return {
    endpointId,
    at: new Date(begin.getTime() + seconds * 1_000),
    resolution,
    generation: 1,
    cu: 0.25,
    cpuSeconds: seconds / 2,
    throttledPeriods: 0,
    memoryBytes: 100,
    cacheBytes: 200,
    workingSetBytes: 50,
    connectionsActive: asked ? 3 : null,
    connectionsIdle: asked ? 4 : null,
    connectionsMax: asked ? 112 : null,
    transactions: asked ? seconds * 10 : null,
    blocksHit: asked ? seconds * 9 : null,
    blocksRead: asked ? seconds : null,
    replicationLagBytes: null,
    databaseBytes: 7_000_000,
  };
}

const get = (query: Record<string, string>) => api.call('GET', `${path}?${new URLSearchParams(query)}`);

describe('the metrics of a compute', () => {
  it('are a series of even steps, with rates from sums, and the changes of size', async () => {
    const to = new Date(Date.now() + 60_000).toISOString();
    const reply = await get({ from: begin.toISOString(), to, step: '60' });
    expect(reply.statusCode).toBe(200);
    const { samples, size_changes: changes, step_seconds: step } = reply.json();
    expect(step).toBe(60);
    expect(samples).toHaveLength(6);
    expect(samples[1]).toEqual({
      at: new Date(begin.getTime() + 60_000).toISOString().replace('.000Z', 'Z'),
      cu: 0.25,
      cpu_cores: 0.5,
      memory_bytes: 100,
      cache_bytes: 200,
      working_set_bytes: 50,
      database_size_bytes: 7_000_000,
      connections_active: 3,
      connections_idle: 4,
      connections_max: 112,
      transactions_per_second: 10,
      cache_hit_ratio: 0.9,
    });
    expect(changes).toMatchObject([{ from_cu: 0.25, to_cu: 0.5, reason: 'cpu: 0.25 of 0.25 cores used' }]);
  });

  it('have an hour by default, and a step that fits', async () => {
    expect((await get({})).json()).toMatchObject({ step_seconds: 15 });
    const week = new Date(Date.now() - 7 * 86_400_000).toISOString();
    const reply = await get({ from: week });
    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toMatchObject({ step_seconds: 3_600 });
  });

  it.each([
    [{ from: 'yesterday' }, /from/],
    [{ from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, /from must be before to/],
    [{ from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' }, /7 days/],
    [{ from: '2026-01-01T00:00:00Z', to: '2026-01-07T00:00:00Z', step: '15' }, /step must be at least 260/],
    [{ step: '1' }, /step/],
    [{ since: '1' }, /since/],
  ])('refuse %j by name', async (query, message) => {
    const reply = await get(query as Record<string, string>);
    expect(reply.statusCode).toBe(400);
    expect(reply.json().message).toMatch(message);
  });

  it('are told to Prometheus', async () => {
    const { body } = await api.app.inject('/metrics');
    expect(body).toMatch(new RegExp(`catnap_endpoint_cu\\{endpoint="${endpointId}",project="[^"]+"\\} 0.25`));
    expect(body).toMatch(new RegExp(`catnap_endpoint_connections_active\\{endpoint="${endpointId}",.*\\} 3`));
    expect(body).toMatch(new RegExp(`catnap_endpoint_cache_hit_ratio\\{endpoint="${endpointId}",.*\\} 0.9`));
  });

  it('counters of the month are in project and branch', async () => {
    const { sql } = api.core.database;
    const period = api.core.clock.now().toISOString().slice(0, 7);
    const usage = { period, active: 60.5, compute: 15, cpu: 4.9, written: 1024, storage: 7 };
    await sql`update projects set usage = ${sql.json(usage)}`;
    await sql`update branches set usage = ${sql.json(usage)}`;
    const project = path.slice(0, path.indexOf('/endpoints'));
    const counters = { cpu_used_sec: 4, compute_time_seconds: 15, active_time_seconds: 60, written_data_bytes: 1024 };
    const reply = (await api.call('GET', project)).json();
    expect(reply.project).toMatchObject({ ...counters, data_storage_bytes_hour: 7 });
    expect((await api.call('GET', `${project}/branches`)).json().branches[0]).toMatchObject(counters);
    // Nobody takes them away when the month ends.
    await sql`update projects set usage = ${sql.json({ ...usage, period: '2026-03' })}`;
    await sql`update branches set usage = ${sql.json({ ...usage, period: '2026-03' })}`;
    const none = { cpu_used_sec: 0, compute_time_seconds: 0, active_time_seconds: 0, written_data_bytes: 0 };
    expect((await api.call('GET', project)).json().project).toMatchObject({ ...none, data_storage_bytes_hour: 0 });
    expect((await api.call('GET', `${project}/branches`)).json().branches[0]).toMatchObject(none);
    const [listed] = (await api.call('GET', '/api/v2/projects')).json().projects;
    expect(listed).toMatchObject({ cpu_used_sec: 0, active_time: 0 });
  });
});
