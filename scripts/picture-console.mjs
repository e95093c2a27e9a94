/**
 * `npm run pictures`: takes pictures of the console over what `npm run demo` makes. With a folder, of every page and
 * dialog, light and dark, wide and on a phone, and sheets with many of them to look through. With `--docs`, those of
 * `docs/images`, and a walk of twenty seconds as one picture that moves.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { withCatnapOn } from '../bench/catnap.mjs';
import { openDemo } from './demo/client.mjs';
import { animate } from './pictures/animated-png.mjs';
import { go, openBrowser, signedIn } from './pictures/browse.mjs';
import { keepBusy, waitForGraphs } from './pictures/busy.mjs';
import { placesOf } from './pictures/places.mjs';
import { decode, encode } from './pictures/png.mjs';
import { makeSheets } from './pictures/sheets.mjs';
import { walk } from './pictures/walk.mjs';

const usage = `npm run pictures -- [FOLDER] [--docs] [--own] [--only WORDS]

  FOLDER     every page and dialog goes there
  --docs     writes the pictures of docs/images
  --own      starts a Catnap of its own on XFS, fills it, and removes it; otherwise the one that runs is used
  --only     places whose names have one of these words, separated by commas
  --api-url  where Catnap listens (default: http://localhost:7070, or the port in CATNAP_HTTP_PORT)
  --api-key  a personal key (default: the one that \`catnap keys show\` prints)
  --browser  path of a Chromium (default: /usr/bin/chromium)`;

const wide = { width: 1440, height: 900 };
/** High enough for all branches of the shop. */
const high = { width: 1440, height: 1060 };
const phone = { width: 390, height: 844 };
const themes = ['light', 'dark'];
const docs = [
  { file: 'console.png', place: 'dashboard', shape: high, theme: 'light' },
  { file: 'console-dark.png', place: 'dashboard', shape: high, theme: 'dark' },
  { file: 'console-phone.png', place: 'dashboard', shape: phone, theme: 'light' },
  { file: 'console-sql.png', place: 'sql', shape: wide, theme: 'light' },
  { file: 'console-monitoring.png', place: 'monitoring', shape: wide, theme: 'light' },
];
const gigabytesOfDemo = 25;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    docs: { type: 'boolean' },
    own: { type: 'boolean' },
    only: { type: 'string' },
    'api-url': { type: 'string' },
    'api-key': { type: 'string' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    help: { type: 'boolean', short: 'h' },
  },
});
const [folder] = positionals;
if (values.help) console.log(usage);
else if (folder === undefined && !values.docs) {
  console.error(`pictures: name a folder, or --docs\n\n${usage}`);
  process.exitCode = 1;
} else if (values.own) await withCatnapOn('xfs', gigabytesOfDemo, takeOverOwn);
else await takeAll({ url: values['api-url'], key: values['api-key'] });

async function takeOverOwn({ httpPort, key }) {
  const url = `http://localhost:${httpPort}`;
  const demo = fileURLToPath(new URL('demo.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [demo, '--api-url', url, '--api-key', key], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the demo could not be made');
  await takeAll({ url, key });
}

async function takeAll(access) {
  const demo = await openDemo(access);
  const places = await placesOf(demo);
  const { projects } = await demo.api('GET', '/projects?search=shop');
  const shopId = projects.find(({ name }) => name === 'shop').id;
  const end = await keepBusy(demo, shopId);
  const browser = await openBrowser(values.browser);
  try {
    if (folder !== undefined) await takeEveryPlace(browser, demo, places);
    if (values.docs) {
      await waitForGraphs(demo, shopId);
      await takeDocs(browser, demo, places);
    }
  } finally {
    await browser.close();
    await end();
  }
}

async function takeEveryPlace(browser, demo, places) {
  mkdirSync(folder, { recursive: true });
  const words = values.only?.split(',');
  const wanted = places.filter(([name]) => words?.some((word) => name.includes(word)) ?? true);
  for (const shape of [wide, phone]) {
    const page = await signedIn(browser, demo, shape);
    for (const place of wanted) await takeBothThemes(page, place, shape);
    await page.context().clearCookies();
    if (words === undefined) await takeBothThemes(page, ['sign-in', '/'], shape);
    await page.context().close();
    for (const theme of themes) {
      const ending = `-${shape.width}-${theme}.png`;
      const files = readdirSync(folder).filter((file) => file.endsWith(ending) && !file.startsWith('sheet-'));
      const [columns, rows] = shape === wide ? [2, 3] : [5, 2];
      const sheet = { folder, name: `${shape.width}-${theme}`, columns, rows };
      await makeSheets(
        browser,
        files.map((file) => join(folder, file)),
        sheet,
      );
    }
  }
}

/** The place is made once and looked at twice. */
async function takeBothThemes(page, place, { width }) {
  await page.emulateMedia({ colorScheme: 'light' });
  await go(page, place);
  for (const colorScheme of themes) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${place[0]}-${width}-${colorScheme}.png`) });
  }
}

async function takeDocs(browser, demo, places) {
  const images = fileURLToPath(new URL('../docs/images/', import.meta.url));
  for (const { file, place, shape, theme } of docs) {
    const page = await signedIn(browser, demo, { ...shape, colorScheme: theme });
    await go(
      page,
      places.find(([name]) => name === place),
    );
    writeFileSync(join(images, file), encode(decode(await page.screenshot())));
    await page.context().close();
  }
  const page = await signedIn(browser, demo, { width: 1120, height: 700 });
  writeFileSync(join(images, 'console-walk.png'), animate(await walk(page)));
  await page.context().close();
}
