/** Every page, and every kind of dialog: accessible, no wider than the screen, with little script. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { looksOf, violationsOf } from '../../helpers/accessibility.ts';
import {
  at,
  branchIdOf,
  button,
  newPage,
  ownProject,
  photograph,
  screenshots,
  sharedProject,
  story,
  walkTo,
} from './story.ts';

const shapes = [
  { width: 1440, height: 900, scheme: 'light' },
  { width: 1440, height: 900, scheme: 'dark' },
  { width: 390, height: 844, scheme: 'light' },
  { width: 390, height: 844, scheme: 'dark' },
] as const;
// The two that differ most; all four where pictures are wanted.
const looked = shapes.filter((_, place) => screenshots !== undefined || place === 0 || place === shapes.length - 1);

interface Place {
  readonly name: string;
  readonly path: string;
  /** What it says on top: the address changes before a page is loaded, and the one before stays until then. */
  readonly heading: string;
  /** Pressed to open a dialog. */
  readonly press?: string;
  /** Brings something onto the page that is to be looked at. */
  readonly prepare?: (page: Page) => Promise<void>;
  /** A dialog that a journey answers, which looks at it as well: here only its width matters. */
  readonly isAnswered?: true;
}

/** A word of each kind that the editor colours, and values of each kind that the grid shows. */
const colourful = `-- what people paid, by month
select n as id, 'user' || n || '@example.com' as email, n * 12.5::numeric(10, 2) as total,
  n % 3 = 0 as paid, nullif('note ' || n % 4, 'note 0') as note, timestamptz '2026-03-01' + n * interval '1 h' as at,
  jsonb_build_object('age', 20 + n % 50, 'prefs', array['mail', 'sms']) as profile, array[n, n + 1] as tags
from generate_series(1, 1500) n where n > 0`;

async function runColourful(page: Page): Promise<void> {
  await page.getByLabel('SQL', { exact: true }).fill(colourful);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('gridcell', { name: 'user3@example.com' }).click();
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Find projects/ }).waitFor();
}

const chooseOfMain = (item: string) => async (page: Page) => {
  await button('Actions of main', page).click();
  await page.getByRole('menuitem', { name: item }).click();
};

async function places(): Promise<Place[]> {
  const branch = at(`/branches/${await branchIdOf('main')}`);
  const feature = at(`/branches/${await branchIdOf('feature-x')}`);
  const { name } = story().project;
  const isAnswered = true;
  return [
    { name: 'projects', path: '/', heading: 'Projects' },
    { name: 'new project', path: '/', heading: 'Projects', press: 'New project', isAnswered },
    { name: 'dashboard', path: at(), heading: name },
    { name: 'new branch', path: at(), heading: name, press: 'New branch', isAnswered },
    { name: 'branch menu', path: at(), heading: name, press: 'Actions of main' },
    { name: 'edit compute', path: at(), heading: name, prepare: chooseOfMain('Edit compute'), isAnswered },
    { name: 'palette', path: at(), heading: name, prepare: openPalette },
    { name: 'switch branch', path: branch, heading: 'main', press: 'Switch branch' },
    { name: 'connect', path: at('?connect=default'), heading: name },
    { name: 'branch', path: branch, heading: 'main' },
    { name: 'restore', path: branch, heading: 'main', press: 'Reset or restore', isAnswered },
    { name: 'branch from a moment', path: branch, heading: 'main', press: 'Branch from it' },
    { name: 'make default', path: feature, heading: 'feature-x', press: 'Make default' },
    { name: 'sql', path: at('/sql'), heading: 'SQL editor', prepare: runColourful },
    { name: 'query history', path: at('/sql'), heading: 'SQL editor', press: 'History' },
    { name: 'keyboard help', path: at('/sql'), heading: 'SQL editor', press: 'Keyboard' },
    { name: 'tables', path: at('/tables?table=public.invoices'), heading: 'Tables' },
    { name: 'structure', path: at('/tables?table=public.invoices&view=structure'), heading: 'Tables' },
    { name: 'diagram', path: at('/tables?table=public.invoices&view=diagram'), heading: 'Tables' },
    { name: 'monitoring', path: at('/monitoring'), heading: 'Monitoring' },
    { name: 'sessions', path: at('/monitoring?view=sessions'), heading: 'Monitoring' },
    { name: 'log', path: at('/monitoring?view=log'), heading: 'Monitoring' },
    { name: 'data', path: at('/data'), heading: 'Roles and databases' },
    { name: 'auth', path: at('/auth'), heading: 'Auth' },
    { name: 'auth sign-in', path: at('/auth?view=sign-in'), heading: 'Auth' },
    { name: 'auth keys', path: at('/auth?view=keys'), heading: 'Auth' },
    { name: 'auth mails', path: at('/auth?view=mails'), heading: 'Auth' },
    { name: 'operations', path: at('/operations'), heading: 'Operations' },
    { name: 'settings', path: at('/settings'), heading: 'Settings' },
    { name: 'delete project', path: at('/settings'), heading: 'Settings', press: 'Delete project', isAnswered },
    { name: 'keys', path: '/keys', heading: 'API keys' },
    { name: 'organization', path: '/organization', heading: 'Organization' },
    { name: 'deleted', path: '/deleted', heading: 'Deleted' },
    { name: 'about', path: '/about', heading: 'About' },
    { name: 'no such page', path: at('/nowhere'), heading: 'Not found' },
  ];
}

