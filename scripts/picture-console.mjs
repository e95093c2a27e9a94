/**
 * Takes pictures of every page of the console, and of its dialogs, over a Catnap that `npm run demo` has filled: light
 * and dark, wide and on a phone. Call it with the folder that the pictures go to, and `--only WORD` for some of them;
 * with `--walk` it makes one picture that moves, `walk.png`, instead.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { animate } from './demo/animated-png.mjs';
import { openDemo } from './demo/client.mjs';

const shapes = [
  { width: 1440, height: 900, colorScheme: 'light' },
  { width: 1440, height: 900, colorScheme: 'dark' },
  { width: 390, height: 844, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'api-url': { type: 'string' },
    'api-key': { type: 'string' },
    only: { type: 'string' },
    walk: { type: 'boolean' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
  },
});
const folder = positionals[0];
if (folder === undefined) throw new Error('name the folder that the pictures go to');
mkdirSync(folder, { recursive: true });

const demo = await openDemo({ url: values['api-url'], key: values['api-key'] });
const ids = Object.fromEntries(
  (await demo.api('GET', '/projects?limit=400')).projects.map(({ name, id }) => [name, id]),
);
const shop = `/projects/${ids.shop}`;
const branches = await demo.branchesOf(ids.shop);
const branchPath = (name) => `${shop}/branches/${branches.find((branch) => branch.name === name).id}`;

const press = (name) => (page) => page.getByRole('button', { name, exact: true }).first().click();
const menu = (of, item) => async (page) => {
  await press(`Actions of ${of}`)(page);
  if (item !== undefined) await page.getByRole('menuitem', { name: item, exact: true }).click();
};
const run = (text) => async (page) => {
  await page.getByLabel('SQL', { exact: true }).fill(text);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('gridcell').nth(3).click();
};
const bestCustomers = `select c.name, c.country, count(*) as orders, sum(o.total) as spent
from customers c join orders o on o.customer_id = c.id
group by c.id order by spent desc`;

/** A name, where it is, and what is done there before the picture. */
const places = [
  ['projects', '/'],
  ['new-project', '/', press('New project')],
  ['dashboard', shop],
  ['dashboard-188', `/projects/${ids.monorepo}`],
  ['branch-menu', shop, menu('main')],
  ['edit-compute', shop, menu('main', 'Edit compute')],
  ['new-branch', shop, press('New branch')],
  ['connect', `${shop}?connect=default`],
  ['palette', shop, (page) => openPalette(page)],
  ['branch', branchPath('main')],
  ['restore', branchPath('staging'), press('Reset or restore')],
  ['delete-branch', branchPath('staging'), press('Delete')],
  ['sql', `${shop}/sql`, run(bestCustomers)],
  ['sql-wide', `${shop}/sql`, run('select * from measurements')],
  ['sql-error', `${shop}/sql`, (page) => failing(page)],
  ['sql-help', `${shop}/sql`, press('Keyboard')],
  ['tables', `${shop}/tables?table=public.orders`],
  ['structure', `${shop}/tables?table=public.orders&view=structure`],
  ['diagram', `${shop}/tables?table=public.orders&view=diagram`],
  ['monitoring', `${shop}/monitoring`],
  ['sessions', `${shop}/monitoring?view=sessions`],
  ['queries', `${shop}/monitoring?view=queries`],
  ['locks', `${shop}/monitoring?view=locks`],
  ['log', `${shop}/monitoring?view=log`],
  ['extensions', `${shop}/monitoring?view=extensions`],
  ['data', `${shop}/data`],
  ['auth', `/projects/${ids.members}/auth`],
  ['auth-keys', `/projects/${ids.members}/auth?view=keys`],
  ['operations', `${shop}/operations`],
  ['settings', `${shop}/settings`],
  ['delete-project', `${shop}/settings`, press('Delete project')],
  ['keys', '/keys'],
  ['new-key', '/keys', press('New key')],
  ['organization', '/organization'],
  ['deleted', '/deleted'],
  ['about', '/about'],
  ['not-found', '/nowhere'],
  ['api-reference', '/api/v2/docs'],
  ['auth-provider', '/stack/dashboard'],
];

async function openPalette(page) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').waitFor();
}

async function failing(page) {
  await page.getByLabel('SQL', { exact: true }).fill('select nmae from customers');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('alert').first().waitFor();
}

const browser = await chromium.launch({ executablePath: values.browser, args: ['--no-sandbox'] });
try {
  if (values.walk) await walk();
  else for (const shape of shapes) await takeAll(shape);
} finally {
  await browser.close();
}

async function takeAll(shape) {
  const page = await signedIn(shape);
  for (const [name, path, prepare] of places) {
    if (values.only !== undefined && !name.includes(values.only)) continue;
    const title = `${name}-${shape.width}-${shape.colorScheme}`;
    await go(page, title, path, prepare);
    await page.screenshot({ path: join(folder, `${title}.png`) });
  }
  await page.context().close();
}

/** About twenty seconds. */
async function walk() {
  const page = await signedIn({ width: 1120, height: 700, colorScheme: 'light' });
  const pictures = [];
  const stations = ['projects', 'dashboard', 'branch', 'palette', 'sql', 'sql-wide', 'tables', 'diagram', 'monitoring'];
  for (const [name, path, prepare] of stations.map((station) => places.find(([name]) => name === station))) {
    await go(page, name, path, prepare);
    pictures.push(await page.screenshot());
  }
  writeFileSync(join(folder, 'walk.png'), animate(pictures, 2.2));
  await page.context().close();
}

async function signedIn({ width, height, colorScheme }) {
  const context = await browser.newContext({
    baseURL: demo.url,
    viewport: { width, height },
    colorScheme,
    locale: 'en-US',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(`/#open=${(await demo.consoleLink()).link}`);
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  return page;
}

/** What cannot be pressed in this shape, or on this machine, is said, and the picture is taken all the same. */
async function go(page, name, path, prepare) {
  await page.goto(path);
  await page.locator('h1').first().waitFor();
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
  await prepare?.(page).catch((error) => console.log(`${name}: ${error.message.split('\n')[0]}`));
}
