/** Twenty seconds through the console, in the order in which somebody would come by: seconds, and what is done. */
import { calm } from './browse.mjs';
import { bestCustomers } from './places.mjs';

const button = (page, name) => page.getByRole('button', { name, exact: true }).first();
const link = (page, name) => page.getByRole('link', { name, exact: true }).first();
const sqlField = (page) => page.locator('.query-pane:not([hidden])').getByLabel('SQL', { exact: true });

const stations = [
  [1.6, (page) => page.getByText('shop', { exact: true }).first().waitFor()],
  [1.8, (page) => page.getByRole('link', { name: /^shop/ }).click()],
  [1.1, (page) => button(page, 'Actions of main').click()],
  [
    1.4,
    async (page) => {
      await page.keyboard.press('Escape');
      await button(page, 'New branch').click();
      await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('preview/pr-1051');
    },
  ],
  [
    1.2,
    async (page) => {
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill('orders');
      await page.getByRole('option', { name: /^orders/ }).waitFor();
    },
  ],
  [
    1.6,
    async (page) => {
      await page.keyboard.press('Enter');
      await page.getByRole('gridcell').nth(3).waitFor();
    },
  ],
  [1.6, (page) => page.getByRole('tab', { name: 'Diagram' }).click()],
  [
    0.6,
    async (page) => {
      await link(page, 'SQL editor').click();
      await sqlField(page).fill(bestCustomers.split('\n')[0]);
    },
  ],
  [0.7, (page) => sqlField(page).fill(bestCustomers)],
  [
    1.9,
    async (page) => {
      await page.keyboard.press('Control+Enter');
      await page.getByRole('gridcell').nth(3).click();
    },
  ],
  [
    1.9,
    async (page) => {
      await button(page, 'Analyze').click();
      await page.getByText('rolled back').waitFor();
    },
  ],
  [2, (page) => link(page, 'Monitoring').click()],
  [
    2.2,
    async (page) => {
      await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'main' }).click();
      await page.getByLabel('Moment on the time line').waitFor();
    },
  ],
];

/** Pictures with the seconds that each is shown, for `animate`. */
export async function walk(page) {
  const frames = [];
  await page.goto('/');
  for (const [seconds, step] of stations) {
    await step(page);
    await calm(page);
    frames.push({ file: await page.screenshot(), seconds });
  }
  return frames;
}
