/**
 * The console in Chromium over the data of `npm run demo`: how long until a page can be used, how much script it loads,
 * how long rows take to be drawn, what scrolling 100,000 rows of 50 columns costs, and how soon a page is back after an
 * outage. As root, because the demo's branches want an XFS image. BENCH_CONSOLE_REPEATS (7), BENCH_CONSOLE_BRANCHES
 * (188) and BENCH_CONSOLE_BROWSER (/usr/bin/chromium) choose otherwise.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { openDemo } from '../scripts/demo/client.mjs';
import { openBrowser, signedIn } from '../scripts/pictures/browse.mjs';
import { waitForGraphs } from '../scripts/pictures/busy.mjs';
import { startCatnap, withCatnapOn } from './catnap.mjs';
import { bigResult, pagesOf, rowsDrawn, scroll, watchPage } from './console-page.mjs';
import { keep } from './measures.mjs';
import { printTable } from './stats.mjs';

const repeats = Number(process.env.BENCH_CONSOLE_REPEATS ?? 7);
const branches = process.env.BENCH_CONSOLE_BRANCHES ?? '188';
const chromium = process.env.BENCH_CONSOLE_BROWSER ?? '/usr/bin/chromium';
const gigabytesOfDemo = 25;
const screen = { width: 1440, height: 900 };
const scriptKbMax = 150;
const backMsMax = 2_000;
const outageMs = 3_000;
const offline = /^Catnap does not answer/;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchConsole() {
  if (process.getuid() !== 0) return console.log('\nConsole: not measured here: only root can mount an XFS image');
  if (!existsSync(chromium)) return console.log(`\nConsole: not measured here: there is no ${chromium}`);
  await withCatnapOn('xfs', gigabytesOfDemo, async (catnap) => {
    const url = `http://localhost:${catnap.httpPort}`;
    fillWithDemo(url, catnap.key);
    const demo = await openDemo({ url, key: catnap.key });
    const browser = await openBrowser(chromium);
    try {
      await measurePages(browser, demo);
      await measureRows(browser, demo);
      await measureOutages(browser, demo, catnap);
    } finally {
      await browser.close();
    }
  });
}

function fillWithDemo(url, key) {
  const script = fileURLToPath(new URL('../scripts/demo.mjs', import.meta.url));
  const args = [script, '--api-url', url, '--api-key', key, '--branches', branches];
  if (spawnSync(process.execPath, args, { stdio: 'ignore' }).status !== 0)
    throw new Error('the demo could not be made');
}

/** Cold is a visitor whose browser has nothing of the console yet; warm is the same page once more. */
async function measurePages(browser, demo) {
  const rows = [];
  const wake = await wakerOf(demo);
  await waitForGraphs(demo, wake.projectId);
  for (const { name, path, ready } of await pagesOf(demo)) {
    const [cold, warm, script, library] = [[], [], [], []];
    for (let turn = 0; turn < repeats; turn += 1) {
      await wake.run();
      const { context, page } = await newVisitor(browser, demo);
      const first = await watchPage(page, path, ready);
      const second = await watchPage(page, path, ready);
      cold.push(first.interactive);
      warm.push(second.interactive);
      script.push(first.scriptBytes / 1_000);
      library.push(first.libraryBytes / 1_000);
      await context.close();
    }
    keep({ what: `${name}, first visit until it can be used`, unit: 'ms', ours: cold });
    keep({ what: `${name}, later visits`, unit: 'ms', ours: warm });
    keep({ what: `${name}, own script as it is sent`, unit: 'KB', ours: script, atMost: scriptKbMax });
    if (Math.max(...library) > 0) {
      keep({ what: `${name}, libraries of its editor as they are sent`, unit: 'KB', ours: library });
      rows.push([`${name}: libraries (KB)`, library]);
    }
    rows.push([`${name}: cold (ms)`, cold], [`${name}: warm (ms)`, warm], [`${name}: own script (KB)`, script]);
  }
  await wake.end();
  printTable('Pages of the console', rows);
}

/**
 * Pages that ask a compute are measured with one that is awake: a wake has a benchmark of its own. Its client stays in
 * a transaction, so that there is a session to list: one that is merely idle is not shown.
 */
