/** Tables: found, filtered, sorted, edited, and taken apart. */
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import {
  at,
  branchIdOf,
  button,
  confirm,
  dialog,
  open,
  ownProject,
  photograph,
  runDirectly,
  story,
  uriOf,
} from './story.ts';

const page = () => story().page;
const cell = (name: string | RegExp) => page().getByRole('gridcell', { name, exact: true });
const shownSql = () => page().locator('.shown-sql code');
const menuItem = (name: string | RegExp) => page().getByRole('menuitem', { name, exact: true });
const named = (name: RegExp) => page().getByRole('navigation', { name: 'Tables' }).getByRole('button', { name });

const endOf = async (one: Locator) => {
  const { x = 0, width = 0 } = (await one.boundingBox()) ?? {};
  return x + width;
};

const seed = [
  `create table customers (id int primary key, email text not null unique, country text, profile jsonb,
     created_at timestamptz not null default now())`,
  `create table orders (id int generated always as identity primary key, customer_id int references customers,
     status text not null default 'open', total numeric(10, 2) not null, note text)`,
  `insert into customers select n, 'user' || n || '@example.com', (array['US', 'FR', 'JP', 'DE'])[1 + n % 4],
     jsonb_build_object('age', 20 + n % 50, 'prefs', array['mail', 'sms']), '2026-03-01'::timestamptz + n * interval '1 h'
     from generate_series(1, 1200) n`,
  `insert into orders (customer_id, status, total, note)
     select 1 + n % 1200, (array['open', 'paid', 'sent'])[1 + n % 3], n * 1.25, nullif('note ' || n % 5, 'note 0')
     from generate_series(1, 300) n`,
  'create index on orders (status)',
  'analyze',
];

async function shop(): Promise<void> {
  await ownProject();
  const uri = await uriOf('main');
  for (const statement of seed) await runDirectly(uri, statement);
}

/** Presses keys faster than the grid can draw where they lead. */
async function pressAtOnce(...keys: readonly { readonly key: string; readonly ctrlKey?: boolean }[]): Promise<void> {
  await page().getByRole('grid').focus();
  await page().evaluate(`(async () => {
    for (const key of ${JSON.stringify(keys)}) {
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { ...key, bubbles: true, cancelable: true }));
      await null;
    }
    if (!document.activeElement.matches('.grid-field')) throw new Error('the cell cannot be written in yet');
  })()`);
}

