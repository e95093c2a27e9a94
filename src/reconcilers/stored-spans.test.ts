import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, makeProject } from '../../test/helpers/commands.ts';
import { makeCoreOn, type TestCore } from '../../test/helpers/core.ts';
import { makeDatabase } from '../../test/helpers/database.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { deleteBranch } from '../core/branch.ts';
import { createBranch } from '../core/branch-create.ts';
import { readScope } from '../core/context.ts';
import { suspendEndpoint } from '../core/endpoint.ts';
import { deleteProject, withStored } from '../core/project.ts';
import { purgeBranch, recoverBranch, recoverProject } from '../core/recovery.ts';
import type { DatabaseOptions } from '../db/client.ts';
import { selectConsumption } from '../db/consumption-history.ts';
import { knownVersions, migrate, undoMigrations } from '../db/migrate.ts';
import { selectProjectInAnyState } from '../db/projects.ts';
import type { BranchId } from '../lib/ids.ts';
import { createLogger } from '../lib/log.ts';
import { loadAllMigrations } from '../processes/migrations.ts';
import { makeUsage } from './usage.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const minuteMs = 60_000;
let made: TestCore;
let options: DatabaseOptions;
beforeAll(async () => {
  const database = await makeDatabase(2);
  made = await makeCoreOn(database, { defaultPlan: 'scale' });
  options = database.options;
});
afterAll(() => made.close());

/** A project that sleeps, at a time that the test moves. */
async function stage(begin: string) {
  const driver = new FakeDriver();
  let at = new Date(begin).getTime();
  const now = () => new Date(at);
  const here = { ...made, core: { ...made.core, clock: { ...made.core.clock, now } } };
  const { core, caller } = here;
  const { project, branch, endpoint } = await makeProject(here);
  await drain(core, driver);
  await command(here, (scope) => suspendEndpoint(scope, caller, project.id, endpoint.id));
  await drain(core, driver);
  const { sql } = core.database;
  await sql`delete from consumption_hours`;
  const address = { projectIds: [project.id], branchIds: null, to: new Date('2100-01-01') };
  const from = new Date(`${begin.slice(0, 7)}-01T00:00:00Z`);
  return {
    driver,
    project,
    branch,
    here,
    core,
    caller,
    sql,
    now,
    pass: (minutes: number) => {
      at += minutes * minuteMs;
    },
    turn: (usage = makeUsage()) => usage.turn({ core, driver, log }),
    resize: (id: BranchId, bytes: number) => sql`update branches set logical_size = ${bytes} where id = ${id}`,
    history: (unit: 'hour' | 'day' | 'month', by: 'project' | 'branch') =>
      selectConsumption(sql, { ...address, from, unit, by, now: now() }),
    monthly: async () => {
      const row = await selectProjectInAnyState(sql, project.id);
      return (await withStored(readScope(core), row ?? expect.fail('the project is gone'))).usage.storage;
    },
  };
}

type Stage = Awaited<ReturnType<typeof stage>>;

/** The same numbers every time. */
function makeDice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

interface Model {
  readonly id: BranchId;
  readonly isRoot: boolean;
  size: number | null;
  /** The size that counts; null while nothing does. */
  counted: number | null;
  state: 'here' | 'deleted' | 'gone';
  /** By hour, in bytes times minutes. */
  readonly sums: Map<number, number>;
  readonly largest: Map<number, number>;
}

/** Adds up every minute, as slowly and as plainly as can be. */
class Ledger {
  readonly branches: Model[] = [];
  isDeleted = false;

  add(id: BranchId, isRoot: boolean): Model {
    const branch = {
      id,
      isRoot,
      size: null,
      counted: null,
      state: 'here',
      sums: new Map(),
      largest: new Map(),
    } as const;
    this.branches.push({ ...branch });
    return this.branches.at(-1) ?? expect.fail();
  }

  pass(from: Date, minutes: number): void {
    for (let minute = 0; minute < minutes; minute++) {
      const hour = Math.floor((from.getTime() / minuteMs + minute) / 60);
      for (const branch of this.branches) this.#count(branch, hour);
    }
  }

  #count({ counted, sums, largest }: Model, hour: number): void {
    if (counted === null) return;
    sums.set(hour, (sums.get(hour) ?? 0) + counted);
    largest.set(hour, Math.max(largest.get(hour) ?? 0, counted));
  }

  /** Sizes count from when they are noticed, on. */
  notice(): void {
    for (const branch of this.branches) {
      if (branch.state === 'here' && !this.isDeleted && branch.size !== null) branch.counted = branch.size;
    }
  }

  stop(): void {
    for (const branch of this.branches) branch.counted = null;
  }

  history(unit: 'hour' | 'day' | 'month', by: 'project' | 'branch') {
    const length = { hour: 13, day: 10, month: 7 }[unit];
    const rows = new Map<string, { root: number; child: number; largest: number }>();
    for (const { id, isRoot, sums, largest } of this.branches) {
      for (const [hour, bytes] of sums) {
        const start = new Date(hour * 60 * minuteMs).toISOString().slice(0, length);
        const key = by === 'branch' ? `${id} ${start}` : start;
        const row = rows.get(key) ?? { root: 0, child: 0, largest: 0 };
        row[isRoot ? 'root' : 'child'] += bytes / 60;
        row.largest = Math.max(row.largest, largest.get(hour) ?? 0);
        rows.set(key, row);
      }
    }
    return rows;
  }
}

