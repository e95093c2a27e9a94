/** Sizes on the whole program: they follow the load under the feet of clients, and an edit makes pooled ones wait. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, letRun, thinkTime, usualTestMs } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

/** `CATNAP_TEST_STEPS=100` and `CATNAP_TEST_EDITS=20` for the long run. */
const steps = Number(process.env.CATNAP_TEST_STEPS ?? 4);
/** Asked for its version: Debian has a wrapper that is there before the program is. */
const hasPgbench = spawnSync('pgbench', ['--version']).status === 0;
const edits = Number(process.env.CATNAP_TEST_EDITS ?? 2);
/** Calm that lasts this long makes a compute smaller; a shrink that is undone within four of it is regretted. */
const scaleDownSeconds = 1;
/** Of one session, quickly: a thousand bytes at a time, and none of them counted. */
const takeMegabytes = (count: number) => `octet_length(repeat(repeat('x', 1000), ${count * 1_000}))`;
const burn = 'SELECT count(*) FROM generate_series(1, 10000000000)';

let program: Program;
let path: string;
let projectId: string;
let uri: string;
let pooled: string;
let isEnforced: boolean;
beforeAll(async () => {
  program = await Program.create({ CATNAP_SCALE_DOWN_SECONDS: String(scaleDownSeconds) });
  await program.start();
  const made = await makeProject(0.25, 1);
  ({ projectId, uri } = made);
  path = `/projects/${projectId}/endpoints/${made.endpointId}`;
  isEnforced = (await look()).limits_enforced;
  pooled = (await program.api('GET', `/projects/${projectId}/connection_uri?pooled=true&${roleQuery()}`)).body.uri;
  await preparePgbench();
});
afterAll(() => program.destroy());

async function makeProject(min: number, max: number) {
  const settings = { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max };
  const { body } = await program.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  await program.settle(body.project.id);
  const uri: string = body.connection_uris[0].connection_uri;
  return { projectId: body.project.id, endpointId: body.endpoints[0].id, uri };
}

const look = async () => (await program.api('GET', path)).body.endpoint;

/** Clients of each host that go on and on at an easy pace; tells what became of their transactions. */
async function underLoad(hosts: readonly string[], work: () => Promise<void>) {
  const outcome = { done: 0, failures: [] as string[] };
  let isOver = false;
  const run = async (connectionString: string) => {
    const client = new pg.Client({ connectionString });
    client.on('error', (error) => outcome.failures.push(error.message));
    await client.connect();
    while (!isOver) {
      await client.query('BEGIN; UPDATE counters SET n = n + 1; COMMIT').then(
        () => outcome.done++,
        (error: Error) => outcome.failures.push(error.message),
      );
      await thinkTime(20);
    }
    await client.end();
  };
  const bench = async (host: string) => {
    while (!isOver) await pgbench(host).catch((error: Error) => outcome.failures.push(error.message));
  };
  const running = hosts.flatMap((host) => [run(host), run(host), ...(hasPgbench ? [bench(host)] : [])]);
  await work().finally(() => {
    isOver = true;
  });
  await Promise.all(running);
  return outcome;
}

