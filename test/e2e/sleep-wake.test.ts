/**
 * Clients that come at every moment of a compute's life. CATNAP_TEST_CYCLES and CATNAP_TEST_CLIENTS make it a soak (500
 * and 1000, say), CATNAP_TEST_FLOOD the queue longer; the figures are printed.
 */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, letRun, randomMoment, stays, usualDeadlineMs, usualTestMs } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const cycles = Number(process.env.CATNAP_TEST_CYCLES ?? 4);
const crowd = Number(process.env.CATNAP_TEST_CLIENTS ?? 100);
const flood = Number(process.env.CATNAP_TEST_FLOOD ?? 12);
const patience = usualTestMs + cycles * 3_000 + crowd * 100;

let program: Program;
beforeAll(async () => {
  program = await Program.create({ CATNAP_SUSPEND_MIN_SECONDS: '1' });
  await program.start();
});
afterAll(() => program.destroy());

async function makeEndpoint(settings: object = {}) {
  const { body } = await program.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  const projectId: string = body.project.id;
  const path = `/projects/${projectId}/endpoints/${body.endpoints[0].id}`;
  const uri: string = body.connection_uris[0].connection_uri;
  const state = async () => (await program.api('GET', path)).body.endpoint.current_state;
  const until = (wanted: string) => eventually(async () => expect(await state()).toBe(wanted), { everyMs: 10 });
  await program.settle(projectId);
  return { projectId, id: body.endpoints[0].id as string, path, uri, until };
}

async function countActions(projectId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let cursor = ''; ; ) {
    const { body } = await program.api('GET', `/projects/${projectId}/operations?limit=1000${cursor}`);
    for (const { action } of body.operations) counts[action] = (counts[action] ?? 0) + 1;
    if (body.operations.length < 1000) return counts;
    cursor = `&cursor=${encodeURIComponent(body.pagination.cursor)}`;
  }
}

const report = (facts: object) => process.stdout.write(`${JSON.stringify(facts)}\n`);

describe('a compute that sleeps and wakes', () => {
  it(
    'answers whoever comes at whatever moment of its falling asleep, with one start for each sleep',
    async () => {
      const endpoint = await makeEndpoint();
      await ask(endpoint.uri, 'create table visits (n serial primary key)');
      const before = await countActions(endpoint.projectId);
      const times: number[] = [];
      for (let cycle = 1; cycle <= cycles; cycle++) {
        expect((await program.api('POST', `${endpoint.path}/suspend`)).body.operations).toHaveLength(1);
        await randomMoment(120);
        const askedAt = performance.now();
        expect(
          await ask(endpoint.uri, 'insert into visits default values returning (select count(*) from visits)'),
        ).toBe(String(cycle - 1));
        times.push(performance.now() - askedAt);
        await program.settle(endpoint.projectId);
      }
      const after = await countActions(endpoint.projectId);
      const made = (action: string) => (after[action] ?? 0) - (before[action] ?? 0);
      expect([made('start_compute'), made('suspend_compute')]).toEqual([cycles, cycles]);
      times.sort((a, b) => a - b);
      const medianMs = Math.round(times[times.length >> 1] ?? 0);
      report({ cycles, failed: 0, starts: made('start_compute'), medianMs, maxMs: Math.round(times.at(-1) ?? 0) });
    },
    patience,
  );

  it(
    'cuts nobody who comes in the moment in which it would fall asleep by itself',
    async () => {
      // Long enough for a busy machine to come to the second query before the compute may sleep again.
      const endpoint = await makeEndpoint({ suspend_timeout_seconds: 3 });
      for (let cycle = 0; cycle < Math.max(3, cycles / 10); cycle++) {
        await ask(endpoint.uri, 'select 1');
        await randomMoment(1_100, 2_900);
        const client = new pg.Client({ connectionString: endpoint.uri });
        let cut: Error | null = null;
        client.on('error', (error) => {
          cut = error;
        });
        await client.connect();
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
        await stays(() => expect(cut).toBeNull(), 300);
        expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
        await client.end();
      }
    },
    patience,
  );

  it(
    'is started once for a crowd that comes at once, and nobody of it is sent away',
    async () => {
      // 4 CU take 1802 connections, 1 CU 450.
      const cu = crowd > 400 ? 4 : 1;
      const size = { autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu };
      const endpoint = await makeEndpoint(size);
      await program.api('POST', `${endpoint.path}/suspend`);
      await endpoint.until('idle');
      const before = await countActions(endpoint.projectId);
      const askedAt = performance.now();
      const results = await Promise.allSettled(Array.from({ length: crowd }, () => ask(endpoint.uri, 'select 1')));
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []));
      expect(failures).toEqual([]);
      const after = await countActions(endpoint.projectId);
      expect((after.start_compute ?? 0) - (before.start_compute ?? 0)).toBe(1);
      report({ crowd, failed: failures.length, starts: 1, allMs: Math.round(performance.now() - askedAt) });
    },
    patience,
  );
});

