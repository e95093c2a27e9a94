/**
 * The console in a browser, over the whole program with real Postgres servers: one program and one browser for all.
 * The tests are one story and run in order. With CATNAP_SCREENSHOTS set to a folder, every page is photographed there.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startBrowser, type TestBrowser } from '../helpers/browser.ts';
import { Program } from '../helpers/program.ts';

const screenshots = process.env.CATNAP_SCREENSHOTS;

let program: Program;
let browser: TestBrowser;
let baseURL: string;
let visitor: BrowserContext;
let page: Page;
let projectId: string;
/** What a page throws, or writes to its console as an error. */
const faults: string[] = [];

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.create({ CATNAP_SUSPEND_MIN_SECONDS: '1' }), startBrowser()]);
  await program.start();
  baseURL = `http://localhost:${program.httpPort}`;
  visitor = await browser.visit({ baseURL });
  page = await newPage(visitor);
});

afterEach(async ({ task }) => {
  if (screenshots === undefined || task.result?.state !== 'fail') return;
  await page.screenshot({ path: join(screenshots, `failed-${task.name.slice(0, 40).replaceAll(' ', '-')}.png`) });
});

afterAll(async () => {
  await browser.close();
  await program.destroy();
});

async function newPage(context: BrowserContext): Promise<Page> {
  const made = await context.newPage();
  made.setDefaultTimeout(20_000);
  made.on('pageerror', (error) => faults.push(error.message));
  made.on('console', (message) => {
    if (message.type() === 'error' && !isExpected(message.text())) faults.push(message.text());
  });
  return made;
}

/** Refusals that tests provoke; and style attributes of the editor's, which the policy refuses and nobody misses. */
const isExpected = (text: string) => /^(Failed to load resource|Applying inline style violates)/.test(text);

const button = (name: string | RegExp, on = page) => on.getByRole('button', { name, exact: true });
const dialog = () => page.getByRole('dialog');
const row = (branch: string) => page.getByRole('article', { name: `Branch ${branch}` });
const at = (path = '') => `/projects/${projectId}${path}`;

async function runSql(text: string): Promise<void> {
  const editor = page.getByLabel('SQL', { exact: true });
  await editor.click();
  await editor.fill(text);
  await page.keyboard.press('Control+Enter');
}

