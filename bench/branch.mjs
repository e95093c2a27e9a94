/**
 * From the POST that makes a branch to its first row, on an XFS image that `catnap storage create` made, for parents of
 * several sizes, quiet and written to by pgbench; beside `cp --reflink` of the same directory in the same run. As root.
 * BENCH_BRANCH_SIZES (100M,1G,10G) and BENCH_BRANCH_REPEATS (7) choose less; 10G wants 30 GB of free disk.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runCatnap, selectOne, withCatnapOn } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable, summarize, timed } from './stats.mjs';

const run = promisify(execFile);
const repeats = Number(process.env.BENCH_BRANCH_REPEATS ?? 7);
/**
 * pgbench's scale and how full it makes its pages, and the free disk that the image wants. The largest has the rows of
 * the middle one in ten times the pages, which takes a tenth of the time to make and none less to copy.
 */
const sizes = {
  '100M': { scale: 5, fill: 100, freeGb: 6 },
  '1G': { scale: 66, fill: 100, freeGb: 10 },
  '10G': { scale: 72, fill: 10, freeGb: 30 },
};
/** A quarter of a core would be too slow to fill the parent; the branches have the default size. */
const [parentCu, childCu] = [2, 0.25];
const sizeOf = (cu) => ({ autoscaling_limit_min_cu: cu, autoscaling_limit_max_cu: cu });
const cpName = 'cp -a --reflink=always of the directory';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchBranch() {
  const problem = await whyNot();
  if (problem !== null) return console.log(`\nBranches: not measured here: ${problem}`);
  const { bsize, bavail } = await statfs(tmpdir());
  const freeGb = (bsize * bavail) / 1e9;
  const asked = (process.env.BENCH_BRANCH_SIZES ?? Object.keys(sizes).join(',')).split(',');
  const found = {};
  for (const name of asked) {
    if (sizes[name] === undefined) throw new Error(`BENCH_BRANCH_SIZES: ${name} is none of ${Object.keys(sizes)}`);
    if (freeGb < sizes[name].freeGb) console.log(`\nBranches of ${name}: left out, ${freeGb.toFixed(0)} GB are free`);
    else found[name] = await inNewHome(sizes[name], (context) => measureSize(name, context));
  }
  judge(found);
}

async function whyNot() {
  if (process.getuid() !== 0) return 'only root can mount an XFS image';
  const works = (command) => spawnSync('sh', ['-c', `PATH=$PATH:/usr/sbin:/sbin; ${command}`]).status === 0;
  if (!works('command -v mkfs.xfs && command -v filefrag')) return 'xfsprogs and e2fsprogs must be installed';
  // Debian has a wrapper of that name without the program.
  return works('pgbench --version') ? null : 'pgbench is not installed (Debian: apt install postgresql-contrib)';
}

function inNewHome({ scale, fill, freeGb }, work) {
  return withCatnapOn('xfs', Math.floor(freeGb * 0.8), async (catnap) => {
    const made = await catnap.api('POST', '/projects', {
      project: { default_endpoint_settings: { ...sizeOf(parentCu), suspend_timeout_seconds: -1 } },
    });
    const uri = made.connection_uris[0].connection_uri;
    // Frozen while they are copied in, so that no vacuum has to write every page a second time.
    await run('pgbench', ['-i', '-q', '-I', 'dtgp', '-F', String(fill), '-s', String(scale), uri]);
    const { home } = catnap;
    await run('sync', ['-f', join(home, 'storage')]);
    return await work({ catnap, home, uri, projectId: made.project.id, branchId: made.branch.id });
  });
}

async function measureSize(name, context) {
  const quiet = await measureSeries(context);
  const tpsAlone = await withPgbench(context.uri, () => pause(8_000));
  let loaded;
  const tpsDuring = await withPgbench(context.uri, async () => (loaded = await measureSeries(context)));
  const mb = (bytes) => (bytes / 2 ** 20).toFixed(1);
  const gb = { '100M': 0.1, '1G': 1, '10G': 10 }[name];
  keep({
    what: 'branch until its first row',
    at: gb,
    of: 'GB of data',
    unit: 'ms',
    ours: quiet.first,
    peer: quiet.cp,
    beside: 'cp --reflink alone',
  });
  if (gb === 1) keep({ what: 'branch of 1 GB until its first row, in ms', unit: 'ms', ours: quiet.first, atMost: 150 });
  const parent = `${name} parent of ${mb(quiet.parentBytes)} MiB`;
  printTable(`Branch of a ${parent}, quiet (ms)`, rowsOf(quiet), cpName);
  printTable(`Branch of a ${parent} under pgbench -c 4 (ms)`, rowsOf(loaded), cpName);
  console.log(`  parent: ${tpsAlone} tps alone, ${tpsDuring} tps while branches are made and started`);
  console.log(`  space of its own (MiB): ${mb(quiet.ownBefore)} before, ${mb(quiet.ownAfter)} after the first start`);
  return { first: summarize(quiet.first).median, ownBefore: quiet.ownBefore, ownAfter: quiet.ownAfter };
}

