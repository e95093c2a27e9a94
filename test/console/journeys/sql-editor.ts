/** The SQL editor as a place to work in: tabs that the server keeps, several results, limits, plans, the keyboard. */
import { readFile } from 'node:fs/promises';
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { eventually, stays } from '../../helpers/eventually.ts';
import {
  at,
  button,
  confirm,
  dialog,
  newPage,
  open,
  ownProject,
  photograph,
  runSql,
  sharedProject,
  story,
} from './story.ts';

const tab = (name: string | RegExp) => story().page.getByRole('tab', { name, exact: true });
const gridcell = (name: string) => story().page.getByRole('gridcell', { name, exact: true });
const menuItem = (name: string) => story().page.getByRole('menuitem', { name, exact: true });
const editor = () => story().page.locator('.query-pane:not([hidden])').getByLabel('SQL', { exact: true });
const focused = () => story().page.evaluate<string>("document.activeElement?.ariaLabel ?? ''");
const endOf = async (one: Locator) => {
  const { y = 0, height = 0 } = (await one.boundingBox()) ?? {};
  return y + height;
};
/** Whether a click near the lower edge of a list of completions would reach it. */
const isListOnTop = () =>
  story().page.evaluate<boolean>(`(() => {
    const list = document.querySelector('[role=listbox]');
    const { left, bottom } = list.getBoundingClientRect();
    return list.contains(document.elementFromPoint(left + 8, bottom - 8));
  })()`);
const savedQueries = async () => (await story().program.api('GET', at('/saved_queries'))).body.saved_queries;

