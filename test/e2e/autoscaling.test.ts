/** Sizes on the whole program: they follow the load under the feet of clients, and an edit makes pooled ones wait. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

/** `CATNAP_TEST_EDITS=20` for the long run. */
const edits = Number(process.env.CATNAP_TEST_EDITS ?? 2);
const burn = 'SELECT count(*) FROM generate_series(1, 10000000000)';

let program: Program;
let path: string;
let projectId: string;
let uri: string;
let isEnforced: boolean;
beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', {
    project: { default_endpoint_settings: { autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 1 } },
  });
  projectId = body.project.id;
  path = `/projects/${projectId}/endpoints/${body.endpoints[0].id}`;
  uri = body.connection_uris[0].connection_uri;
  await program.settle(projectId);
  isEnforced = (await look()).limits_enforced;
});
afterAll(() => program.destroy());

const look = async () => (await program.api('GET', path)).body.endpoint;

/** Clients that go on and on; tells what became of their transactions. */
async function underLoad(connectionString: string, clients: number, work: () => Promise<void>) {
  const outcome = { done: 0, failures: [] as string[] };
  let isOver = false;
  const run = async () => {
    const client = new pg.Client({ connectionString });
    client.on('error', (error) => outcome.failures.push(error.message));
    await client.connect();
    while (!isOver) {
      await client.query('BEGIN; UPDATE counters SET n = n + 1; COMMIT').then(
        () => outcome.done++,
        (error: Error) => outcome.failures.push(error.message),
      );
    }
    await client.end();
  };
  const running = Array.from({ length: clients }, run);
  await work().finally(() => {
    isOver = true;
  });
  await Promise.all(running);
  return outcome;
}

describe('sizes', () => {
  it('begin with the smallest, and say whether they are kept', async () => {
    expect((await look()).current_cu).toBe(isEnforced ? 0.25 : undefined);
    if (process.getuid?.() !== 0) return;
    expect(program.output).not.toContain('could not be');
  });

  it('follow the load, and no client of the direct host notices', async ({ skip }) => {
    skip(!isEnforced, 'control groups are not permitted here');
    await ask(uri, 'CREATE TABLE counters AS SELECT 0 AS n');
    const started = await ask(uri, 'SELECT pg_postmaster_start_time()');
    const heavy = new pg.Client({ connectionString: uri });
    heavy.on('error', () => undefined);
    await heavy.connect();
    const { done, failures } = await underLoad(uri, 2, async () => {
      const burning = heavy.query(burn).catch(() => undefined);
      await eventually(async () => expect((await look()).current_cu).toBe(1), { deadlineMs: 40_000, everyMs: 100 });
      expect(await ask(uri, 'SHOW effective_cache_size')).toBe('3GB');
      await ask(uri, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = '${burn}'`);
      await burning;
    });
    await heavy.end();
    expect(failures).toEqual([]);
    expect(Number(await ask(uri, 'SELECT n FROM counters'))).toBe(done);
    expect(await ask(uri, 'SELECT pg_postmaster_start_time()')).toBe(started);
  });

  it(`${edits} edits of the size restart once each, and clients of the pooled host wait`, async () => {
    await ask(uri, 'CREATE TABLE IF NOT EXISTS counters AS SELECT 0 AS n');
    const pooled = (await program.api('GET', `/projects/${projectId}/connection_uri?pooled=true&${await roleQuery()}`))
      .body.uri;
    const before = Number(await ask(uri, 'SELECT n FROM counters'));
    const generation = async () => Number(await ask(uri, `SELECT current_setting('catnap.generation')`));
    const first = await generation();
    const { done, failures } = await underLoad(pooled, 2, async () => {
      for (let edit = 0; edit < edits; edit++) {
        const cu = edit % 2 === 0 ? 2 : 1;
        const sizes = { autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu };
        expect((await program.api('PATCH', path, { endpoint: sizes })).status).toBe(200);
        await program.settle(projectId);
        expect((await look()).current_cu).toBe(isEnforced ? cu : undefined);
      }
    });
    expect(failures).toEqual([]);
    expect(done).toBeGreaterThan(0);
    expect(Number(await ask(uri, 'SELECT n FROM counters'))).toBe(before + done);
    expect(await generation()).toBe(first + edits);
  });
});

async function roleQuery(): Promise<string> {
  const url = new URL(uri);
  return `database_name=${url.pathname.slice(1)}&role_name=${url.username}`;
}
