/**
 * A read replica while its primary is written to, and suspended, restarted and killed at random. Each transaction
 * writes two rows; others write and roll back. Whatever the replica ever showed must be in the primary at the end.
 * CATNAP_TEST_REPLICA_SECONDS says for how long.
 */
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, letRun, randomMoment, thinkTime, usualTestMs } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

const seconds = Number(process.env.CATNAP_TEST_REPLICA_SECONDS ?? 8);

let program: Program;
let projectId: string;
let primaryId: string;
let replicaId: string;
let uri: string;
let isOver = false;
const replicaUri = () => uri.replaceAll(primaryId, replicaId);
const endpoint = (id: string) => `/projects/${projectId}/endpoints/${id}`;

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'soaked' } });
  projectId = body.project.id;
  primaryId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  await ask(uri, 'create table t (n int, side text, primary key (n, side))');
  const made = await program.api('POST', `/projects/${projectId}/endpoints`, {
    endpoint: { branch_id: body.branch.id, type: 'read_only' },
  });
  replicaId = made.body.endpoint.id;
  await program.settle(projectId);
});
afterAll(() => program.destroy());

/** Runs work on a connection, and on a new one when that breaks; tells how often it broke. */
async function keepAt(to: string, work: (client: pg.Client) => Promise<void>): Promise<number> {
  let broken = 0;
  while (!isOver) {
    const client = new pg.Client({ connectionString: to, connectionTimeoutMillis: 20_000 });
    client.on('error', () => {});
    try {
      await client.connect();
      while (!isOver) await work(client);
    } catch {
      broken++;
    } finally {
      await client.end().catch(() => {});
    }
  }
  return broken;
}

let last = 0;
let acknowledged = 0;
async function write(client: pg.Client): Promise<void> {
  const n = ++last;
  if (n % 5 === 0) {
    await client.query(`begin; insert into t values (${-n}, 'never'); select pg_sleep(0.002); rollback`);
    return;
  }
  await client.query(`begin; insert into t values (${n}, 'a'); insert into t values (${n}, 'b'); commit`);
  acknowledged = n;
  await thinkTime(1);
}

const seen = new Map<number, number>();
const behind: number[] = [];
async function read(client: pg.Client): Promise<void> {
  const highest = acknowledged;
  const { rows } = await client.query('select n, count(*)::int as sides from t group by n');
  for (const { n, sides } of rows) seen.set(n, Math.min(sides, seen.get(n) ?? 2));
  const shown = Math.max(0, ...rows.map(({ n }: { n: number }) => n));
  behind.push(Math.max(0, highest - shown));
  await thinkTime(10);
}

async function disturb(counts: Record<string, number>): Promise<void> {
  const ways: Record<string, () => Promise<unknown>> = {
    suspend: () => program.api('POST', `${endpoint(primaryId)}/suspend`),
    restart: () => program.api('POST', `${endpoint(primaryId)}/restart`),
    kill: async () => {
      for (const pid of await program.serverPids(`catnap.endpoint=${primaryId}`)) process.kill(pid, 'SIGKILL');
    },
  };
  while (!isOver) {
    await randomMoment(1_200, 300);
    const [name = '', act] = Object.entries(ways)[Math.floor(Math.random() * 3)] ?? [];
    counts[name] = (counts[name] ?? 0) + 1;
    await act?.().catch(() => {});
  }
}

it(`shows only what was committed, and catches up (${seconds} s)`, {
  timeout: usualTestMs + seconds * 1_000,
}, async () => {
  const counts: Record<string, number> = {};
  const work = [keepAt(uri, write), keepAt(replicaUri(), read), disturb(counts)];
  await letRun(seconds * 1_000);
  isOver = true;
  const [writerBroken, readerBroken] = await Promise.all(work);
  await program.settle(projectId);

  const client = new pg.Client({ connectionString: uri });
  await client.connect();
  const { rows } = await client.query('select n, count(*)::int as sides from t group by n order by n');
  await client.end();
  const committed = new Map<number, number>(rows.map(({ n, sides }: { n: number; sides: number }) => [n, sides]));
  expect([...seen].filter(([n, sides]) => sides !== 2 || committed.get(n) !== 2)).toEqual([]);
  expect([...committed].filter(([n, sides]) => n < 0 || sides !== 2)).toEqual([]);
  const total = String(rows.length * 2);
  const waitedFrom = performance.now();
  await eventually(async () => expect(await ask(replicaUri(), 'select count(*) from t')).toBe(total));
  behind.sort((a, b) => a - b);
  const at = (share: number) => behind[Math.min(behind.length - 1, Math.floor(behind.length * share))];
  process.stdout.write(
    `replica: ${rows.length} transactions, ${behind.length} reads, primary disturbed ${JSON.stringify(counts)}, ` +
      `writer reconnected ${writerBroken} times, reader ${readerBroken}; transactions behind: median ${at(0.5)}, ` +
      `p95 ${at(0.95)}, most ${at(1)}; caught up ${Math.round(performance.now() - waitedFrom)} ms after the end\n`,
  );
  expect(behind.length).toBeGreaterThan(0);
  expect(seen.size).toBeGreaterThan(0);
});
