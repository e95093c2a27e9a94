/**
 * A project that takes all it can get of one thing, beside a neighbour that asks small questions: how much longer the
 * neighbour waits than alone. Nothing of the neighbour's may fail, old session or new.
 */
import pg from 'pg';
import { letRun, thinkTime } from '../../helpers/eventually.ts';
import { Program } from '../../helpers/program.ts';
import type { PartReport } from './report.ts';

const measureMs = 5_000;
const cu = 0.25;
const cpuPiece = 'select count(*) from generate_series(1, 200000)';

interface Greed {
  readonly what: string;
  readonly sessions: number;
  readonly text: string;
}

const greeds: readonly Greed[] = [
  { what: 'CPU', sessions: 8, text: cpuPiece },
  {
    what: 'memory',
    sessions: 2,
    text: "select octet_length(repeat(repeat('x', 1000), 1000000)) + octet_length(repeat(repeat('y', 1000), 1000000))",
  },
  { what: 'connections', sessions: 400, text: 'select pg_sleep(1)' },
  {
    what: 'temporary disk',
    sessions: 2,
    text: "select count(*) from (select i, repeat('x', 500) as x from generate_series(1, 3000000) i order by random()) t",
  },
  {
    what: 'log',
    sessions: 2,
    text: "do $$ begin for i in 1..2000 loop raise log '%', repeat('x', 2000); end loop; end $$",
  },
];

interface Waits {
  readonly p50: number;
  readonly p99: number;
  readonly asked: number;
  readonly failures: readonly string[];
}

export async function measureNeighbours(): Promise<PartReport> {
  const program = await Program.create();
  const changes: string[] = [];
  const rows: (string | number)[][] = [];
  let attempts = 0;
  try {
    await program.start();
    const [greedy, neighbour] = [await makeCompute(program), await makeCompute(program)];
    const alone = await waitsOf(neighbour);
    rows.push(['nothing', 0, alone.p50, alone.p99, 1, 1]);
    for (const greed of greeds) {
      process.stdout.write(`isolation neighbours: ${greed.what}\n`);
      const taking = take(greedy, greed);
      const beside = await waitsOf(neighbour);
      const done = await taking.stop();
      attempts += done;
      rows.push([
        greed.what,
        done,
        beside.p50,
        beside.p99,
        round(beside.p50 / alone.p50),
        round(beside.p99 / alone.p99),
      ]);
      changes.push(...beside.failures.map((failure) => `beside one that takes ${greed.what}: ${failure}`));
    }
  } finally {
    await program.destroy();
  }
  const table = {
    title: `A neighbour's waits beside a project of ${cu} CU that takes all it gets (ms)`,
    columns: ['taken', 'statements and sessions', 'p50', 'p99', 'p50 ratio', 'p99 ratio'],
    rows,
  };
  return { part: 'neighbours', attempts, leaks: [], changes, tables: [table] };
}

async function makeCompute(program: Program): Promise<string> {
  const settings = { autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu, suspend_timeout_seconds: -1 };
  const { body } = await program.api('POST', '/projects', { project: { default_endpoint_settings: settings } });
  await program.settle(body.project.id);
  return body.connection_uris[0].connection_uri;
}

const round = (ratio: number) => Math.round(ratio * 100) / 100;

/** Small questions, one after another, and a fresh login now and then. */
async function waitsOf(connectionString: string): Promise<Waits> {
  const waits: number[] = [];
  const failures: string[] = [];
  const ask = (client: pg.Client) => client.query('select count(*) from pg_class');
  const client = new pg.Client({ connectionString });
  client.on('error', (error) => failures.push(`the session ended: ${error.message}`));
  await client.connect();
  const until = performance.now() + measureMs;
  for (let asked = 0; performance.now() < until; asked += 1) {
    const from = performance.now();
    await ask(client).then(
      () => waits.push(performance.now() - from),
      (error: unknown) => failures.push(`a question failed: ${error}`),
    );
    if (asked % 500 === 0) {
      const fresh = new pg.Client({ connectionString });
      fresh.on('error', () => undefined);
      await fresh
        .connect()
        .then(() => ask(fresh))
        .catch((error: unknown) => failures.push(`a login failed: ${error}`));
      await fresh.end().catch(() => undefined);
    }
  }
  await client.end();
  const sorted = waits.toSorted((one, other) => one - other);
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { p50: at(0.5), p99: at(0.99), asked: waits.length, failures: [...new Set(failures)] };
}

/** What fails of it is the greedy project's own loss. */
function take(connectionString: string, { sessions, text }: Greed) {
  let isOver = false;
  let done = 0;
  const clients = new Set<pg.Client>();
  const session = async () => {
    while (!isOver) {
      const client = new pg.Client({ connectionString });
      client.on('error', () => undefined);
      clients.add(client);
      try {
        await client.connect();
        while (!isOver) {
          await client.query(text);
          done += 1;
        }
      } catch {
        done += 1;
        await thinkTime(200);
      } finally {
        clients.delete(client);
        await client.end().catch(() => undefined);
      }
    }
  };
  const all = Promise.all(Array.from({ length: sessions }, session));
  return {
    stop: async () => {
      isOver = true;
      // Some of the statements would run for minutes.
      for (const client of clients) client.end().catch(() => undefined);
      await Promise.race([all, letRun(10_000)]);
      return done;
    },
  };
}