export function everyPage(): void {
  test('is fit for everybody, wide and narrow, light and dark', async () => {
    await ownProject({ invoices: true, branches: ['feature-x'], auth: true });
    const found = await Promise.all(looked.map(problemsIn));
    expect(found.flat()).toEqual([]);
  }, 300_000);

  test('loads no more than 150 KB of script as it is sent; the SQL editor has its library besides', async () => {
    const { page, baseURL } = story();
    await sharedProject();
    const branch = at(`/branches/${await branchIdOf('main')}`);
    const pages = ['/', at(), branch, at('/sql'), at('/tables'), at('/monitoring'), at('/data'), at('/auth')];
    for (const path of [...pages, at('/operations'), at('/settings'), '/keys', '/about']) {
      await page.goto(path);
      await page.locator('h1').first().waitFor();
      await page.locator('.skeleton').first().waitFor({ state: 'detached' });
      const loaded = await page.evaluate<[string, number, number][]>(
        "performance.getEntriesByType('resource').map((one) => [one.name, one.encodedBodySize, one.decodedBodySize])",
      );
      expect(loaded.filter(([name]) => !name.startsWith(baseURL))).toEqual([]);
      const scripts = loaded.filter(([name]) => name.endsWith('.js'));
      const sent = scripts.filter(([name]) => !name.includes('/editor-libraries-'));
      const total = sent.reduce((sum, [, size]) => sum + size, 0);
      process.stdout.write(`console: ${Math.round(total / 1_000)} KB of script on ${path}\n`);
      expect(total, path).toBeGreaterThan(50_000);
      expect(total, path).toBeLessThan(150_000);
      expect(scripts.length - sent.length, path).toBe(path === at('/sql') ? 1 : 0);
      // Compressed, and not twice.
      expect(scripts.every(([, size, unpacked]) => size < unpacked)).toBe(true);
    }
  });

  test('is compressed for every browser', async () => {
    const { baseURL } = story();
    const script = /assets\/[\w-]+\.js/.exec(await (await fetch(baseURL)).text())?.[0];
    for (const [accepted, expected] of [
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip, deflate', 'gzip'],
      ['identity', null],
    ] as const) {
      const reply = await fetch(`${baseURL}/${script}`, { headers: { 'accept-encoding': accepted } });
      expect([reply.status, reply.headers.get('content-encoding')]).toEqual([200, expected]);
      expect(await reply.text()).toContain('import');
    }
  });
}

/** One visitor of this shape looks at everything: the first at all rules, the others at what can be otherwise there. */
async function problemsIn(shape: (typeof shapes)[number]): Promise<string[]> {
  const isFirst = shape === shapes[0];
  const { browser, baseURL, visitor } = story();
  const context = await browser.visit({ baseURL, ...shape });
  await context.addCookies((await visitor.storageState()).cookies);
  const page = await newPage(context);
  await page.goto('/about');
  const problems: string[] = [];
  const look = async (name: string) =>
    problems.push(...(await problemsOf(page, `${name} ${shape.width} ${shape.scheme}`, isFirst)));
  for (const { name, path, heading, press, prepare, isAnswered } of await places()) {
    if (isAnswered && isFirst && screenshots === undefined) continue;
    await walkTo(path, page);
    await page.waitForURL((url) => url.pathname + url.search === path);
    await page.locator('h1', { hasText: heading }).waitFor();
    await page.locator('.skeleton').first().waitFor({ state: 'detached' });
    await prepare?.(page);
    if (press !== undefined) await button(press, page).first().click();
    await look(name);
    if (press !== undefined || prepare !== undefined) await page.keyboard.press('Escape');
  }
  await context.clearCookies();
  await page.goto('/');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await look('sign in');
  await context.close();
  return problems;
}

async function problemsOf(page: Page, title: string, isFirst: boolean): Promise<string[]> {
  const hasDialog = (await page.getByRole('dialog').count()) > 0;
  await photograph(page, title, (page.viewportSize()?.width ?? 0) < 1000 && !hasDialog);
  const violations = await (isFirst ? violationsOf(page) : looksOf(page));
  const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
  return [
    ...violations.map((violation) => `${title}: ${violation}`),
    ...(overflow > 0 ? [`${title}: wider than the screen by ${overflow} px`] : []),
  ];
}
