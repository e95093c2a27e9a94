/** The data grid, as the SQL editor shows it: what it draws, how it is sorted, and how its cells get out of it. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { at, button, dialog, open, photograph, runSql, sharedProject, story } from './story.ts';

const sheet = () => story().page.getByRole('grid');
const cell = (name: string | RegExp) => sheet().getByRole('gridcell', { name, exact: true });
const head = (name: RegExp) => sheet().getByRole('columnheader', { name });
const menuItem = (name: string) => story().page.getByRole('menuitem', { name, exact: true });
const copied = () => story().page.evaluate<string>('navigator.clipboard.readText()');
/** What is drawn of the first column, from top to bottom. */
const firstColumn = () => sheet().locator('[role=gridcell][aria-colindex="1"]').allInnerTexts();

const mixed = `select * from (values
  (2, 'long ' || repeat('text ', 80), '{"b": {"deep": [1, 2]}, "a": 10}'::jsonb, array['x', null, 'y z'], '\\x00ff41'::bytea),
  (10, '', null, null, null), (1, null, '[]', '{}', '')) as t (id, note, data, tags, raw)`;

export function grid(): void {
  test('a hundred thousand rows scroll, and only those on the screen are drawn', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await page.getByLabel('Rows', { exact: true }).selectOption('All');
    // More than one answer may hold, so the rows come line by line.
    await runSql('select n as id, repeat(md5(n::text), 3) from generate_series(1, 100000) n');
    await page.getByText(/^100,000 rows/).waitFor();
    expect(await sheet().getAttribute('aria-rowcount')).toBe('100001');
    expect(await sheet().getByRole('row').count()).toBeLessThan(80);
    await cell('1').click();
    await page.keyboard.press('Control+End');
    await cell('100000').waitFor();
    await head(/^id/).click();
    await head(/^id/).click();
    await page.keyboard.press('Control+Home');
    await cell('99999').waitFor();
  });

  test('fifty columns are drawn as far as they are seen, and pinned ones stay', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    const columns = Array.from({ length: 50 }, (_, index) => `repeat('x', 20) || ${index} as c${index}`);
    await runSql(`select ${columns.join(', ')}`);
    await cell(/x0$/).waitFor();
    expect(await sheet().getByRole('columnheader').count()).toBeLessThan(20);
    await head(/^c1 /).click({ button: 'right' });
    await menuItem('Pin column').click();
    await cell(/x0$/).click();
    await page.keyboard.press('End');
    await cell(/x49$/).waitFor();
    expect(await cell(/x0$/).count()).toBe(0);
    await cell(/x1$/).waitFor();
    const wide = await head(/^c1 /).boundingBox();
    await head(/^c1 /).click({ button: 'right' });
    await menuItem('Wider').click();
    await page.waitForFunction(
      `document.querySelector('[role=columnheader]').offsetWidth > ${(wide?.width ?? 0) + 40}`,
    );
  });

  test('types stand in the head, and NULL is not an empty text', async () => {
    await sharedProject();
    await open(at('/sql'));
    await runSql(`${mixed} order by id`);
    await head(/^id int4/).waitFor();
    await head(/^data jsonb/).waitFor();
    await head(/^tags text\[\]/).waitFor();
    expect(await firstColumn()).toEqual(['1', '2', '10']);
    const notes = await sheet().locator('[role=gridcell][aria-colindex="2"]').allInnerTexts();
    expect([notes[0], notes[2]]).toEqual(['NULL', '']);
    await head(/^note/).click();
    expect(await firstColumn()).toEqual(['10', '2', '1']);
    expect(await head(/^note/).getAttribute('aria-sort')).toBe('ascending');
    await photograph(story().page, 'grid');
    expect(await violationsInBothThemes(story().page)).toEqual([]);
  });

  test('a cell opens as a whole: JSON with an indent, arrays as lists, bytes as a dump', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await runSql(mixed);
    await cell(/"deep"/).dblclick();
    await dialog().getByText('"deep": [').waitFor();
    expect(await violationsInBothThemes(page)).toEqual([]);
    await photograph(page, 'cell viewer');
    await button('Next row', dialog()).click();
    await dialog().getByText('NULL').waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    // The keyboard is where it was.
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await dialog().getByText('y z').waitFor();
    expect(await dialog().getByRole('listitem').allInnerTexts()).toEqual(['x', 'NULL', 'y z']);
    await page.keyboard.press('Escape');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Space');
    await dialog().getByText('00000000 00 ff 41').waitFor();
  });

  test('cells, rows and selections are copied as text, CSV, JSON and SQL', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await runSql('select id, customer from invoices order by id');
    await cell('Ada').click();
    await page.keyboard.press('Control+c');
    expect(await copied()).toBe('Ada');
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Shift+ArrowLeft');
    await page.getByText('2 rows × 2 columns selected').waitFor();
    await page.keyboard.press('Control+c');
    expect(await copied()).toBe('1\tAda\n2\t');
    await button('Copy selection').click();
    await menuItem('Copy as CSV').click();
    expect(await copied()).toBe('id,customer\r\n1,Ada\r\n2,\r\n');
    await cell('2').click();
    await cell('2').click({ button: 'right' });
    await menuItem('Copy row as JSON').click();
    expect(JSON.parse(await copied())).toEqual([{ id: 2, customer: null }]);
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Shift+F10');
    await menuItem('Copy rows as SQL').click();
    expect(await copied()).toBe('insert into invoices ("id", "customer") values\n  (1, \'Ada\'),\n  (2, null);\n');
    // The last row is not drawn, and the menu opens where the grid is all the same.
    await runSql('select n from generate_series(1, 1000) n');
    await cell('1').click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Shift+F10');
    const menu = await page.getByRole('menu').boundingBox();
    const frame = await sheet().boundingBox();
    expect(menu?.x).toBeGreaterThanOrEqual(frame?.x ?? Number.NaN);
    await page.keyboard.press('Escape');
  });

  test('rows become files', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('/sql'));
    await runSql('select id, customer from invoices order by id');
    await button('Export').click();
    const [file] = await Promise.all([page.waitForEvent('download'), menuItem('These rows as CSV').click()]);
    expect(file.suggestedFilename()).toBe('result.csv');
    expect(await readFile(await file.path(), 'utf8')).toBe('id,customer\r\n1,Ada\r\n2,\r\n');
  });
}