describe('races', () => {
  it('of suspend, restart and clients end with right answers or the words of Postgres, and one server', async () => {
    const endpoint = await makeEndpoint();
    await ask(endpoint.uri, 'create table kept as select 42 as answer');
    const outcomes = new Map<string, number>();
    for (let turn = 0; turn < 4; turn++) {
      const act = turn % 2 === 0 ? 'restart' : 'suspend';
      const clients = Array.from({ length: 8 }, async () => {
        await randomMoment(80);
        return ask(endpoint.uri, 'select answer from kept').catch((error) => String(error.code ?? error.message));
      });
      await randomMoment(40);
      await program.api('POST', `${endpoint.path}/${act}`);
      for (const outcome of await Promise.all(clients)) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      expect((await program.serverPids(endpoint.id)).length).toBeLessThan(2);
      await program.settle(endpoint.projectId);
    }
    // A session that the order to stop met in the middle is cut in Postgres's own words, and nothing else happens.
    expect([...outcomes.keys()].filter((outcome) => outcome !== '42' && outcome !== '57P01')).toEqual([]);
    expect(await ask(endpoint.uri, 'select answer from kept')).toBe('42');
  });

  it('of delete and a wake leave no server, whoever was first', async () => {
    for (const headStartMs of [0, 30, 150]) {
      const endpoint = await makeEndpoint();
      await program.api('POST', `${endpoint.path}/suspend`);
      await endpoint.until('idle');
      const client = ask(endpoint.uri, 'select pg_sleep(0.5)').catch((error) => String(error.code ?? error.message));
      await letRun(headStartMs);
      expect((await program.api('DELETE', endpoint.path)).status).toBe(200);
      expect(['', '57P01', '42704', '57P03']).toContain(await client);
      await eventually(async () => expect(await program.serverPids(endpoint.id)).toEqual([]));
      await expect(ask(endpoint.uri, 'select 1')).rejects.toThrow(/password authentication failed/);
    }
  });
});

it(
  'clients are served, and computes woken, while the API does not move and the queue is full of copies',
  async () => {
    const [endpoint, busy] = [await makeEndpoint(), await makeEndpoint()];
    await program.api('POST', `${endpoint.path}/suspend`);
    await endpoint.until('idle');
    const copies = Array.from({ length: flood }, () =>
      program.api('POST', `/projects/${busy.projectId}/branches`, { branch: {} }),
    );
    for (const { status } of await Promise.all(copies)) expect(status).toBe(201);
    const [api] = await program.processPids('api');
    // Signals to 0 would reach the process group of the test itself.
    if (api === undefined) throw new Error('no api runs');
    process.kill(api, 'SIGSTOP');
    try {
      const askedAt = performance.now();
      expect(await ask(endpoint.uri, 'select 1')).toBe('1');
      const ms = Math.round(performance.now() - askedAt);
      report({ flood, ms });
      // Less than the minute that a client waits.
      expect(ms).toBeLessThan(50_000);
      expect(await program.serverPids(endpoint.id)).toHaveLength(1);
    } finally {
      process.kill(api, 'SIGCONT');
    }
    await endpoint.until('active');
    await program.settle(busy.projectId, usualDeadlineMs + flood * 1_000);
  },
  patience + flood * 1_000,
);