const rowsOf = ({ cp, reply, copy, first }) => [
  [cpName, cp],
  ['Catnap: the reply to POST …/branches', reply],
  ['Catnap: the copy itself (its receipt)', copy],
  ['Catnap: until SELECT 1 has answered', first],
];

async function measureSeries(context) {
  const { catnap, home, projectId, branchId } = context;
  const path = `/projects/${projectId}/branches`;
  const series = { cp: [], reply: [], copy: [], first: [], parentBytes: 0, ownBefore: 0, ownAfter: 0 };
  const source = join(home, 'storage', 'projects', projectId, 'branches', branchId, 'pgdata');
  for (let i = 0; i < repeats; i++) {
    const copy = join(home, 'storage', 'work', 'peer');
    // Under load files vanish while it copies; it goes on with the others.
    series.cp.push(await timed(() => run('cp', ['-a', '--reflink=always', source, copy]).catch(() => undefined)));
    await rm(copy, { recursive: true });
    const startedAt = performance.now();
    const made = await catnap.api('POST', path, {
      branch: { parent_id: branchId },
      endpoints: [{ type: 'read_write', ...sizeOf(childCu) }],
    });
    series.reply.push(performance.now() - startedAt);
    await selectOne({ connectionString: made.connection_uris[0].connection_uri });
    series.first.push(performance.now() - startedAt);
    const { branch } = await catnap.api('GET', `${path}/${made.branch.id}`);
    series.copy.push(branch.receipt.duration_ms);
    series.parentBytes = branch.receipt.bytes_shared + branch.receipt.bytes_copied;
    if (i === 0) series.ownAfter = await ownBytes(home, branch.id);
    await removeBranch(catnap, path, branch.id);
  }
  const { branch } = await catnap.api('POST', path, { branch: { parent_id: branchId } });
  while ((await catnap.api('GET', `${path}/${branch.id}`)).branch.current_state !== 'ready') await pause(10);
  series.ownBefore = await ownBytes(home, branch.id);
  await removeBranch(catnap, path, branch.id);
  return series;
}

async function ownBytes(home, branchId) {
  await run('sync', ['-f', join(home, 'storage')]);
  const { branches } = JSON.parse(runCatnap(home, ['storage', 'status', '--json']));
  const { bytes, shared } = branches.find((use) => use.branch === branchId);
  return bytes - shared;
}

async function removeBranch(catnap, path, id) {
  await catnap.api('DELETE', `${path}/${id}?hard_delete=true`);
  const listed = async () => (await catnap.api('GET', path)).branches.some((branch) => branch.id === id);
  const busy = async () =>
    (await catnap.api('GET', `${path.replace('/branches', '/operations')}`)).operations.some((operation) =>
      ['scheduling', 'running', 'failed'].includes(operation.status),
    );
  while ((await listed()) || (await busy())) await pause(20);
}

/** Runs pgbench while the work lasts, and returns its transactions a second. */
async function withPgbench(uri, work) {
  const child = spawn('pgbench', ['-n', '-c', '4', '-T', '3600', '-P', '1', uri], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const tps = [];
  child.stderr.on('data', (chunk) => {
    for (const [, rate] of String(chunk).matchAll(/progress: [\d.]+ s, ([\d.]+) tps/g)) tps.push(Number(rate));
  });
  await pause(1_500);
  tps.length = 0;
  await work();
  child.kill('SIGINT');
  await once(child, 'exit');
  return tps.length === 0 ? 0 : Math.round(tps.reduce((sum, rate) => sum + rate, 0) / tps.length);
}

function judge(found) {
  const line = (what, value, target, unit) =>
    console.log(
      `  ${value <= target ? 'met   ' : 'MISSED'} ${what}: ${value.toFixed(1)} ${unit}, at most ${target.toFixed(1)}`,
    );
  console.log('\nTargets');
  const { '1G': one, '10G': ten } = found;
  if (one) line('quiet 1G until the first row', one.first, 300, 'ms');
  if (one && ten) line('quiet 10G, against four times 1G', ten.first, 4 * one.first, 'ms');
  for (const [name, { ownBefore, ownAfter }] of Object.entries(found)) {
    line(`space of a branch of ${name} before its first start`, ownBefore / 2 ** 20, 5, 'MiB');
    line(`space of a branch of ${name} after its first start`, ownAfter / 2 ** 20, 40, 'MiB');
  }
}
