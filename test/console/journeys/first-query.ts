/** From the first visit to the first query. */
import { expect, test } from 'vitest';
import {
  at,
  branchNode,
  button,
  dialog,
  expectFitDialog,
  makeLink,
  newPage,
  open,
  ownProject,
  runSql,
  sharedProject,
  story,
} from './story.ts';

/** Completion is offered to whoever types, at the pace of a person. */
async function typeAfter(text: string, typed: string): Promise<void> {
  const { page } = story();
  await page.getByLabel('SQL', { exact: true }).fill(text);
  await page.keyboard.press('Control+End');
  await page.keyboard.type(typed, { delay: 60 });
}

export function firstQuery(): void {
  test('a link opens the console signed in, once', async () => {
    const { browser, baseURL } = story();
    const link = await makeLink();
    const first = await browser.visit({ baseURL });
    const page = await newPage(first);
    const startedAt = performance.now();
    await page.goto(`/${link}`);
    await button('New project', page).waitFor();
    const interactiveMs = Math.round(performance.now() - startedAt);
    process.stdout.write(`console: interactive ${interactiveMs} ms after a cold load\n`);
    expect(page.url()).not.toContain('open=');
    expect(await page.evaluate<string>('document.cookie')).toBe('');
    const other = await browser.visit({ baseURL });
    const late = await newPage(other);
    await late.goto(`/${link}`);
    await late.getByText('this link was used before or is too old').waitFor();
    await late.getByRole('heading', { name: 'Sign in' }).waitFor();
    await first.close();
    await other.close();
  });

  test('a project is made and its compute comes up by itself', async () => {
    const { page, own } = story();
    await open('/');
    await button('New project').click();
    await dialog().getByLabel('Name').fill('by-hand');
    await expectFitDialog();
    await button('Create project').click();
    await page.getByRole('heading', { name: 'by-hand' }).waitFor();
    own.push(new URL(page.url()).pathname.split('/')[2] ?? '');
    await branchNode('main').getByText('Active', { exact: true }).waitFor();
    expect(await branchNode('main').getByText('default', { exact: true }).count()).toBe(1);
  });

  test('the SQL editor runs statements, shows rows, and completes names', async () => {
    const { page } = story();
    await ownProject();
    await open(at());
    await page.getByRole('link', { name: 'SQL editor' }).click();
    await runSql(
      "create table invoices (id int primary key, customer text); insert into invoices values (1, 'Ada'), (2, null)",
    );
    await page.getByText('INSERT: 2 rows').waitFor();
    await runSql('select * from invoices order by id');
    await page.getByRole('gridcell', { name: 'Ada' }).waitFor();
    await page.getByRole('gridcell', { name: 'null' }).waitFor();
    await page.reload();
    const editor = page.getByLabel('SQL', { exact: true });
    expect(await editor.innerText()).toBe('select * from invoices order by id');
    const offered = page.locator('.cm-tooltip-autocomplete');
    await typeAfter('select * from ', 'inv');
    await offered.getByText('invoices').waitFor();
    await page.keyboard.press('Escape');
    await typeAfter('select * from invoices where ', 'cus');
    await offered.getByText('customer').waitFor();
    await page.keyboard.press('Escape');
    await button('History').click();
    await dialog().getByLabel('Search').fill('Ada values');
    await button(/^create table invoices/, dialog()).click();
    expect(await editor.innerText()).toMatch(/^create table invoices/);
  });

  test('the SQL editor runs a transaction as a whole, or not at all', async () => {
    const { page } = story();
    await ownProject({ invoices: true });
    await open(at('/sql'));
    const write = (id: number) => `insert into invoices values (${id}, 'Bea')`;
    await runSql(`begin; ${write(3)}; select count(*) as inside from invoices; commit`);
    await page.getByRole('gridcell', { name: '3', exact: true }).waitFor();
    await page.getByRole('tab', { name: '4 COMMIT' }).click();
    await page.getByRole('status').getByText('COMMIT', { exact: true }).waitFor();
    await page.getByText(/^[\d.]+ m?s for the transaction$/).waitFor();
    await runSql(`begin; ${write(4)}; select nonsense from invoices; ${write(5)}; commit`);
    await page.getByRole('alert').getByText('column "nonsense" does not exist').waitFor();
    expect(await page.locator('.cm-lintRange-error').innerText()).toBe('nonsense');
    await runSql('select id from invoices order by id');
    await page.getByText(/^3 rows/).waitFor();
    expect(await page.getByRole('gridcell').allInnerTexts()).toEqual(['1', '2', '3']);
  });

  test('errors stand at their place, plans are drawn, and a query can be cancelled', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await runSql('select nonsense from invoices');
    await page.getByRole('alert').getByText('column "nonsense" does not exist').waitFor();
    const mark = page.locator('.cm-lintRange-error');
    expect(await mark.innerText()).toBe('nonsense');
    await page.getByLabel('SQL', { exact: true }).fill('select customer from invoices');
    await mark.waitFor({ state: 'detached' });
    await runSql('select * from invoices where id = 1');
    await page.getByRole('gridcell', { name: 'Ada' }).waitFor();
    await button('Explain').click();
    await page.getByRole('list', { name: 'Plan' }).getByText(/Scan/).first().waitFor();
    await runSql('select pg_sleep(60)');
    await button('Cancel').click();
    await page.getByRole('alert').getByText('Cancelled.').waitFor();
  });

  test('tables show their rows, those too that were made since', async () => {
    const { page } = story();
    await ownProject({ invoices: true });
    await open(at());
    await page.getByRole('link', { name: 'Tables' }).click();
    await page.getByRole('gridcell', { name: 'Ada', exact: true }).waitFor();
    await page.getByRole('link', { name: 'SQL editor' }).click();
    await runSql('create table late (id int)');
    await page.getByText('CREATE TABLE', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Tables' }).click();
    const late = page.getByRole('navigation', { name: 'Tables' }).getByRole('button', { name: /^late/ });
    await late.click();
    await page.getByText('0 rows').waitFor();
    await page.reload();
    await page.getByText('0 rows').waitFor();
    expect(await late.getAttribute('aria-current')).toBe('true');
  });
}
