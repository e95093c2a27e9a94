/** Finding the way: command palette, breadcrumb, many branches, and operations that name what they are about. */
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { eventually } from '../../helpers/eventually.ts';
import { addBranchRows } from './branch-rows.ts';
import {
  at,
  branchIdOf,
  branchNode,
  button,
  open,
  ownProject,
  photograph,
  row,
  runDirectly,
  story,
  uriOf,
} from './story.ts';

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
    expect(await violationsInBothThemes(page())).toEqual([]);
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
    await page().getByText('No matches.').waitFor();
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
    await addBranchRows(1_000);
    await open(at());
    await page().getByText('1,001 branches, 1 of 1 computes awake').waitFor();
    expect(await lines().count()).toBeLessThan(60);
    await photograph(page(), 'a thousand branches');
    expect(await violationsInBothThemes(page())).toEqual([]);
    await button('Collapse all').click();
    await branchNode('preview/pr-1').waitFor({ state: 'detached' });
    await eventually(async () => expect(await lines().count()).toBe(1));
    await button('Expand main').click();
    await eventually(async () => expect(await lines().count()).toBe(11));
    await button('Expand preview/pr-3').click();
    await branchNode('preview/pr-13').getByText('from preview/pr-3').waitFor();
    await page().getByRole('button', { name: 'Data', exact: true }).click();
    await page().getByRole('button', { name: 'Data', exact: true }).click();
    await branchNode('preview/pr-993').waitFor();
    await page().getByLabel('Search branches').fill('PR-77');
    await page().getByText('11 of 1,001 branches').waitFor();
  });

  test('operations name and link what they are about, and begin a failure with its cause', async () => {
    await ownProject({ branches: ['feature-x'] });
    const { program, project } = story();
    const databases = at(`/branches/${await branchIdOf('feature-x')}/databases`);
    await program.api('POST', databases, { database: { name: 'ledger', owner_name: 'neondb_owner' } });
    await program.settle(project.id);
    // SQL has made a database of that name meanwhile, so the server refuses to give it to another one.
    await runDirectly(await uriOf('feature-x'), 'create database archive');
    await program.api('PATCH', `${databases}/ledger`, { database: { name: 'archive' } });
    await program.settle(project.id);
    await open(at('/operations'));
    const line = row(/^Could not /);
    // The name of the branch comes with another answer than the operations.
    await eventually(async () =>
      expect((await line.innerText()).replaceAll(/\s+/g, ' ')).toMatch(
        /^Could not .* feature-x Database already exists.* failed /,
      ),
    );
    await row(/^Created branch feature-x finished/).waitFor();
    await page().getByLabel('Show').selectOption('Failed');
    await page().waitForURL(/status=failed$/);
    expect(await row(/^Created branch/).count()).toBe(0);
    await line.getByRole('link', { name: 'feature-x' }).click();
    await page().getByRole('heading', { name: 'feature-x' }).waitFor();
  });
}
