/**
 * How the control plane answers with ever more computes in the system database: rows alone, copies of one real project.
 * And what each thing that people do asks of that database, from its own counters.
 *
 *     BENCH_SCALE_COUNTS=10,1000,100000,1000000 npm run bench -- scale
 */
import { makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, summarize, timed } from './stats.mjs';
import { addProjects, withSystemSql } from './system-rows.mjs';

const counts = (process.env.BENCH_SCALE_COUNTS ?? '10,1000,100000,1000000').split(',').map(Number);
const repeats = 60;
const wakes = 8;
/** A session that told its counters less than a second ago tells the rest when it has been idle for ten. */
const countersMs = 11_000;
/** Longer than the longest turn of a reconciler waits for the next. */
const turnsMs = Number(process.env.BENCH_SCALE_TURNS_SECONDS ?? 65) * 1_000;
const settleMs = 1_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchScale() {
  const catnap = await startCatnap();
  try {
    const compute = await makeCompute(catnap);
    await withSystemSql(catnap.home, async (sql) => {
      await measureLoad(catnap, sql, compute);
      const found = [];
      for (const count of counts) {
        await addProjects(sql, compute, count);
        found.push([count, await measureAnswers(catnap, sql, compute)]);
      }
      report(found);
    });
  } finally {
    await catnap.stop();
  }
}

async function measureAnswers(catnap, sql, { path, connection, suspend }) {
  const samples = { get: [], list: [], search: [], connect: [], wake: [] };
  for (let i = 0; i < repeats; i++) {
    samples.get.push(await timed(() => catnap.api('GET', path)));
    samples.list.push(await timed(() => catnap.api('GET', '/projects?limit=20')));
    samples.search.push(await timed(() => catnap.api('GET', '/projects?limit=20&search=bench+7')));
    samples.connect.push(await timed(() => selectOne(connection)));
  }
  for (let i = 0; i < wakes; i++) {
    await suspend();
    await pause(settleMs);
    samples.wake.push(await timed(() => selectOne(connection)));
  }
  await suspend();
  // A search before it has kept all sessions of the API at work.
  await pause(countersMs);
  const before = await readCounters(sql);
  await pause(turnsMs);
  const after = await readCounters(sql);
  const busyMs = after.activeMs - before.activeMs;
  return { ...samples, busy: [(100 * busyMs) / (after.at - before.at)] };
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
  const [[least, first]] = found;
  for (const [name, what] of Object.entries(titles)) {
    const unit = name === 'busy' ? '%' : 'ms';
    const rows = found.map(([count, samples]) => [`${count} computes`, samples[name]]);
    printTable(`${what} (${unit})`, rows, `${least} computes`);
    for (const [count, samples] of found) {
      const isGoal = count === 100_000 && ['get', 'list'].includes(name);
      const peer = [summarize(first[name]).median];
      const beside = `with ${least} computes`;
      keep({
        what,
        at: count,
        of: 'computes',
        unit,
        ours: samples[name],
        peer,
        beside,
        ...(isGoal && { atMost: 1.2 }),
      });
    }
  }
}

/** What one of each costs the system database: the counters before and after several of them, less what ticks anyway. */
async function measureLoad(catnap, sql, { path, connection, suspend, projectId, branchId }) {
  const roles = `/projects/${projectId}/branches/${branchId}/roles`;
  const rest = await countersOf(sql, 1, () => pause(20_000));
  const things = [
    ['API: get a compute', 50, () => catnap.api('GET', path)],
    ['API: list 20 projects', 50, () => catnap.api('GET', '/projects?limit=20')],
    ['connect to an awake compute', 50, () => selectOne(connection)],
    ['suspend and wake', 10, () => suspend().then(() => selectOne(connection))],
    ['create and delete a role', 5, (i) => makeAndDeleteRole(catnap, roles, `load_${i}`)],
    ['create a project until its first row', 5, () => makeCompute(catnap)],
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