describe('from the first visit to the first query', () => {
  test('the link of the first start opens the console signed in, once', async () => {
    const link = /http\S+\/(#open=[\w-]+)/.exec(program.output)?.[1] ?? '';
    const startedAt = performance.now();
    await page.goto(`/${link}`);
    await button('New project').waitFor();
    const interactiveMs = Math.round(performance.now() - startedAt);
    process.stdout.write(`console: interactive ${interactiveMs} ms after a cold load\n`);
    expect(interactiveMs).toBeLessThan(15_000);
    expect(page.url()).not.toContain('open=');
    expect(await page.evaluate<string>('document.cookie')).toBe('');
    const other = await browser.visit({ baseURL });
    const late = await newPage(other);
    await late.goto(`/${link}`);
    await late.getByText('this link was used before or is too old').waitFor();
    await late.getByRole('heading', { name: 'Sign in' }).waitFor();
    await other.close();
  });

  test('no page has more than 150 KB of our own script', async () => {
    const scripts = await page.evaluate<[string, number][]>(
      "performance.getEntriesByType('resource').map((entry) => [entry.name, entry.decodedBodySize])",
    );
    const own = scripts.filter(([name]) => name.endsWith('.js') && !name.includes('/libraries-'));
    const total = own.reduce((sum, [, size]) => sum + size, 0);
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThan(150_000);
    const elsewhere = scripts.filter(([name]) => !name.startsWith(baseURL));
    expect(elsewhere).toEqual([]);
  });

  test('a project is made and its compute comes up by itself', async () => {
    await button('New project').click();
    await dialog().getByLabel('Name').fill('billing');
    await button('Create project').click();
    await page.getByRole('heading', { name: 'billing' }).waitFor();
    await row('main').getByText('Active', { exact: true }).waitFor();
    projectId = new URL(page.url()).pathname.split('/')[2] ?? '';
    expect(await row('main').getByText('Primary read-write').count()).toBe(1);
  });

  test('the SQL editor runs statements, shows rows, and completes names', async () => {
    await page.getByRole('link', { name: 'SQL editor' }).click();
    await runSql(
      "create table invoices (id int primary key, customer text); insert into invoices values (1, 'Ada'), (2, null)",
    );
    await page.getByText('INSERT: 2 rows').waitFor();
    await runSql('select * from invoices order by id');
    await page.getByRole('cell', { name: 'Ada' }).waitFor();
    await page.getByRole('cell', { name: 'null' }).waitFor();
    await page.reload();
    await page.getByLabel('SQL', { exact: true }).click();
    await page.keyboard.type('select * from inv', { delay: 60 });
    await page.locator('.cm-tooltip-autocomplete').getByText('invoices').waitFor();
    await page.getByText(/^History/).click();
    await button(/^create table invoices/).waitFor();
  });

  test('errors stand at their place, plans are drawn, and a query can be cancelled', async () => {
    await runSql('select nonsense from invoices');
    await page.getByRole('alert').getByText('column "nonsense" does not exist').waitFor();
    await page.locator('.cm-lintRange-error').waitFor();
    await runSql('select * from invoices where id = 1');
    await page.getByRole('cell', { name: 'Ada' }).waitFor();
    await button('Explain').click();
    await page.getByRole('list', { name: 'Plan' }).getByText(/Scan/).first().waitFor();
    await runSql('select pg_sleep(60)');
    await button('Cancel').click();
    await page.getByRole('alert').getByText('Cancelled.').waitFor();
  });

  test('tables show their rows', async () => {
    await page.getByRole('link', { name: 'Tables' }).click();
    await page.getByRole('cell', { name: 'Ada' }).waitFor();
    expect(await page.getByText('public.invoices', { exact: true }).count()).toBe(1);
  });
});

describe('computes', () => {
  test('are suspended and woken by a query, and the dashboard says so', async () => {
    await page.goto(at());
    await row('main').getByRole('button', { name: 'Suspend' }).click();
    await row('main').getByText('Idle', { exact: true }).waitFor();
    const watching = await newPage(visitor);
    await watching.goto(at());
    await watching.getByText('Idle', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'SQL editor' }).click();
    await runSql('select 40 + 2 as answer');
    await page.getByRole('cell', { name: '42' }).waitFor();
    await watching.getByText('Active', { exact: true }).waitFor();
    await watching.close();
  });

  test('get a range of sizes, and the change shows until it is done', async () => {
    await page.goto(at());
    await row('main').getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Autoscaling').check();
    const largest = page.getByLabel('Largest size');
    await largest.focus();
    for (let i = 0; i < 3; i += 1) await largest.press('ArrowRight');
    await page.getByText('2 CU · 8 GB').waitFor();
    await button('Save').click();
    await row('main').getByText('0.25 – 2 CU · 1 – 8 GB').waitFor();
    await row('main').getByText('Active', { exact: true }).waitFor();
    const { body } = await program.api('GET', at('/endpoints'));
    expect(body.endpoints[0]).toMatchObject({ autoscaling_limit_min_cu: 0.25, autoscaling_limit_max_cu: 2 });
  });

  test('get a read replica', async () => {
    await row('main').getByRole('button', { name: 'Read replica' }).click();
    await button('Add').click();
    await row('main').getByText('Read replica', { exact: true }).nth(1).waitFor();
    expect((await program.api('GET', at('/endpoints'))).body.endpoints).toHaveLength(2);
  });
});

describe('branches', () => {
  test('are made from another one, and stand below it in the tree', async () => {
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('feature-x');
    await button('Create branch').click();
    await page.getByRole('heading', { name: 'feature-x' }).waitFor();
    await page.getByText('Active', { exact: true }).waitFor();
    await page.getByText(/shared,.*written/).waitFor();
    await page.goto(at());
    const parent = page.locator('.tree > li').filter({ has: row('main') });
    await parent.locator('.tree').getByRole('article', { name: 'Branch feature-x' }).waitFor();
  });

  test('are changed, compared with their parent, and reset to it', async () => {
    await row('feature-x').getByRole('link', { name: 'feature-x' }).click();
    await page.getByRole('heading', { name: 'feature-x' }).waitFor();
    const branchId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await page.goto(at(`/sql?branch=${branchId}`));
    await runSql('alter table invoices add column paid boolean');
    await page.getByText('ALTER: 0 rows').waitFor();
    await page.goto(at(`/branches/${branchId}`));
    await button('Compare').click();
    await page.getByText(/^\+.*paid boolean/).waitFor();
    await button('Reset or restore').click();
    await dialog().getByRole('button', { name: 'Restore' }).click();
    await dialog().waitFor({ state: 'detached' });
    await program.settle(projectId);
    await button('Compare again').click();
    await page.getByText('Both have the same schema.').waitFor();
    await page.goto(at());
  });

  test('that are protected are not deleted, and are written to only after a question', async () => {
    await row('feature-x').getByRole('link', { name: 'feature-x' }).click();
    await button('Protect').click();
    await dialog().getByRole('button', { name: 'Protect' }).click();
    await page.getByText('A protected branch cannot be deleted.').waitFor();
    const branchId = new URL(page.url()).pathname.split('/').at(-1);
    await page.goto(at(`/sql?branch=${branchId}`));
    await runSql('select count(*) as n from invoices');
    await page.getByRole('cell', { name: '2' }).waitFor();
    await runSql('delete from invoices');
    await dialog().getByText('Write to the protected branch feature-x?').waitFor();
    await button('Cancel').last().click();
    await page.getByText('Not run: the branch is protected.').waitFor();
    await runSql('delete from invoices where id = 2');
    await button('Run it').click();
    await page.getByText('DELETE: 1 row').waitFor();
  });

  test('are deleted with their name typed', async () => {
    await page.goto(at());
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('short');
    await button('Create branch').click();
    await page.getByRole('heading', { name: 'short' }).waitFor();
    await button('Delete').last().click();
    expect(await button('Delete branch').isDisabled()).toBe(true);
    await page.getByLabel(/^Type/).fill('short');
    await button('Delete branch').click();
    await page.getByText('Branch short is deleted.').waitFor();
    await row('short').waitFor({ state: 'detached' });
  });
});