/** A few seconds of it, slow enough to be no load; fails when one transaction does. */
async function pgbench(host: string): Promise<void> {
  const words = ['-n', '-N', '-c', '2', '-R', '20', '-T', '5', host];
  const child = spawn('pgbench', words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const [code] = await once(child, 'close');
  if (code !== 0 || !output.includes('number of failed transactions: 0 ')) throw new Error(output);
}

async function preparePgbench(): Promise<void> {
  await ask(uri, 'CREATE TABLE counters AS SELECT 0 AS n');
  if (hasPgbench) await once(spawn('pgbench', ['-i', '-q', '-s', '1', uri], { stdio: 'ignore' }), 'close');
}

/** The largest size by a query that takes all it gets, and the smallest by none; as a user sees it. */
async function upAndDown(): Promise<void> {
  const heavy = new pg.Client({ connectionString: uri });
  heavy.on('error', () => undefined);
  await heavy.connect();
  const burning = heavy.query(burn).catch(() => undefined);
  await sizeIs(1);
  expect(await ask(uri, 'SHOW effective_cache_size')).toBe('3GB');
  await ask(uri, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = '${burn}'`);
  await burning;
  await heavy.end();
  await sizeIs(0.25);
}

const sizeIs = (cu: number) => eventually(async () => expect((await look()).current_cu).toBe(cu), { everyMs: 100 });

async function availabilityChecks(ofProject: string) {
  const { operations } = (await program.api('GET', `/projects/${ofProject}/operations`)).body;
  return operations.filter(({ action }: { action: string }) => action === 'check_availability');
}

const sizeChanges = async () => (await program.api('GET', `${path}/metrics`)).body.size_changes.length;

describe('sizes', () => {
  it('begin with the smallest, and say whether they are kept', async () => {
    expect((await look()).current_cu).toBe(isEnforced ? 0.25 : undefined);
    if (process.getuid?.() !== 0) return;
    expect(program.output).not.toContain('could not be');
  });

  it(
    `follow the load up and down, ${steps} steps, and no client of either host notices`,
    async ({ skip }) => {
      skip(!isEnforced, 'control groups are not permitted here');
      const started = await ask(uri, 'SELECT pg_postmaster_start_time()');
      const { done, failures } = await underLoad([uri, pooled], async () => {
        for (;;) {
          await upAndDown();
          if ((await sizeChanges()) >= steps) return;
          await letRun(4_000 * scaleDownSeconds);
        }
      });
      expect(failures).toEqual([]);
      expect(Number(await ask(uri, 'SELECT n FROM counters'))).toBe(done);
      expect(await ask(uri, 'SELECT pg_postmaster_start_time()')).toBe(started);
    },
    usualTestMs + steps * 5_000,
  );

  it('grow first when memory is asked for at once, and nobody loses a session', async ({ skip }) => {
    skip(!isEnforced, 'control groups are not permitted here');
    const started = await ask(uri, 'SELECT pg_postmaster_start_time()');
    // On a slow machine the clients of the test before may have made it larger once more.
    await sizeIs(0.25);
    const before = await sizeChanges();
    // More than the smallest size has.
    expect(await ask(uri, `SELECT ${takeMegabytes(700)} + ${takeMegabytes(700)}`)).toBe('1400000000');
    const grown = (await program.api('GET', `${path}/metrics`)).body.size_changes.slice(before);
    expect(grown[0]).toMatchObject({ from_cu: 0.25, to_cu: 0.5 });
    expect(await ask(uri, 'SELECT pg_postmaster_start_time()')).toBe(started);
    expect(await availabilityChecks(projectId)).toEqual([]);
  });

  it('that are used up cost that compute a session, which is put on record; its neighbour nothing', async ({
    skip,
  }) => {
    skip(!isEnforced, 'control groups are not permitted here');
    const neighbour = new pg.Client({ connectionString: uri });
    await neighbour.connect();
    await neighbour.query('BEGIN');
    const made = await makeProject(0.25, 0.5);
    const tooMuch = [1, 2, 3].map(() => takeMegabytes(750)).join(', ');
    await expect(ask(made.uri, `SELECT ${tooMuch}`)).rejects.toThrow();
    await eventually(async () => expect(await ask(made.uri, 'SELECT 1')).toBe('1'));
    const found = await eventually(async () => {
      const checks = await availabilityChecks(made.projectId);
      expect(checks).toMatchObject([{ status: 'finished', endpoint_id: made.endpointId }]);
      return checks[0];
    });
    expect(found.error).toMatch(
      /the kernel ended 1 of the server's processes: its memory limit was reached, which is 2048 MiB at 0.5 CU/,
    );
    expect(program.output).toContain('a compute ran out of memory');
    await neighbour.query('COMMIT');
    await neighbour.end();
  });

  it(
    `${edits} edits of the size restart once each, and clients of the pooled host wait`,
    async () => {
      const before = Number(await ask(uri, 'SELECT n FROM counters'));
      const generation = async () => Number(await ask(uri, `SELECT current_setting('catnap.generation')`));
      const first = await generation();
      const { done, failures } = await underLoad([pooled], async () => {
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
    },
    usualTestMs + edits * 10_000,
  );
});

function roleQuery(): string {
  const url = new URL(uri);
  return `database_name=${url.pathname.slice(1)}&role_name=${url.username}`;
}