export function tables(): void {
  test('are found in a list, filtered and sorted by SQL that is shown, and counted on request', async () => {
    await shop();
    await open(at('/tables'));
    await named(/^customers/).waitFor();
    expect(await named(/^customers/).innerText()).toMatch(/1,200/);
    await page().getByLabel('Search tables').fill('ord');
    await named(/^customers/).waitFor({ state: 'detached' });
    await page().getByLabel('Search tables').fill('');
    await page()
      .getByText(/^Rows 1 – 500 of about 1,200/)
      .waitFor();
    await photograph(page(), 'tables');
    await button('Count exactly').click();
    await page().getByText('Rows 1 – 500 of 1,200').waitFor();
    await button('Next').click();
    await cell('501').waitFor();
    await button('Filter').click();
    await page().getByLabel('Column of filter 1').selectOption('country');
    await page().getByLabel('Value of filter 1').fill("J'P");
    await button('Apply').click();
    await page().getByText('0 rows').waitFor();
    await page().getByLabel('Value of filter 1').fill('JP');
    await button('Apply').click();
    await page().getByText('300 rows').waitFor();
    // On a phone a filter can be taken away again.
    await page().setViewportSize({ width: 390, height: 844 });
    expect(await endOf(button('Remove filter 1'))).toBeLessThanOrEqual(390);
    await page().setViewportSize({ width: 1440, height: 900 });
    await page().getByRole('columnheader', { name: /^id/ }).click();
    await page().getByRole('columnheader', { name: /^id/ }).click();
    await cell('1198').waitFor();
    expect(await shownSql().innerText()).toBe(
      'select * from "public"."customers" where "country" = \'JP\' order by "id" desc',
    );
    // The address holds all of it.
    await page().reload();
    await cell('1198').waitFor();
    expect(await violationsInBothThemes(page())).toEqual([]);
    await page().getByRole('tab', { name: 'Structure' }).click();
    await page().getByText('CREATE UNIQUE INDEX customers_pkey').waitFor();
    await photograph(page(), 'structure');
    expect(await violationsInBothThemes(page())).toEqual([]);
    await named(/^orders/).click();
    await page().getByRole('tab', { name: 'Structure' }).click();
    await page()
      .getByRole('row', { name: /^id primary key integer not null generated always as identity/ })
      .waitFor();
    await page().getByRole('tab', { name: 'Diagram' }).click();
    await page().getByRole('row', { name: 'public.orders (customer_id) public.customers (id)' }).waitFor();
    expect(await violationsInBothThemes(page())).toEqual([]);
    await page().getByRole('button', { name: 'orders customer_id' }).click();
    await page().getByRole('region', { name: 'public.orders' }).waitFor();
    // A foreign key leads to the row that it names.
    await open(at('/tables?table=public.orders'));
    await page().getByRole('button', { name: 'Open customers with id = 2' }).first().click();
    await cell('user2@example.com').waitFor();
    await page().getByText('1 row', { exact: true }).waitFor();
    await page().goBack();
    await page()
      .getByRole('columnheader', { name: /^customer_id/ })
      .waitFor();
  });

  test('are edited cell by cell, shown as SQL, and written in one transaction', async () => {
    await shop();
    await open(at('/tables?table=public.orders'));
    await cell('1.25').dblclick();
    await page().keyboard.type('99.5');
    await page().keyboard.press('Enter');
    await cell('note 1').first().click();
    await page().keyboard.type("it's new");
    await page().keyboard.press('Tab');
    await cell('3.75').click({ button: 'right' });
    await menuItem('Delete row').click();
    await button('Insert row').click();
    // The new row stands below three hundred others, and can be written in at once.
    await page().locator('.grid-row.new .grid-cell.active').waitFor();
    await page().keyboard.type('7');
    await page().keyboard.press('Enter');
    await page().getByText('3 changes').waitFor();
    await page().keyboard.press('Control+Home');
    expect(await page().locator('.grid-row.changed .grid-cell.changed').allInnerTexts()).toEqual(['99.5', "it's new"]);
    expect(await page().locator('.grid-row.deleted').innerText()).toContain('3.75');
    await photograph(page(), 'tables with changes');
    await button('Review and apply').click();
    await dialog().getByText('insert into "public"."orders" ("customer_id") values (7);').waitFor();
    expect(await violationsInBothThemes(page())).toEqual([]);
    await photograph(page(), 'apply changes');
    // The new row has no total, so nothing of it is written.
    await button('Apply 3 changes', dialog()).click();
    await dialog()
      .getByRole('alert')
      .getByText(/null value in column "total"/)
      .waitFor();
    await confirm('Cancel');
    await page().getByRole('grid').click();
    await page().keyboard.press('Control+Home');
    await cell('99.5').waitFor();
    await pressAtOnce({ key: 'End', ctrlKey: true }, { key: 'ArrowLeft' }, { key: '7' });
    await page().keyboard.type('0');
    // What is being written stays when its row scrolls away.
    await page().mouse.wheel(0, -20_000);
    await cell('99.5').waitFor();
    await page().keyboard.type('.5');
    await page().keyboard.press('Enter');
    await button('Review and apply').click();
    await button('Apply 3 changes', dialog()).click();
    await page().getByText('3 changes applied.').waitFor();
    await cell('70.50').waitFor();
    await page().reload();
    await page().getByText('300 rows').waitFor();
    await cell('99.50').waitFor();
    await cell("it's new").waitFor();
    expect(await cell('3.75').count()).toBe(0);
    // A protected branch is written to after a question.
    const { program } = story();
    await program.api('PATCH', at(`/branches/${await branchIdOf('main')}`), { branch: { protected: true } });
    await open(at('/tables?table=public.orders'));
    await cell('2.50').click();
    await page().keyboard.type('2');
    await page().keyboard.press('Enter');
    await button('Review and apply').click();
    await dialog().getByText('Write to the protected branch main?').waitFor();
    await button('Write to the protected branch', dialog()).click();
    await page().getByText('1 change applied.').waitFor();
    await program.api('PATCH', at(`/branches/${await branchIdOf('main')}`), { branch: { protected: false } });
  });
}
