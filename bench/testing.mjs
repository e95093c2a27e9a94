/**
 * What a test file waits for with `catnap/testing`: from `freshBranch` until its first row, made on request and taken
 * from a stock of two while other tests run. The parent has 100,000 rows and is awake. On the filesystem of the
 * temporary directory, and as root on an XFS image too. BENCH_TESTING_ON (plain,xfs), BENCH_TESTING_REPEATS (15) and
 * BENCH_TESTING_FILE_MS (1000), how long a test file takes, choose others.
 */
import { ask, places, selectOne, withCatnapOn } from './catnap.mjs';
import { keep } from './measures.mjs';
import { printTable } from './stats.mjs';

const usual = process.getuid() === 0 ? places.join(',') : 'plain';
const chosen = (process.env.BENCH_TESTING_ON ?? usual).split(',');
const repeats = Number(process.env.BENCH_TESTING_REPEATS ?? 15);
const fileMs = Number(process.env.BENCH_TESTING_FILE_MS ?? 1_000);
const imageGb = 8;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchTesting() {
  for (const place of chosen) await withCatnapOn(place, imageGb, (catnap) => measureOn(place, catnap));
}

async function measureOn(place, catnap) {
  // After the build, which `run.mjs` makes first.
  const { freshBranch, stockBranches } = await import('../bin/testing.mjs');
  const project = { default_endpoint_settings: { suspend_timeout_seconds: -1 } };
  const made = await catnap.api('POST', '/projects', { project });
  const connectionString = made.connection_uris[0].connection_uri;
  await ask({ connectionString }, 'create table t as select n, md5(n::text) from generate_series(1, 100000) n');
  const access = { apiUrl: `http://127.0.0.1:${catnap.httpPort}`, apiKey: catnap.key };
  const on = place === 'xfs' ? ' on XFS' : '';
  const turn = async (given, whole) => {
    const startedAt = performance.now();
    const branch = await freshBranch(access);
    given.push(performance.now() - startedAt);
    await selectOne({ connectionString: branch.uri });
    whole.push(performance.now() - startedAt);
    await pause(fileMs);
    await branch.remove();
  };
  const [onRequest, onRequestRow, fromStock, fromStockRow] = [[], [], [], []];
  for (let i = 0; i < repeats; i++) await turn(onRequest, onRequestRow);
  const stock = await stockBranches(access);
  for (let i = 0; i < repeats; i++) await turn(fromStock, fromStockRow);
  await stock.close();
  const what = `a fresh branch until its first row${on}`;
  keep({ what: `${what}, made on request`, unit: 'ms', ours: onRequestRow });
  keep({ what: `${what}, from a stock of two`, unit: 'ms', ours: fromStockRow, atMost: 100 });
  printTable(`Fresh branches of 100,000 rows${on}, a test file of ${fileMs} ms after each (ms)`, [
    ['made on request: freshBranch', onRequest],
    ['made on request: until SELECT 1 has answered', onRequestRow],
    ['from a stock of two: freshBranch', fromStock],
    ['from a stock of two: until SELECT 1 has answered', fromStockRow],
  ]);
}
