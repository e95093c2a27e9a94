/**
 * Measures the console in a browser, over a Catnap of its own: how long a page takes until it can be used, with an
 * empty cache and with a full one; how much script it loads; and how long the page is blocked while somebody scrolls
 * through 100,000 rows of 50 columns. Needs a build, and Chromium. `--rounds=N` repeats each page N times.
 */
import { cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { startCatnap } from '../bench/catnap.mjs';

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    rows: { type: 'string', default: '100000' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
  },
});
const rounds = Number(given.rounds);
const columns = 50;
const scrolls = 120;
/** Not our own: libraries, which change less often and stay in the cache. */
const libraries = /\/(libraries|editor|editor-libraries|chart)-/;

/** In the page: what was fetched, with its size as it is and as it was sent. */
const loaded = `performance.getEntriesByType('resource')
  .map((one) => [one.name, one.decodedBodySize, one.encodedBodySize])`;

/** In the page: notes when its heading is there and nothing of it is a placeholder any more, and each long task. */
const watch = `
  window.measured = { usableAt: null, longTasks: [] };
  new MutationObserver(() => {
    if (window.measured.usableAt !== null) return;
    if (!document.querySelector('main h1') || document.querySelector('.skeleton')) return;
    window.measured.usableAt = performance.now();
  }).observe(document, { childList: true, subtree: true });
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) window.measured.longTasks.push([startTime, duration]);
  }).observe({ type: 'longtask', buffered: true });
`;

const catnap = await startCatnap();
const browser = await chromium.launch({
  executablePath: given.browser,
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  const baseURL = `http://localhost:${catnap.httpPort}`;
  const { project } = await catnap.api('POST', '/projects', { project: { name: 'measured' } });
  const { link } = await signedLink(baseURL);
  const cookies = await signIn(baseURL, link);
  const path = `/projects/${project.id}`;
  const pages = {
    projects: '/',
    dashboard: path,
    'SQL editor': `${path}/sql`,
    tables: `${path}/tables`,
    monitoring: `${path}/monitoring`,
    auth: `${path}/auth`,
  };
  console.log(`${rounds} rounds, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}, ${browser.version()}`);
  console.log('page | cold ms | warm ms | own script KB | all script KB | sent KB');
  for (const [name, page] of Object.entries(pages)) console.log(await measurePage(name, page, { baseURL, cookies }));
  console.log(await measureScrolling(`${path}/sql`, { baseURL, cookies }));
} finally {
  await browser.close();
  await catnap.stop();
}

async function signedLink(baseURL) {
  const reply = await fetch(`${baseURL}/console/link`, {
    method: 'POST',
    headers: { authorization: `Bearer ${catnap.key}` },
  });
  return reply.json();
}

async function signIn(baseURL, link) {
  const context = await browser.newContext({ baseURL });
  const page = await context.newPage();
  await page.goto(`/#open=${link}`);
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  const { cookies } = await context.storageState();
  await context.close();
  return cookies;
}

async function visitor({ baseURL, cookies }) {
  const context = await browser.newContext({ baseURL, viewport: { width: 1440, height: 900 }, locale: 'en-US' });
  await context.addCookies(cookies);
  await context.addInitScript(watch);
  return context;
}

async function measurePage(name, path, who) {
  const [cold, warm] = [[], []];
  let scripts = [];
  for (let round = 0; round < rounds; round += 1) {
    const context = await visitor(who);
    const page = await context.newPage();
    cold.push(await usableAfter(page, path));
    scripts = (await page.evaluate(loaded)).filter(([url]) => url.endsWith('.js'));
    warm.push(await usableAfter(page, path));
    await context.close();
  }
  const kilobytes = (list, at) => Math.round(list.reduce((sum, entry) => sum + entry[at], 0) / 1_000);
  const own = scripts.filter(([url]) => !libraries.test(url));
  return [name, median(cold), median(warm), kilobytes(own, 1), kilobytes(scripts, 1), kilobytes(scripts, 2)].join(
    ' | ',
  );
}

async function usableAfter(page, path) {
  await page.goto(path);
  await page.waitForFunction('window.measured.usableAt !== null');
  return page.evaluate('window.measured.usableAt');
}

async function measureScrolling(path, who) {
  const context = await visitor(who);
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  await page.goto(path);
  await page.getByLabel('Rows', { exact: true }).selectOption('All');
  const list = Array.from({ length: columns }, (_, n) => `n + ${n} as c${n}`).join(', ');
  await page.getByLabel('SQL', { exact: true }).fill(`select ${list} from generate_series(1, ${given.rows}) n`);
  await page.keyboard.press('Control+Enter');
  await page
    .getByText(`${Number(given.rows).toLocaleString('en')} rows`)
    .first()
    .waitFor();
  const grid = page.getByRole('grid');
  await grid.hover();
  const from = await page.evaluate('performance.now()');
  const frames = page.evaluate(`new Promise((resolve) => {
    let count = 0;
    const tick = () => { count += 1; if (!window.isScrolled) requestAnimationFrame(tick); else resolve(count); };
    requestAnimationFrame(tick);
  })`);
  for (let step = 0; step < scrolls; step += 1) await page.mouse.wheel(step % 3 === 2 ? 400 : 0, 3_000);
  const until = await page.evaluate('window.isScrolled = true, performance.now()');
  const tasks = (await page.evaluate('window.measured.longTasks')).filter(([at]) => at >= from && at <= until);
  const blocked = tasks.reduce((sum, [, duration]) => sum + duration, 0);
  const seconds = (until - from) / 1_000;
  const drawn = await frames;
  await context.close();
  return (
    `scrolling ${given.rows} × ${columns}: ${scrolls} turns of the wheel in ${seconds.toFixed(1)} s, ` +
    `${Math.round(drawn / seconds)} frames a second, ${tasks.length} long tasks of ${Math.round(blocked)} ms in all`
  );
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length / 2)]);
}