async function compare(s: Stage, ledger: Ledger): Promise<void> {
  for (const unit of ['hour', 'day', 'month'] as const) {
    for (const by of ['branch', 'project'] as const) {
      const wanted = ledger.history(unit, by);
      const length = { hour: 13, day: 10, month: 7 }[unit];
      // A span that has just begun is an hour of nothing.
      const rows = (await s.history(unit, by)).filter(
        ({ rootByteHours, childByteHours }) => rootByteHours + childByteHours,
      );
      const found = new Map(
        rows.map(({ branchId, start, rootByteHours: root, childByteHours: child, logicalBytes: largest }) => {
          const time = start.toISOString().slice(0, length);
          return [branchId === null ? time : `${branchId} ${time}`, { root, child, largest }];
        }),
      );
      expect([...found.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
      for (const [key, { root, child, largest }] of wanted) {
        const row = found.get(key);
        expect(row?.root, key).toBeCloseTo(root, 3);
        expect(row?.child, key).toBeCloseTo(child, 3);
        expect(row?.largest, key).toBe(largest);
      }
    }
  }
  const month = ledger.history('month', 'project').get(s.now().toISOString().slice(0, 7));
  expect(await s.monthly()).toBeCloseTo((month?.root ?? 0) + (month?.child ?? 0), 3);
}

/** One thing that may happen, to rows and ledger alike. */
async function happen(s: Stage, ledger: Ledger, dice: (sides: number) => number): Promise<void> {
  const { here, caller, project, core, driver } = s;
  const some = (state: Model['state'], isRoot = false) => {
    const found = ledger.branches.filter((one) => one.state === state && (isRoot || !one.isRoot));
    return found[dice(found.length)];
  };
  const what = dice(20);
  if (what < 10) {
    const branch = ledger.isDeleted ? undefined : some('here', true);
    if (branch === undefined) return;
    branch.size = dice(4) * 1_000_000 + 1;
    await s.resize(branch.id, branch.size);
  } else if (ledger.isDeleted) {
    if (what < 14) return;
    await command(here, (scope) => recoverProject(scope, caller, project.id));
    ledger.isDeleted = false;
    ledger.notice();
  } else if (what < 12) {
    const input = { annotation: {}, endpoints: [], parentId: s.branch.id };
    const { branch } = await command(here, (scope) => createBranch(scope, caller, project.id, input));
    await drain(core, driver);
    ledger.add(branch.id, false).size = ledger.branches[0]?.size ?? null;
  } else if (what < 15) {
    const branch = some('here');
    if (branch === undefined) return;
    await command(here, (scope) => deleteBranch(scope, caller, project.id, branch.id, what === 14));
    await drain(core, driver);
    Object.assign(branch, { counted: null, state: what === 14 ? 'gone' : 'deleted' });
  } else if (what < 18) {
    const branch = some('deleted');
    if (branch === undefined) return;
    const isPurge = what === 17;
    if (isPurge) await command(here, (scope) => purgeBranch(scope, caller, project.id, branch.id));
    else await command(here, (scope) => recoverBranch(scope, caller, project.id, branch.id));
    await drain(core, driver);
    Object.assign(branch, isPurge ? { state: 'gone' } : { counted: branch.size, state: 'here' });
  } else if (what === 18) {
    await command(here, (scope) => deleteProject(scope, caller, project.id));
    await drain(core, driver);
    ledger.isDeleted = true;
    ledger.stop();
  }
}

describe('what is stored', () => {
  test.each([1, 2, 3, 4, 5])('comes to what every minute adds up to, whatever happens (history %i)', async (seed) => {
    const dice = makeDice(seed);
    const s = await stage('2026-03-30T20:17:00Z');
    const ledger = new Ledger();
    ledger.add(s.branch.id, true);
    await s.resize(s.branch.id, 5);
    (ledger.branches[0] ?? expect.fail()).size = 5;
    const usages = [makeUsage(), makeUsage()];
    for (let step = 0; step < 120; step++) {
      // Now and then nobody looks for hours.
      const minutes = dice(8) === 0 ? dice(600) : dice(30);
      ledger.pass(s.now(), minutes);
      s.pass(minutes);
      if (dice(3) === 0) await happen(s, ledger, dice);
      else await Promise.all(usages.slice(0, 1 + dice(2)).map((usage) => s.turn(usage).then(() => ledger.notice())));
      if (step % 40 === 39) await compare(s, ledger);
    }
    expect(s.now().toISOString()).toMatch(/^2026-04/);
  });

  test('a turn neither reads nor writes rows of what sleeps and keeps its size', async () => {
    const s = await stage('2026-05-10T10:00:30Z');
    await s.resize(s.branch.id, 1_000);
    await addSleepers(s, 1_000);
    const usage = makeUsage();
    await s.turn(usage);
    await s.sql.unsafe('analyze');
    const versions = async () => [
      ...(await s.sql`
        select 'branches' as of, max(xmin::text::bigint) as last, count(*)::int as rows from branches
        union all select 'projects', max(xmin::text::bigint), count(*)::int from projects
        union all select 'hours', max(xmin::text::bigint), count(*)::int from consumption_hours
        union all select 'spans', max(xmin::text::bigint), count(*)::int from stored_spans`),
    ];
    const before = await versions();
    // The whole of an hour, and its end.
    const minutes = 61;
    const reads = await readsOf(s, async () => {
      for (let minute = 0; minute < minutes; minute++) {
        s.pass(1);
        await s.turn(usage);
      }
    });
    expect(await versions()).toEqual(before);
    expect(reads).toBeLessThan(minutes);
    const sum = (await s.sql`select count(*)::int as n from branches where metered_until is not null`)[0];
    expect(sum?.n).toBeGreaterThan(1_000);
  });
});

test('what is stored stays what it is on the way back to an earlier program, and forth again', async () => {
  const minutes = 3 * 24 * 60;
  const s = await stage(new Date(Math.floor(Date.now() / minuteMs - minutes) * minuteMs).toISOString());
  await s.resize(s.branch.id, 3_600_000);
  await s.turn();
  s.pass(26 * 60);
  await s.resize(s.branch.id, 7_200_000);
  await s.turn();
  s.pass(minutes - 26 * 60);
  const total = async () => (await s.history('hour', 'branch')).reduce((sum, row) => sum + row.rootByteHours, 0);
  /** An undo counts up to its own moment, which is a little later. */
  const expectNear = (bytes: number | undefined, wanted: number | undefined) =>
    expect(Math.abs((bytes ?? 0) - (wanted ?? 0))).toBeLessThan((7_200_000 * 5) / 60);
  const [months, sum, month] = [await s.history('month', 'branch'), await total(), await s.monthly()];
  expect(sum).toBeCloseTo(26 * 3_600_000 + 46 * 7_200_000, 0);

  const sets = await loadAllMigrations();
  await undoMigrations(options, sets, { ...knownVersions(sets), platform: 25 });
  const undone = await s.sql<{ start: Date; bytes: number }[]>`
    select date_trunc('month', hour, 'UTC') as start, sum(storage_byte_seconds) / 3600 as bytes from consumption_hours
    where branch_id = ${s.branch.id} group by 1 order by 1`;
  for (const [at, { start, rootByteHours }] of months.entries()) {
    expect(undone[at]?.start).toEqual(start);
    expectNear(undone[at]?.bytes, rootByteHours);
  }
  expectNear((await selectProjectInAnyState(s.sql, s.project.id))?.usage.storage, month);

  await migrate(options, sets);
  expectNear(await total(), sum);
  expectNear(await s.monthly(), month);
  s.pass(120);
  expectNear(await total(), sum + 2 * 7_200_000);
});

/** Rows alone, as a real project that sleeps would have them. */
async function addSleepers({ sql, project, branch }: Stage, count: number): Promise<void> {
  const copies = [
    ['projects', `id = '${project.id}'`, { id: `'p-' || i`, name: `'p ' || i`, tenant_uid: 'null' }],
    ['branches', `project_id = '${project.id}'`, { id: `'b-' || i`, project_id: `'p-' || i` }],
    [
      'endpoints',
      `branch_id = '${branch.id}'`,
      { id: `'e-' || i`, project_id: `'p-' || i`, branch_id: `'b-' || i`, current_state: `'idle'` },
    ],
  ] as const;
  for (const [table, where, changed] of copies) {
    const columns = await sql<{ name: string }[]>`
      select attname as name from pg_attribute where attrelid = ${table}::regclass and attnum > 0 and not attisdropped
        and attgenerated = ''`;
    const names = columns.map(({ name }) => name);
    const values = names.map((name) => (changed as Readonly<Record<string, string>>)[name] ?? name);
    await sql.unsafe(`insert into ${table} (${names.join()})
      select ${values.join()} from ${table}, generate_series(1, ${count}) as i where ${where}`);
  }
}

/** How many rows of these tables were looked at. */
async function readsOf({ sql }: Stage, work: () => Promise<void>): Promise<number> {
  const count = async () => {
    // Each session has counters of its own until it is idle: both say theirs.
    await Promise.all([1, 2].map(() => sql`select pg_stat_force_next_flush(), pg_sleep(0.1)`));
    const [row] = await sql<{ reads: number }[]>`
      select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint as reads from pg_stat_user_tables
      where schemaname = 'catnap' and relname in ('projects', 'branches', 'endpoints')`;
    return row?.reads ?? 0;
  };
  const before = await count();
  await work();
  return (await count()) - before;
}
