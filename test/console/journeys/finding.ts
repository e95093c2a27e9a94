/** Finding the way: command palette, breadcrumb, many branches, and operations that name what they are about. */
import { expect, test } from 'vitest';
import { violationsOf } from '../../helpers/accessibility.ts';
import { at, branchIdOf, branchNode, button, open, ownProject, photograph, row, story } from './story.ts';

const page = () => story().page;
const field = () => page().getByRole('combobox', { name: /^Find/ });
const option = (name: RegExp) => page().getByRole('option', { name });
const lines = () => page().getByRole('article', { name: /^Branch / });

export function finding(): void {
  test('the palette leads to branches, tables, computes and pages, and does things', async () => {
    await ownProject({ invoices: true, branches: ['preview/pr-7'] });
    await open(at());
    await branchNode('main').waitFor();
    await page().keyboard.press('Control+k');
    await field().fill('pr 7');
    await option(/^preview\/pr-7/)
      .first()
      .waitFor();
    expect(await violationsOf(page())).toEqual([]);
    await page().keyboard.press('Enter');
    await page().getByRole('heading', { name: 'preview/pr-7' }).waitFor();
    await page().keyboard.press('Control+k');
    await field().fill('invoices');
    await option(/^invoices/).waitFor();
    await page().keyboard.press('Enter');
    await page().getByRole('gridcell', { name: 'Ada', exact: true }).waitFor();
    expect(new URL(page().url()).searchParams.get('branch')).toBe(await branchIdOf('preview/pr-7'));
    // In the editor too, which has a meaning of its own for the key.
    await open(at('/sql'));
    await page().getByLabel('SQL', { exact: true }).click();
    await page().keyboard.press('Control+k');
    await field().fill('suspend main');
    await option(/^Suspend the compute of main/).click();
    await open(at());
    await branchNode('main').getByText('Idle', { exact: true }).waitFor();
    await page().keyboard.press('Control+k');
    await field().fill('nothing of that name');
    await page().getByText('Nothing fits.').waitFor();
    await page().keyboard.press('Escape');
    await field().waitFor({ state: 'detached' });
  });

  test('the breadcrumb switches branch and project, and stays on the kind of page', async () => {
    await ownProject({ branches: ['feature-x'] });
    const { program } = story();
    const { body } = await program.api('POST', '/projects', { project: { name: 'another' } });
    story().own.push(body.project.id);
    await open(at('/data'));
    await page().getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'main' }).waitFor();
    await button('Switch branch').click();
    await field().fill('feat');
    await page().keyboard.press('Enter');
    await page().waitForURL((url) => url.pathname === at('/data') && url.searchParams.has('branch'));
    await page().getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'feature-x' }).click();
    await page().getByRole('heading', { name: 'feature-x' }).waitFor();
    await open(at('/settings'));
    await button('Switch project').click();
    await option(/^another/).click();
    await page().waitForURL((url) => url.pathname === `/projects/${body.project.id}/settings`);
    await button('Switch organization').click();
    await page().keyboard.press('Enter');
    await page().getByRole('heading', { name: 'Projects' }).waitFor();
    await program.settle(body.project.id);
  });

  test('a thousand branches are one line each, drawn as far as they are seen, found and sorted', async () => {
    await ownProject();
    const { branches } = (await story().program.api('GET', at('/branches'))).body;
    const [main] = branches;
    // Branches that exist are slow to make; what is tried here is what the page does with the answer.
    const many = Array.from({ length: 1_000 }, (_, n) => ({
      ...main,
      id: `br-many-${n}`,
      name: `preview/pr-${n + 1}`,
      parent_id: n < 10 ? main.id : `br-many-${n % 10}`,
      default: false,
      logical_size: 30_000_000 + n,
    }));
    const pattern = '**/api/v2/projects/*/branches?*';
    await page().route(pattern, (route) => route.fulfill({ json: { branches: [main, ...many], annotations: {} } }));
    await open(at());
    await page().getByText('1,001 branches, 1 of 1 computes awake').waitFor();
    expect(await lines().count()).toBeLessThan(60);
    await photograph(page(), 'a thousand branches');
    expect(await violationsOf(page())).toEqual([]);
    await button('Collapse all').click();
    await branchNode('preview/pr-1').waitFor({ state: 'detached' });
    expect(await lines().count()).toBe(1);
    await button('Expand main').click();
    expect(await lines().count()).toBe(11);
    await button('Expand preview/pr-3').click();
    await branchNode('preview/pr-13').getByText('from preview/pr-3').waitFor();
    await page().getByRole('button', { name: 'Data', exact: true }).click();
    await page().getByRole('button', { name: 'Data', exact: true }).click();
    await branchNode('preview/pr-993').waitFor();
    await page().getByLabel('Search branches').fill('PR-77');
    await page().getByText('11 of 1,001 branches').waitFor();
    await page().unroute(pattern);
  });

  test('operations name and link what they are about, and begin a failure with its cause', async () => {
    await ownProject({ branches: ['feature-x'] });
    const { operations } = (await story().program.api('GET', at('/operations'))).body;
    const [first] = operations;
    const failed = {
      ...first,
      id: '00000000-0000-4000-8000-00000000000f',
      action: 'start_compute',
      status: 'error',
      failures_count: 1,
      error: 'the server could not start: out of memory',
      branch_id: await branchIdOf('feature-x'),
      total_duration_ms: 170,
    };
    const pattern = '**/api/v2/projects/*/operations?*';
    await page().route(pattern, (route) => route.fulfill({ json: { operations: [failed, ...operations] } }));
    await open(at('/operations'));
    const line = row(/^Could not start the compute of feature-x/);
    expect((await line.innerText()).replaceAll(/\s+/g, ' ')).toMatch(
      /^Could not start the compute of feature-x The server could not start: out of memory\. failed .* 170 ms$/,
    );
    await row(/^Created branch feature-x finished/).waitFor();
    await line.getByRole('link', { name: 'feature-x' }).click();
    await page().getByRole('heading', { name: 'feature-x' }).waitFor();
    await page().unroute(pattern);
  });
}
