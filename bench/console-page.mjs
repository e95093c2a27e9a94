/** What the benchmark of the console asks of a page: when it can be used, what it has loaded, and how it scrolls. */

const quietMs = 300;
const readyMsMax = 60_000;
const scrollMs = 3_000;
const bigRows = 100_000;
const bigColumns = 50;
/** Many rows come by a second request, line by line. */
const sqlAnswer = /\/sql(\/export)?(\?|$)/;
const seconds = (ms) => ms / 1_000;

/** The main pages, with what must be there before one is of use. */
export async function pagesOf(demo) {
  const { projects } = await demo.api('GET', '/projects?limit=400');
  const pathOf = (wanted) => `/projects/${projects.find(({ name }) => name === wanted).id}`;
  const [shop, monorepo, members] = ['shop', 'monorepo', 'members'].map(pathOf);
  const main = (await demo.branchesOf(shop.split('/')[2])).find((branch) => branch.default);
  return [
    { name: 'Projects', path: '/', ready: '.project-card' },
    { name: 'Dashboard', path: shop, ready: '.branch-line' },
    { name: 'Dashboard of many branches', path: monorepo, ready: '.branch-line' },
    { name: 'Branch', path: `${shop}/branches/${main.id}`, ready: '.time-line' },
    { name: 'SQL editor', path: `${shop}/sql`, ready: '.cm-content' },
    { name: 'Tables', path: `${shop}/tables?table=public.orders`, ready: '[role=gridcell]' },
    { name: 'Diagram', path: `${shop}/tables?table=public.orders&view=diagram`, ready: '.diagram' },
    { name: 'Monitoring', path: `${shop}/monitoring`, ready: '.uplot canvas' },
    { name: 'Sessions', path: `${shop}/monitoring?view=sessions`, ready: 'tbody tr' },
    { name: 'Roles and databases', path: `${shop}/data`, ready: 'tbody tr' },
    { name: 'Auth', path: `${members}/auth`, ready: 'tbody tr' },
    { name: 'Operations', path: `${shop}/operations`, ready: 'tbody tr' },
    { name: 'Settings', path: `${shop}/settings`, ready: 'form input' },
  ];
}

/**
 * Loads it anew. It can be used when what it is for is drawn, nothing is a placeholder any more, and the last long task
 * has ended; in milliseconds since the navigation began. The libraries of the SQL editor are counted apart.
 */
export async function watchPage(page, path, ready) {
  await page.goto('about:blank');
  await page.addInitScript(`(() => {
    if (globalThis.longTasks) return;
    globalThis.longTasks = [];
    new PerformanceObserver((list) => longTasks.push(...list.getEntries()))
      .observe({ type: 'longtask', buffered: true });
  })()`);
  await page.goto(path, { waitUntil: 'commit' });
  const missing = JSON.stringify(`${path} has no ${ready}`);
  return page.evaluate(
    `new Promise((resolve, reject) => {
      let readyAt;
      const endOf = ({ startTime, duration }) => startTime + duration;
      const look = () => {
        const now = performance.now();
        const isReady = document.querySelector(${JSON.stringify(ready)}) && !document.querySelector('.skeleton');
        readyAt = isReady ? (readyAt ?? now) : undefined;
        if (readyAt === undefined && now > ${readyMsMax}) return reject(new Error(${missing}));
        const interactive = Math.max(readyAt ?? now, ...longTasks.map(endOf));
        if (now - interactive < ${quietMs}) return requestAnimationFrame(look);
        const scripts = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'));
        const sizeOf = (some) => some.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
        const libraries = scripts.filter(({ name }) => name.includes('/editor-libraries-'));
        const libraryBytes = sizeOf(libraries);
        resolve({ interactive, libraryBytes, scriptBytes: sizeOf(scripts) - libraryBytes });
      };
      look();
    })`,
  );
}

/** Runs a statement, and returns the milliseconds from the end of the server's answer until its rows are drawn. */
export async function rowsDrawn(page, path, statement, limit) {
  await page.goto(path);
  await writeQuery(page, statement, limit);
  // Not waited for: its end comes after the key.
  await page.evaluate(`void (globalThis.drawn = new Promise((resolve) => {
    performance.clearResourceTimings();
    const look = () => {
      if (!document.querySelector('[role=gridcell]')) return requestAnimationFrame(look);
      const answers = performance.getEntriesByType('resource').filter(({ name }) => ${sqlAnswer}.test(name));
      resolve(performance.now() - Math.max(...answers.map(({ responseEnd }) => responseEnd)));
    };
    look();
  }))`);
  await page.keyboard.press('Control+Enter');
  return page.evaluate('drawn');
}

/** Leaves the grid with 100,000 rows of 50 columns. */
export async function bigResult(page, path) {
  await page.goto(path);
  const columns = Array.from({ length: bigColumns - 1 }, (_, index) => `n * ${index + 1} as c${index + 1}`);
  await writeQuery(page, `select n as id, ${columns.join(', ')} from generate_series(1, ${bigRows}) n`, '0');
  await page.keyboard.press('Control+Enter');
  await page.getByText(/^100,000 rows/).waitFor({ timeout: 120_000 });
}

async function writeQuery(page, statement, limit) {
  await page.getByLabel('Rows', { exact: true }).selectOption(limit);
  await page.getByLabel('SQL', { exact: true }).fill(statement);
}

/** Three seconds: down, then to the right and back, and to the end of it all in one jump. */
export async function scroll(page) {
  const { longMs, frames } = await page.evaluate(`new Promise((resolve) => {
    const grid = document.querySelector('[role=grid]');
    let longMs = 0;
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longMs += duration;
    });
    observer.observe({ type: 'longtask' });
    grid.scrollTo(0, 0);
    const frames = [];
    const begin = performance.now();
    let before = begin;
    const step = (now) => {
      frames.push(now - before);
      before = now;
      const share = (now - begin) / ${scrollMs};
      if (share > 1) return setTimeout(() => { observer.disconnect(); resolve({ longMs, frames }); }, 100);
      if (share > 0.9) grid.scrollTo(0, grid.scrollHeight);
      else grid.scrollBy(share < 0.5 ? 0 : share < 0.7 ? 60 : -60, 400);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  })`);
  const sorted = [...frames].sort((a, b) => a - b);
  return { longTaskMs: longMs / seconds(scrollMs), slowFrameMs: sorted[Math.floor(sorted.length * 0.95)] };
}
