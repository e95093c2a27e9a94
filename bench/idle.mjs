/**
 * What a Catnap costs whose computes are all asleep: processor, memory, sessions of the system database; and how long
 * a start takes, and the API when its process was killed. A few computes are real; the many are rows alone, because to
 * sleep is all they do.
 */
import { rm } from 'node:fs/promises';
import { freePort, makeCompute, makeHome, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { processesOf, proportionalBytes } from './processes.mjs';
import { printTable, timed } from './stats.mjs';
import { addProjects, withSystemSql } from './system-rows.mjs';

const asleep = Number(process.env.BENCH_ASLEEP ?? 1_000);
const seconds = Number(process.env.BENCH_IDLE_SECONDS ?? 60);
/**
 * Pools close what they have not used for half a minute, one session after the other. The kernel counts what a session
 * has used in its life when it ends, so those of the start must be gone.
 */
const settleSeconds = Number(process.env.BENCH_SETTLE_SECONDS ?? 150);
const starts = Number(process.env.BENCH_STARTS ?? 5);
/** They come and go with each turn of the worker, so one look says little. */
const looks = 12;
const betweenLooksMs = 5_000;
const realMax = 3;
const giveUpMs = 60_000;

export async function benchIdle() {
  const place = {
    CATNAP_HOME: await makeHome(),
    CATNAP_HTTP_PORT: await freePort(),
    CATNAP_PG_PORT: await freePort(),
    CATNAP_LOG_LEVEL: 'fatal',
  };
  let catnap = await startCatnap(place);
  try {
    await makeSleepers(catnap);
    const [ready, busy] = [[], []];
    for (let i = 0; i < starts; i++) {
      await catnap.stop();
      ready.push(await timed(async () => (catnap = await startCatnap(place))));
      busy.push(sum((await processesOf(catnap)).map(({ cpuSeconds }) => cpuSeconds)));
    }
    await pause(settleSeconds * 1_000);
    await printCost(catnap);
    const killed = [];
    for (let i = 0; i < starts; i++) killed.push(await timeOfDeath(catnap));
    const rows = [
      ['start until ready', ready],
      ['processor time of a start', busy.map((s) => s * 1_000)],
      ['API killed until it answers', killed],
    ];
    keep({ what: 'second start until ready', unit: 'ms', ours: ready, atMost: 1_500 });
    keep({ what: 'API process killed until it answers', unit: 'ms', ours: killed, atMost: 1_000 });
    printTable('A start with all asleep (ms)', rows, 'start until ready');
  } finally {
    await catnap.stop();
    await rm(place.CATNAP_HOME, { recursive: true, force: true });
  }
}

async function makeSleepers(catnap) {
  const made = [];
  for (let i = 0; i < Math.min(realMax, asleep); i++) made.push(await makeCompute(catnap));
  for (const { suspend } of made) await suspend();
  await withSystemSql(catnap.home, (sql) => addProjects(sql, made[0], asleep - made.length));
}

async function printCost(catnap) {
  const before = await processesOf(catnap);
  await pause(seconds * 1_000);
  const after = await processesOf(catnap);
  const known = new Map(before.map(({ pid, cpuSeconds }) => [pid, cpuSeconds]));
  const parts = new Map();
  for (const { pid, part, cpuSeconds } of after) {
    const row = parts.get(part) ?? { processes: 0, cpu: 0, bytes: 0 };
    row.processes += 1;
    row.cpu += cpuSeconds - (known.get(pid) ?? 0);
    row.bytes += (await proportionalBytes(pid)) ?? 0;
    parts.set(part, row);
  }
  const total = { processes: 0, cpu: 0, bytes: 0 };
  for (const row of parts.values()) for (const key of Object.keys(total)) total[key] += row[key];
  console.log(`\n${asleep} computes asleep, over ${seconds} s`);
  console.log(
    `  ${'part'.padEnd(24)}${'processes'.padStart(10)}${'% of a core'.padStart(13)}${'MB (PSS)'.padStart(10)}`,
  );
  for (const [part, { processes, cpu, bytes }] of [...parts, ['all', total]]) {
    const cells = [String(processes).padStart(10), ((100 * cpu) / seconds).toFixed(2).padStart(13)];
    console.log(`  ${part.padEnd(24)}${cells.join('')}${(bytes / 1e6).toFixed(0).padStart(10)}`);
  }
  const sessions = await countSessions(catnap);
  const what = `${asleep} asleep: `;
  keep({ what: `${what}processor, of one core`, unit: '%', ours: [(100 * total.cpu) / seconds], atMost: 1 });
  keep({ what: `${what}memory of all processes`, unit: 'MB', ours: [total.bytes / 1e6], atMost: 200 });
  keep({ what: `${what}sessions of the system database`, unit: '×', ours: sessions, atMost: 8 });
}

/** At each look; those of the last one are printed by process. */
async function countSessions(catnap) {
  const counts = [];
  const last = await withSystemSql(catnap.home, async (sql) => {
    for (;;) {
      const sessions = await sql.unsafe(
        `select application_name as name, count(*)::int as count from pg_stat_activity
          where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1 order by 1`,
      );
      counts.push(sum(sessions.map(({ count }) => count)));
      if (counts.length === looks) return sessions;
      await pause(betweenLooksMs);
    }
  });
  console.log(`\nSessions of the system database: ${counts.join(', ')}`);
  for (const { name, count } of last) console.log(`  ${name.padEnd(24)}${String(count).padStart(10)}`);
  return counts;
}

/** How long the API did not answer after its process was killed. */
async function timeOfDeath(catnap) {
  const [victim] = (await processesOf(catnap)).filter(({ part }) => part === 'api');
  process.kill(victim.pid, 'SIGKILL');
  const ms = await timed(() => until(() => catnap.api('GET', '/projects').then(Boolean, () => false)));
  // One that dies young is started later, and later.
  await pause(6_000);
  return ms;
}

async function until(isSo) {
  const startedAt = performance.now();
  while (!(await isSo())) {
    if (performance.now() - startedAt > giveUpMs) throw new Error(`nothing came of it within ${giveUpMs / 1_000} s`);
    await pause(10);
  }
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
