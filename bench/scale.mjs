/**
 * How the control plane answers with ever more computes in the system database, beside one that has few: rows alone,
 * copies of one real project. And what each thing that people do asks of that database, from its own counters.
 *
 *     BENCH_SCALE_COUNTS=20,1000,100000,1000000 npm run bench -- scale
 */
import { makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';
import { addProjects, withSystemSql } from './system-rows.mjs';

const counts = (process.env.BENCH_SCALE_COUNTS ?? '20,1000,100000,1000000').split(',').map(Number);
const repeats = 60;
const wakes = 8;
/** Enough for what happens once in a while to count for little. */
const reads = 1_000;
/** A session that told its counters less than a second ago tells the rest when it has been idle for ten. */
const countersMs = 11_000;
/** Longer than the longest turn of a reconciler waits for the next. */
const turnsMs = Number(process.env.BENCH_SCALE_TURNS_SECONDS ?? 65) * 1_000;
const settleMs = 1_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchScale() {
  const started = [];
  const start = async () => {
    const catnap = await startCatnap();
    started.push(catnap);
    return { catnap, compute: await makeCompute(catnap) };
  };
  try {
    const large = await start();
    await withSystemSql(large.catnap.home, async (sql) => {
      await measureLoad(large.catnap, sql, large.compute);
      const small = await start();
      await withSystemSql(small.catnap.home, async (smallSql) => {
        const sides = { large: { ...large, sql }, small: { ...small, sql: smallSql } };
        await addProjects(smallSql, small.compute, counts[0]);
        const found = [];
        for (const count of counts) {
          await addProjects(sql, large.compute, count);
          found.push([count, await measureAnswers(sides)]);
        }
        report(found);
      });
    });
  } finally {
    for (const catnap of started) await catnap.stop();
  }
}

/** Both take turns, so that a busy moment of the machine affects both. */
async function measureAnswers(sides) {
  const samples = Object.fromEntries(
    Object.keys(sides).map((side) => [side, { get: [], list: [], search: [], connect: [], wake: [] }]),
  );
  const take = async (name, work) => {
    for (const [side, parts] of Object.entries(sides)) samples[side][name].push(await timed(() => work(parts)));
  };
  for (let i = 0; i < repeats; i++) {
    await take('get', ({ catnap, compute }) => catnap.api('GET', compute.path));
    await take('list', ({ catnap }) => catnap.api('GET', '/projects?limit=20'));
    await take('search', ({ catnap }) => catnap.api('GET', '/projects?limit=20&search=bench+7'));
    await take('connect', ({ compute }) => selectOne(compute.connection));
  }
  const suspend = () => Promise.all(Object.values(sides).map(({ compute }) => compute.suspend()));
  for (let i = 0; i < wakes; i++) {
    await suspend();
    await pause(settleMs);
    await take('wake', ({ compute }) => selectOne(compute.connection));
  }
  await suspend();
  // A search before it has kept all sessions of the API at work.
  await pause(countersMs);
  const readAll = () => Promise.all(Object.values(sides).map(({ sql }) => readCounters(sql)));
  const before = await readAll();
  await pause(turnsMs);
  const after = await readAll();
  for (const [i, one] of Object.values(samples).entries()) {
    one.busy = [(100 * (after[i].activeMs - before[i].activeMs)) / (after[i].at - before[i].at)];
  }
  return samples;
}

const titles = {
  get: 'API: get a compute',
  list: 'API: list 20 projects',
  search: 'API: search projects by name',
  connect: 'connect to an awake compute until the first row',
  wake: 'wake until the first row',
  busy: 'the system database at rest, of one core',
};

function report(found) {
  for (const [name, what] of Object.entries(titles)) {
    const unit = name === 'busy' ? '%' : 'ms';
    for (const [count, { large, small }] of found) {
      const isGoal = count === 100_000 && ['get', 'list'].includes(name);
      const beside = `with ${counts[0]} computes`;
      const rows = [
        [beside, small[name]],
        [`with ${count}`, large[name]],
      ];
      printTable(`${what} (${unit})`, rows, beside);
      keep({
        what,
        at: count,
        of: 'computes',
        unit,
        ours: large[name],
        peer: small[name],
        beside: `a Catnap ${beside}`,
        ...(isGoal && { atMost: 1.2 }),
      });
    }
  }
}

/** What one of each costs the system database: its counters before and after several, less what ticks anyway. */
async function measureLoad(catnap, sql, { path, connection, suspend, projectId, branchId }) {
  const roles = `/projects/${projectId}/branches/${branchId}/roles`;
  const made = [];
  const rest = await countersOf(sql, 1, () => pause(20_000));
  const things = [
    ['API: get a compute', reads, () => catnap.api('GET', path)],
    ['API: list 20 projects', reads, () => catnap.api('GET', '/projects?limit=20')],
    ['connect to an awake compute', reads, () => selectOne(connection)],
    ['suspend and wake', 10, () => suspend().then(() => selectOne(connection))],
    ['create and delete a role', 5, (i) => makeAndDeleteRole(catnap, roles, `load_${i}`)],
    ['create a project until its first row', 5, async () => made.push(await makeCompute(catnap))],
  ];
  console.log('\nWhat each asks of the system database, beside what ticks anyway');
  const columns = ['ms', 'transactions', 'rows read', 'rows written', 'log bytes'];
  console.log(`  ${'what'.padEnd(40)}${columns.map((word) => word.padStart(14)).join('')}`);
  for (const [what, times, work] of [['at rest, each second', 20, null], ...things]) {
    const used = work === null ? rest : await countersOf(sql, times, work);
    const each = (name) => {
      if (work === null) return used[name] / (used.ms / 1_000);
      return Math.max(0, (used[name] - rest[name] * (used.ms / rest.ms)) / times);
    };
    const cells = { ms: each('activeMs'), transactions: each('commits'), read: each('read'), written: each('written') };
    const line = { ...cells, log: each('log') };
    console.log(
      `  ${what.padEnd(40)}${Object.values(line)
        .map((value) => value.toFixed(1).padStart(14))
        .join('')}`,
    );
    keep({ what: `system database, ${what}: transactions`, unit: '×', ours: [line.transactions] });
    keep({ what: `system database, ${what}: busy`, unit: 'ms', ours: [line.ms] });
    keep({ what: `system database, ${what}: rows read`, unit: '×', ours: [line.read] });
    keep({ what: `system database, ${what}: log written`, unit: 'bytes', ours: [line.log] });
  }
  // What follows is measured while all sleep.
  for (const one of made) await one.suspend();
}

async function makeAndDeleteRole(catnap, roles, name) {
  await catnap.api('POST', roles, { role: { name } });
  await catnap.api('DELETE', `${roles}/${name}`);
}

async function countersOf(sql, times, work) {
  await pause(countersMs);
  const before = await readCounters(sql);
  for (let i = 0; i < times; i++) await work(i);
  await pause(countersMs);
  const after = await readCounters(sql);
  const used = Object.keys(before).map((name) => [name, after[name] - before[name]]);
  return { ...Object.fromEntries(used), ms: after.at - before.at };
}

async function readCounters(sql) {
  const [row] = await sql.unsafe(
    `select xact_commit::float8 as commits, (tup_fetched + tup_returned)::float8 as read,
            (tup_inserted + tup_updated + tup_deleted)::float8 as written, active_time as "activeMs",
            (pg_current_wal_lsn() - '0/0')::float8 as log, extract(epoch from clock_timestamp())::float8 * 1000 as at
       from pg_stat_database where datname = current_database()`,
  );
  return row;
}