test('the connect dialog hides the password until it is asked for', async () => {
  await page.goto(at('?connect=default'));
  await dialog()
    .getByText(/^psql 'postgresql:\/\/neondb_owner:••••/)
    .waitFor();
  await button('Show password').click();
  await dialog()
    .getByText(/^psql 'postgresql:\/\/neondb_owner:npg_/)
    .waitFor();
  await button('Python').click();
  await button('Copy the snippet').click();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toMatch(/psycopg\.connect\("postgresql:\/\/neondb_owner:npg_/);
  await page.keyboard.press('Escape');
  await dialog().waitFor({ state: 'detached' });
  expect(page.url()).not.toContain('connect');
});

test('roles and databases are made and deleted', async () => {
  await page.goto(at('/data'));
  await button('New role').click();
  await dialog().getByLabel('Name').fill('reader');
  await button('Create role').click();
  await page.getByRole('heading', { name: 'Password of reader' }).waitFor();
  await button('Close').click();
  await button('New database').click();
  await dialog().getByLabel('Name').fill('reports');
  await dialog().getByLabel('Owner').selectOption('reader');
  await button('Create database').click();
  await page
    .getByRole('row', { name: /reports/ })
    .getByRole('button', { name: 'Delete' })
    .click();
  await page.getByLabel(/^Type/).fill('reports');
  await button('Delete database').click();
  await page.getByText('Database reports is deleted.').waitFor();
});

describe('keys', () => {
  test('of one project are made, and sign in to that project alone', async () => {
    await page.goto('/keys');
    await button('New key').click();
    await dialog().getByLabel('Name').fill('deploy');
    await dialog().getByLabel('Kind').selectOption('project');
    await button('Create key').click();
    const key = await page.locator('.secret code').innerText();
    expect(key).toMatch(/^napi_/);
    await button('Close').click();
    await program.api('POST', '/projects', { project: { name: 'elsewhere' } });
    const other = await browser.visit({ baseURL });
    const theirs = await newPage(other);
    await theirs.goto(at());
    await theirs.getByLabel('API key').fill('napi_wrong');
    await button('Sign in', theirs).click();
    await theirs.getByText('this key does not work here').waitFor();
    await theirs.getByLabel('API key').fill(key);
    await button('Sign in', theirs).click();
    await theirs.getByRole('heading', { name: 'billing' }).waitFor();
    await theirs.getByRole('link', { name: 'Projects' }).click();
    await theirs.getByText('billing').first().waitFor();
    expect(await theirs.getByText('elsewhere').count()).toBe(0);
    await page
      .getByRole('row', { name: /deploy/ })
      .getByRole('button', { name: 'Revoke' })
      .click();
    await button('Revoke key').click();
    await page.getByText('no longer works').waitFor();
    await theirs.reload();
    await theirs.getByRole('heading', { name: 'Sign in' }).waitFor();
    await other.close();
  });
});

test('a compute is measured, and the graphs show it', async () => {
  await page.goto(at('/monitoring'));
  // Measured every 15 seconds, and asked for as often.
  const memory = page.getByRole('figure').filter({ hasText: 'Memory' });
  await memory.getByText(/^in use [\d.]+ MB$/).waitFor({ timeout: 45_000 });
  await page.locator('.uplot canvas').first().waitFor();
});

test('auth is set up with one button, and a user is made', async () => {
  await page.goto(at('/auth'));
  await button('Set up auth').click();
  await dialog()
    .getByText(/STACK_SECRET_SERVER_KEY=/)
    .waitFor();
  await button('Close').click();
  await button('New user').click();
  await page.getByLabel('Email').fill('ada@example.com');
  await dialog().getByLabel('Name').fill('Ada');
  await button('Create user').click();
  await page.getByText(/^The user is made/).waitFor();
});

describe('when something is wrong', () => {
  test('what is not there is said to be not there', async () => {
    await page.goto('/projects/no-such-project');
    await page.getByRole('alert').getByText('project not found').waitFor();
    await page.goto(at('/nowhere'));
    await page.getByText('There is no such page.').waitFor();
  });

  test('a refusal of the API is shown in the dialog, and nothing that was typed is lost', async () => {
    await page.goto(at());
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('main');
    await button('Create branch').click();
    await dialog().getByRole('alert').waitFor();
    expect(await dialog().getByLabel('Name').inputValue()).toBe('main');
    await button('Cancel').click();
  });

  test('a server that is gone is noticed, and the page goes on when it is back', async () => {
    await program.stop();
    await page.getByText(/^Catnap does not answer/).waitFor();
    expect(await row('main').count()).toBe(1);
    await program.start();
    await page.getByText(/^Catnap does not answer/).waitFor({ state: 'detached' });
  });
});

describe('every page', () => {
  const shapes = [
    { width: 1440, height: 900, scheme: 'light' },
    { width: 1440, height: 900, scheme: 'dark' },
    { width: 390, height: 844, scheme: 'light' },
    { width: 390, height: 844, scheme: 'dark' },
  ] as const;
  // The two that differ most; all four where pictures are wanted.
  const looked = shapes.filter((_, at) => screenshots !== undefined || at === 0 || at === shapes.length - 1);

  test.each(looked)(
    'is fit for everybody at $width px, $scheme',
    async ({ width, height, scheme }) => {
      const context = await browser.visit({ baseURL, width, height, scheme });
      await context.addCookies((await visitor.storageState()).cookies);
      const looking = await newPage(context);
      const branchId = (await program.api('GET', at('/branches'))).body.branches[0].id;
      const pages = {
        projects: '/',
        dashboard: at(),
        connect: at('?connect=default'),
        branch: at(`/branches/${branchId}`),
        sql: at('/sql'),
        tables: at('/tables'),
        monitoring: at('/monitoring'),
        data: at('/data'),
        auth: at('/auth'),
        operations: at('/operations'),
        settings: at('/settings'),
        keys: '/keys',
        organization: '/organization',
        about: '/about',
      };
      const problems: string[] = [];
      for (const [name, path] of Object.entries(pages)) {
        await looking.goto(path);
        await looking.locator('h1').first().waitFor();
        await looking.locator('.skeleton').first().waitFor({ state: 'detached' });
        problems.push(...(await problemsOf(looking, `${name} ${width} ${scheme}`)));
      }
      await context.clearCookies();
      await looking.goto('/');
      await looking.getByRole('heading', { name: 'Sign in' }).waitFor();
      problems.push(...(await problemsOf(looking, `sign-in ${width} ${scheme}`)));
      await context.close();
      expect(problems).toEqual([]);
    },
    180_000,
  );

  async function problemsOf(looking: Page, name: string): Promise<string[]> {
    if (screenshots !== undefined) {
      await mkdir(screenshots, { recursive: true });
      const path = join(screenshots, `${name.replaceAll(' ', '-')}.png`);
      await looking.screenshot({ path, fullPage: name.includes(' 390 ') && !name.startsWith('connect') });
    }
    const { violations } = await new AxeBuilder({ page: looking }).analyze();
    const overflow = await looking.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    return [
      ...violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.map((node) => node.html).join(' | ')}`),
      ...(overflow > 0 ? [`${name}: wider than the screen by ${overflow} px`] : []),
    ];
  }
});

test('a project is deleted with its name typed, once no branch is protected', async () => {
  const { body } = await program.api('GET', at('/branches?search=feature-x'));
  await page.goto(at('/settings'));
  await button('Delete project').click();
  await page.getByLabel(/^Type/).fill('billing');
  await button('Delete project').last().click();
  await dialog()
    .getByText(/cannot delete a project with a protected branch/)
    .waitFor();
  await program.api('PATCH', at(`/branches/${body.branches[0].id}`), { branch: { protected: false } });
  await button('Delete project').last().click();
  await page.getByText('Project billing is deleted.').waitFor();
  expect(new URL(page.url()).pathname).toBe('/');
});

test('sign-out ends the sign-in, and no page has thrown anything meanwhile', async () => {
  await button('Sign out').click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.goto('/keys');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  expect(faults).toEqual([]);
});
