/**
 * What a Catnap costs whose computes are all asleep: processor, memory, sessions of the system database; and how long
 * a start takes, and the API when its process was killed. A few computes are real; the many are rows alone, because to
 * sleep is all they do.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort, makeHome, startCatnap } from './catnap.mjs';
import { processesOf, proportionalBytes } from './processes.mjs';
import { printTable, timed } from './stats.mjs';

const asleep = Number(process.env.BENCH_ASLEEP ?? 1_000);
const seconds = Number(process.env.BENCH_IDLE_SECONDS ?? 60);
/** Pools close what they have not used for half a minute. */
const settleSeconds = Number(process.env.BENCH_SETTLE_SECONDS ?? 45);
const starts = Number(process.env.BENCH_STARTS ?? 5);
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
    const [until, busy] = [[], []];
    for (let i = 0; i < starts; i++) {
      await catnap.stop();
      until.push(await timed(async () => (catnap = await startCatnap(place))));
      busy.push(sum((await processesOf(catnap)).map(({ cpuSeconds }) => cpuSeconds)));
    }
    await pause(settleSeconds * 1_000);
    await printCost(catnap);
    const killed = [];
    for (let i = 0; i < starts; i++) killed.push(await timeOfDeath(catnap));
    const rows = [
      ['start until ready', until],
      ['processor time of a start', busy.map((s) => s * 1_000)],
      ['API killed until it answers', killed],
    ];
    printTable('A start with all asleep (ms)', rows, 'start until ready');
  } finally {
    await catnap.stop();
    await rm(place.CATNAP_HOME, { recursive: true, force: true });
  }
}

async function makeSleepers(catnap) {
  const made = [];
  for (let i = 0; i < Math.min(realMax, asleep); i++) made.push(await catnap.api('POST', '/projects', { project: {} }));
  for (const { project, endpoints } of made) {
    const path = `/projects/${project.id}/endpoints/${endpoints[0].id}`;
    await until(async () => (await catnap.api('GET', path)).endpoint.current_state === 'active');
    await catnap.api('POST', `${path}/suspend`);
    await until(async () => (await catnap.api('GET', path)).endpoint.current_state === 'idle');
  }
  const first = { project: made[0].project.id, branch: made[0].branch.id, endpoint: made[0].endpoints[0].id };
  await ask(catnap, copies(first, asleep - made.length));
}

/** Everything of one project but its data, under other names. The driver is asked about histories that are not there. */
function copies({ project, branch, endpoint }, count) {
  const copy = (table, where, changes) => `
    insert into catnap.${table} overriding system value
    select (jsonb_populate_record(row, jsonb_build_object(${changes}))).*
    from catnap.${table} row, generate_series(1, ${count}) n where ${where}`;
  const newId = (table) => `'id', nextval(pg_get_serial_sequence('catnap.${table}', 'id'))`;
  const ofBranch = `row.branch_id = '${branch}'`;
  return [
    copy('projects', `row.id = '${project}'`, `'id', row.id || n, 'tenant_uid', row.tenant_uid + 1000000 + n`),
    copy('branches', `row.id = '${branch}'`, `'id', row.id || n, 'project_id', row.project_id || n`),
    copy('roles', ofBranch, `${newId('roles')}, 'branch_id', row.branch_id || n`),
    copy('databases', ofBranch, `${newId('databases')}, 'branch_id', row.branch_id || n`),
    copy(
      'endpoints',
      `row.id = '${endpoint}'`,
      `'id', row.id || n, 'project_id', row.project_id || n, 'branch_id', row.branch_id || n`,
    ),
    'analyze',
  ];
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
  const [sessions] = await ask(catnap, [
    `select application_name as name, count(*)::int as count from pg_stat_activity
     where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1 order by 1`,
  ]);
  console.log(`\nSessions of the system database: ${sum(sessions.map(({ count }) => count))}`);
  for (const { name, count } of sessions) console.log(`  ${name.padEnd(24)}${String(count).padStart(10)}`);
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

async function ask({ home }, statements) {
  const password = await readFile(join(home, 'system', 'password'), 'utf8');
  const client = new pg.Client({ host: join(home, 's', 'system'), user: 'catnap', database: 'catnap', password });
  await client.connect();
  try {
    const replies = [];
    for (const statement of statements) replies.push((await client.query(statement)).rows);
    return replies;
  } finally {
    await client.end();
  }
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