export function sqlEditor(): void {
  test('shows a result for each statement, and what Postgres said', async () => {
    const { page } = story();
    await ownProject();
    await open(at('/sql'));
    await button('Run').waitFor();
    expect(await button('Run').isDisabled()).toBe(true);
    await runSql("do $$ begin raise notice 'so far so good'; end $$; select 1 as one; select 2 as two");
    await gridcell('2').waitFor();
    await tab('2 SELECT').click();
    await gridcell('1').waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.getByRole('status').getByText('DO', { exact: true }).waitFor();
    await tab('Messages (1)').click();
    await page.locator('.message-notice').getByText('so far so good').waitFor();
    expect(await page.locator('.messages li').count()).toBe(3);
    await photograph(page, 'messages');
    await button('Keyboard').click();
    expect(await violationsInBothThemes(page)).toEqual([]);
    await page.keyboard.press('Escape');
    // With a selection, the button runs that part alone.
    await editor().fill('select 7 as seven;\nselect 8 as eight');
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('Shift+End');
    await button('Run selection').click();
    await gridcell('7').waitFor();
    expect(await tab(/SELECT$/).count()).toBe(0);
    // The bar between editor and results moves by the keyboard too.
    const bar = page.getByRole('separator', { name: 'Height of the editor' });
    const before = Number(await bar.getAttribute('aria-valuenow'));
    await bar.press('ArrowDown');
    expect(Number(await bar.getAttribute('aria-valuenow'))).toBe(before + 4);
    await bar.press('ArrowUp');
  });

  test('stops after a number of rows, loads more, and exports all of them', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await page.getByLabel('Rows', { exact: true }).selectOption('100');
    await runSql('select n from generate_series(1, 5000) n');
    await page.getByText(/^The first 100 rows/).waitFor();
    await button('Load more').click();
    await page.getByText(/^The first 1,000 rows/).waitFor();
    await button('Export').click();
    const [file] = await Promise.all([page.waitForEvent('download'), menuItem('All rows as CSV').click()]);
    expect((await readFile(await file.path(), 'utf8')).split('\r\n')).toHaveLength(5_002);
    await button('Load more').click();
    await page.getByText(/^5,000 rows/).waitFor();
    await page.getByLabel('Rows', { exact: true }).selectOption('1000');
  });

  test('measures a plan without keeping what the statement wrote, and formats a text', async () => {
    const { page } = story();
    await ownProject({ invoices: true });
    await open(at('/sql'));
    await editor().fill('delete from invoices where id in (select n from generate_series(1, 5000) n)');
    await button('Analyze').click();
    const plan = page.getByRole('list', { name: 'Plan' });
    await plan.getByText('Delete', { exact: true }).waitFor();
    await plan
      .getByText(/more than the .* expected|fewer than the .* expected/)
      .first()
      .waitFor();
    await page.getByText(/executed in .* and rolled back/).waitFor();
    expect(await violationsInBothThemes(page)).toEqual([]);
    await photograph(page, 'plan');
    await runSql('select count(*) as n from invoices');
    await gridcell('2').waitFor();
    await button('Format').click();
    await eventually(async () => expect((await editor().innerText()).split('\n').length).toBeGreaterThan(2));
    // The editor has the focus after the button, and after the history.
    await page.keyboard.press('Control+Home');
    await page.keyboard.type('-- ');
    await eventually(async () => expect(await editor().innerText()).toMatch(/^-- /));
    await button('History').click();
    await dialog().getByRole('button', { name: 'select count(*) as n from invoices' }).click();
    await eventually(async () => expect(await focused()).toBe('SQL'));
    await page.keyboard.type(' where id = 1');
    await page.keyboard.press('Control+Enter');
    await gridcell('1').waitFor();
  });

  test('completes names from a list that the keyboard reaches, and that no pane cuts off', async () => {
    const { page } = story();
    await ownProject();
    await open(at('/sql'));
    await editor().waitFor();
    await page.getByRole('separator', { name: 'Height of the editor' }).press('Home');
    await editor().click();
    await page.keyboard.type('select * from no', { delay: 60 });
    const pane = page.getByRole('region', { name: 'Editor' });
    const list = pane.getByRole('listbox', { name: 'Completions' });
    await list.waitFor();
    await eventually(async () => expect(await endOf(list)).toBeGreaterThan(await endOf(pane)));
    await eventually(async () => expect(await isListOnTop()).toBe(true));
    await photograph(page, 'completions');
    const names = await list.getByRole('option').allInnerTexts();
    const chosen = () => list.getByRole('option', { selected: true }).innerText();
    expect(await chosen()).toBe(names[0]);
    // Tab leads into the list; the next key is the editor's again, whichever it is.
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Completions');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe('SQL');
    expect(await chosen()).toBe(names[1]);
    await page.keyboard.press('Tab');
    await page.keyboard.type('t');
    await eventually(async () => expect(await editor().innerText()).toBe('select * from not'));
    await list.waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'detached' });
    expect(await focused()).toBe('SQL');
    await page.keyboard.press('Tab');
    expect(await focused()).not.toBe('SQL');
    await page.getByRole('separator', { name: 'Height of the editor' }).dblclick();
  });

  test('runs a text without offering completions for its last word', async () => {
    const { page } = story();
    await ownProject();
    await open(at('/sql'));
    await runSql('create table notes (id int)');
    await page.getByRole('status').getByText('CREATE TABLE', { exact: true }).waitFor();
    const list = page.getByRole('listbox', { name: 'Completions' });
    for (const go of [() => page.keyboard.press('Control+Enter'), () => button('Run').click()]) {
      await editor().fill('');
      await editor().pressSequentially('select nmae from notes');
      await go();
      await page.getByRole('alert').waitFor();
      await stays(async () => expect(await list.count()).toBe(0), 500);
    }
  });

  test('says that it wakes the compute before it runs', async () => {
    const { page, program, project } = story();
    await ownProject();
    const { body } = await program.api('GET', at('/endpoints'));
    await program.api('POST', at(`/endpoints/${body.endpoints[0].id}/suspend`));
    await program.settle(story().project.id);
    await open(at('/sql'));
    const said: string[] = [];
    await page.exposeFunction(`said${project.id.replaceAll(/\W/g, '')}${Date.now()}`, (text: string) =>
      said.push(text),
    );
    await page.evaluate(`{
      const tell = Object.entries(window).filter(([name]) => name.startsWith('said')).at(-1)[1];
      new MutationObserver(() => {
        const state = document.querySelector('.run-state [role=status]');
        if (state !== null) tell(state.textContent);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    }`);
    await runSql('select 40 + 2 as answer, pg_sleep(1)');
    await gridcell('42').waitFor();
    expect([...new Set(said)]).toEqual(['Waking the compute', 'Running']);
  });

  test('keeps its tabs and queries on the server, for every browser', async () => {
    const { page, browser, visitor, baseURL } = story();
    await ownProject();
    await open(at('/sql'));
    await editor().fill('select 1 as first');
    await button('Query menu').click();
    await menuItem('Rename').click();
    await dialog().getByLabel('Name').fill('Monthly numbers');
    await confirm('Rename');
    await button('New query').click();
    await editor().fill('select 2 as second');
    await eventually(async () =>
      expect((await savedQueries()).map(({ name, query }: { name: string; query: string }) => [name, query])).toEqual([
        ['Monthly numbers', 'select 1 as first'],
        ['Query 1', 'select 2 as second'],
      ]),
    );
    // Somebody else, with another browser.
    const elsewhere = await browser.visit({ baseURL });
    await elsewhere.addCookies((await visitor.storageState()).cookies);
    const other = await newPage(elsewhere);
    await other.goto(at('/sql'));
    await other.getByRole('tab', { name: 'Monthly numbers' }).click();
    await other.locator('.query-pane:not([hidden])').getByText('select 1 as first').waitFor();
    await elsewhere.close();
    // The arrow keys stay with the tabs, also when they come to one whose editor was not there yet.
    await page.reload();
    await editor().waitFor();
    await tab('Query 1').focus();
    await page.keyboard.press('ArrowLeft');
    await page.locator('.query-pane:not([hidden])').getByText('select 1 as first').waitFor();
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Monthly numbers');
    // Closed, it is still there; deleted, it is not.
    await tab('Monthly numbers').click();
    await page.keyboard.press('Control+Enter');
    await button('Query menu').click();
    await menuItem('Close tab').click();
    await tab('Monthly numbers').waitFor({ state: 'detached' });
    await button('Saved queries').click();
    expect(await violationsInBothThemes(page)).toEqual([]);
    await photograph(page, 'saved queries');
    await dialog().getByLabel('Search').fill('first');
    await button('Open Monthly numbers', dialog()).click();
    expect(await editor().innerText()).toBe('select 1 as first');
    await button('Saved queries').click();
    await button('Delete Monthly numbers', dialog()).click();
    await button('Open Monthly numbers', dialog()).waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await tab('Monthly numbers').waitFor({ state: 'detached' });
    expect(await savedQueries()).toMatchObject([{ name: 'Query 1' }]);
  });
}
