/**
 * Many computes on one machine: fifty wakes at once beside fifty bare starts at once, and a single wake while a hundred
 * others are awake, or while the system database lists a thousand that sleep.
 *
 *     BENCH_CROWD=50 BENCH_AWAKE=100 BENCH_REPEATS=5 npm run bench -- crowd
 */
import { join } from 'node:path';
import { copyTemplate, findBuild, prepareSocketDirectory, startBare } from './bare-postgres.mjs';
import { makeCompute, selectOne, startCatnap } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, timed } from './stats.mjs';
import { addProjects, withSystemSql } from './system-rows.mjs';

const crowd = Number(process.env.BENCH_CROWD ?? 50);
const awake = Number(process.env.BENCH_AWAKE ?? 100);
const repeats = Number(process.env.BENCH_REPEATS ?? 5);
const asleep = 1_000;
const wakes = 3 * repeats;
/** After a compute has gone idle, what Catnap still does about it. */
const settleMs = 1_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchCrowd() {
  const catnap = await startCatnap();
  try {
    const computes = [];
    while (computes.length < crowd) computes.push(await makeCompute(catnap));
    await compareAtOnce(catnap, computes);
    const [one, ...others] = computes;
    for (const { suspend } of others) await suspend();
    const alone = await measureWakes(one);
    await withSystemSql(catnap.home, (sql) => addProjects(sql, one, asleep));
    const besideSleepers = await measureWakes(one);
    while (others.length < awake) others.push(await makeCompute(catnap));
    // Those that were there sleep again by the time the last has been made.
    const keepAwake = () => Promise.all(others.map(({ connection }) => selectOne(connection)));
    await keepAwake();
    const besideAwake = await measureWakes(one);
    const rows = [
      ['alone', alone],
      [`${asleep} asleep`, besideSleepers],
      [`${awake} awake`, besideAwake],
    ];
    printTable('One wake until the first row (ms)', rows, 'alone');
    const peer = { peer: alone, beside: 'a wake alone', unit: 'ms', atMost: 1.2 };
    keep({ what: `wake with ${asleep} asleep`, ours: besideSleepers, ...peer });
    keep({ what: `wake with ${awake} awake`, ours: besideAwake, ...peer });
  } finally {
    await catnap.stop();
  }
}

async function measureWakes({ connection, suspend }) {
  const found = [];
  for (let i = 0; i < wakes; i++) {
    await suspend();
    await pause(settleMs);
    found.push(await timed(() => selectOne(connection)));
  }
  return found;
}

async function compareAtOnce(catnap, computes) {
  const build = await findBuild(catnap.home);
  const servers = [];
  for (let i = 0; i < crowd; i++) {
    const [sockets, directory] = [join(catnap.home, `bench-sockets-${i}`), join(catnap.home, `bench-data-${i}`)];
    await prepareSocketDirectory(sockets);
    await copyTemplate(build, directory);
    servers.push([build, directory, sockets]);
  }
  const [bare, ours] = [[], []];
  const bareName = `bare: ${crowd} starts at once, each until SELECT 1`;
  for (let turn = 0; turn < repeats; turn++) {
    let stops;
    bare.push(await timed(async () => (stops = await Promise.all(servers.map((server) => startBare(...server))))));
    await Promise.all(stops.map((stop) => stop()));
    await Promise.all(computes.map(({ suspend }) => suspend()));
    await pause(settleMs);
    ours.push(await timed(() => Promise.all(computes.map(({ connection }) => selectOne(connection)))));
  }
  const rows = [
    [bareName, bare],
    [`Catnap: ${crowd} wakes at once, each until SELECT 1`, ours],
  ];
  printTable('Many at once (ms until the last one)', rows, bareName);
  const beside = 'as many bare starts at once';
  keep({ what: `${crowd} wakes at once, until the last row`, unit: 'ms', ours, peer: bare, beside, atMost: 1.5 });
}