async function wakerOf(demo) {
  const { projects } = await demo.api('GET', '/projects?search=shop');
  const { id: projectId } = projects.find(({ name }) => name === 'shop');
  const main = (await demo.branchesOf(projectId)).find((branch) => branch.default);
  const uri = await demo.uriOf(projectId, main.id);
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => undefined);
  await client.connect();
  await client.query('begin');
  return { projectId, run: () => client.query('select 1'), end: () => client.end() };
}

/** Signed in, with a cookie and without a cache: the sign-in itself was in another context. */
async function newVisitor(browser, demo) {
  const door = await signedIn(browser, demo, screen);
  const { cookies } = await door.context().storageState();
  await door.context().close();
  const context = await browser.newContext({ baseURL: demo.url, viewport: screen, locale: 'en-US' });
  context.setDefaultTimeout(60_000);
  await context.addCookies(cookies);
  return { context, page: await context.newPage() };
}

async function measureRows(browser, demo) {
  const { context, page } = await newVisitor(browser, demo);
  const path = `${(await pagesOf(demo)).find(({ name }) => name === 'SQL editor').path}`;
  const drawn = { small: [], wide: [] };
  for (let turn = 0; turn < repeats; turn += 1) {
    drawn.small.push(await rowsDrawn(page, path, 'select * from orders', '1000'));
    drawn.wide.push(await rowsDrawn(page, path, 'select * from measurements', '10000'));
  }
  keep({ what: '1,000 rows on the screen after the answer', unit: 'ms', ours: drawn.small });
  keep({ what: '10,000 rows of 51 columns on the screen after the answer', unit: 'ms', ours: drawn.wide });
  await bigResult(page, path);
  const found = [];
  for (let turn = 0; turn < repeats; turn += 1) found.push(await scroll(page));
  const of = (pick) => found.map(pick);
  const what = 'scrolling 100,000 rows of 50 columns';
  keep({ what: `${what}, long tasks in a second`, unit: 'ms', ours: of(({ longTaskMs }) => longTaskMs), atMost: 50 });
  keep({ what: `${what}, slowest frame of twenty`, unit: 'ms', ours: of(({ slowFrameMs }) => slowFrameMs) });
  printTable('Rows (ms)', [
    ['1,000 rows drawn after the answer', drawn.small],
    ['10,000 x 51 drawn after the answer', drawn.wide],
    ['long tasks in a second of 100,000 x 50', of(({ longTaskMs }) => longTaskMs)],
    ['slowest frame of twenty', of(({ slowFrameMs }) => slowFrameMs)],
  ]);
  await context.close();
}

/**
 * From the first answer of the server until the page shows what only that server could tell it: an operation on a page
 * that was opened during the outage, and so has nothing to show.
 */
async function measureOutages(browser, demo, catnap) {
  const { context, page } = await newVisitor(browser, demo);
  const { projects } = await demo.api('GET', '/projects?search=shop');
  const shop = projects.find(({ name }) => name === 'shop');
  const env = { CATNAP_HOME: catnap.home, CATNAP_HTTP_PORT: catnap.httpPort };
  const [kept, opened] = [[], []];
  for (let turn = 0; turn < 2 * repeats; turn += 1) {
    const isOpened = turn % 2 === 1;
    await page.goto(`/projects/${shop.id}/settings`);
    await page.getByLabel('Name of the project').waitFor();
    await catnap.stop();
    await page.getByText(offline).waitFor();
    if (isOpened) await page.getByRole('link', { name: 'Operations', exact: true }).click();
    await pause(outageMs);
    const started = startCatnap(env);
    await firstAnswer(demo.url);
    const answeredAt = performance.now();
    if (isOpened) await page.getByRole('cell', { name: 'finished' }).first().waitFor();
    await page.getByText(offline).waitFor({ state: 'detached' });
    (isOpened ? opened : kept).push(performance.now() - answeredAt);
    // Whoever started the first one stops this one.
    catnap.stop = (await started).stop;
  }
  keep({ what: 'a page that was open, back after an outage', unit: 'ms', ours: kept, atMost: backMsMax });
  keep({ what: 'a page that was opened in an outage, there after it', unit: 'ms', ours: opened, atMost: backMsMax });
  printTable('After an outage (ms)', [
    ['a page that was open', kept],
    ['a page that was opened in it', opened],
  ]);
  await context.close();
}

async function firstAnswer(url) {
  for (;;) {
    const reply = await fetch(`${url}/console/session`).catch(() => null);
    if (reply !== null && reply.status < 500) return;
    await pause(20);
  }
}
