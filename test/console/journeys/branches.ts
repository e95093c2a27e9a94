/** Branches: made, changed, compared, restored, protected, deleted. */
import pg from 'pg';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { eventually } from '../../helpers/eventually.ts';
import {
  at,
  branchIdOf,
  branchNode,
  button,
  confirm,
  confirmTyped,
  dialog,
  open,
  ownProject,
  photograph,
  runSql,
  story,
  uriOf,
  walkTo,
} from './story.ts';

export function branches(): void {
  test('are made from another one, and stand below it in the tree', async () => {
    const { page } = story();
    await ownProject();
    await open(at());
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('feature-x');
    await confirm('Create branch');
    await page.getByRole('heading', { name: 'feature-x' }).waitFor();
    await page.getByText('Active', { exact: true }).waitFor();
    await page.getByText(/shared,.*written/).waitFor();
    await walkTo(at());
    await branchNode('feature-x').getByText('from main').waitFor();
    await button('Collapse main').click();
    await branchNode('feature-x').waitFor({ state: 'detached' });
    await branchNode('main').getByText('+1', { exact: true }).waitFor();
    await button('Expand main').click();
    await branchNode('feature-x').waitFor();
  });

  test('are changed, compared with their parent, and reset to it', async () => {
    await ownProject({ invoices: true, branches: ['feature-x'] });
    const { page, program, project } = story();
    const branchId = await branchIdOf('feature-x');
    await open(at(`/sql?branch=${branchId}`));
    await runSql('alter table invoices add column paid boolean');
    await page.getByText('ALTER TABLE', { exact: true }).waitFor();
    await walkTo(at(`/branches/${branchId}`));
    await button('Compare').click();
    await page.getByText(/^\+.*paid boolean/).waitFor();
    expect(new URL(page.url()).search).toBe(`?against=${await branchIdOf('main')}&compared=true`);
    await button('Reset or restore').click();
    await confirm('Restore');
    await program.settle(project.id);
    await button('Compare again').click();
    await page.getByText('Both have the same schema.').waitFor();
  });

  test('expire, keep what they had when restored, and are deleted with their name typed', async () => {
    await ownProject({ branches: ['feature-x'] });
    const { page, program, project } = story();
    await open(at(`/branches/${await branchIdOf('feature-x')}`));
    await button('Expiry').click();
    await dialog().getByLabel('Expires').selectOption('7');
    await confirm('Save');
    await page.getByText(/^in (7|6\.9) days$/).waitFor();
    await button('Expiry').click();
    await dialog().getByLabel('Expires').selectOption('');
    await confirm('Save');
    await page.getByText('never', { exact: true }).waitFor();
    await button('Reset or restore').click();
    await dialog()
      .getByLabel(/^Keep the present data/)
      .fill('kept');
    await confirm('Restore');
    await page.getByText('Last restored').waitFor();
    await program.settle(project.id);
    await walkTo(at());
    await branchNode('kept').getByRole('link', { name: 'kept' }).click();
    await button('Rename').click();
    await dialog().getByLabel('Name').fill('put-away');
    await confirm('Rename');
    await page.getByRole('heading', { name: 'put-away' }).waitFor();
    await button('Reset or restore').waitFor();
    expect(await page.getByText('This branch has no').count()).toBe(0);
  });

  test('are kept as snapshots, which come back beside them and take their place', async () => {
    await ownProject({ invoices: true });
    const { page, program, project } = story();
    await open(at(`/branches/${await branchIdOf('main')}`));
    await button('Take a snapshot').click();
    await dialog().getByLabel('Name').fill('monday');
    await confirm('Take snapshot');
    await program.settle(project.id);
    await button('Schedule').click();
    await dialog().getByLabel('Frequency').selectOption('weekly');
    await dialog().getByLabel('On', { exact: true }).selectOption('5');
    await confirm('Save');
    await page.getByText(/One is taken weekly on Friday at 00:00 UTC, kept for 7 days/).waitFor();
    await walkTo(at('/sql'));
    await runSql('delete from invoices');
    await page.getByText('DELETE: 2 rows').waitFor();
    await walkTo(at(`/branches/${await branchIdOf('main')}`));
    await button('Restore monday').click();
    await dialog().getByLabel('Name of the new branch').fill('looked-at');
    await confirm('Restore');
    await page.getByRole('heading', { name: 'looked-at' }).waitFor();
    await program.settle(project.id);
    await button('Replace main').click();
    await dialog()
      .getByLabel(/^New name/)
      .fill('emptied');
    await confirm('Replace');
    await page.getByRole('heading', { name: 'main', exact: true }).waitFor();
    await program.settle(project.id);
    await walkTo(at(`/sql?branch=${await branchIdOf('main')}`));
    await runSql('select count(*) as n from invoices');
    await page.getByRole('gridcell', { name: '2' }).waitFor();
    await walkTo(at(`/branches/${await branchIdOf('emptied')}`));
    await button('Delete monday').click();
    await confirm('Delete snapshot');
    await page.getByText('There are no snapshots in this project yet.').waitFor();
    expect((await program.api('GET', `/projects/${project.id}/snapshots`)).body.snapshots).toEqual([]);
  });

  test('go back to a moment of their own past, and keep the present', async () => {
    await ownProject({ invoices: true });
    const { page, program, project } = story();
    const branchId = await branchIdOf('main');
    const history = async () => (await program.api('GET', at(`/branches/${branchId}/history`))).body.history;
    // The history is a moment behind the branch, and the table has to be in it.
    const made = await walPosition();
    const before = await eventually(async () => {
      const found = await history();
      expect(placeOf(found.until_lsn ?? '0/0')).toBeGreaterThanOrEqual(placeOf(made));
      return found;
    });
    await open(at(`/sql?branch=${branchId}`));
    await runSql('drop table invoices');
    await page.getByText('DROP TABLE', { exact: true }).waitFor();
    await walkTo(at(`/branches/${branchId}`));
    await page.getByText(/of log and .* in 1 base image/).waitFor();
    await page.getByLabel('Moment', { exact: true }).fill(before.until_lsn);
    // First a look, which changes nothing and lets nothing be changed.
    await page.getByRole('link', { name: 'Look at it' }).click();
    await page.getByRole('gridcell', { name: 'Ada', exact: true }).waitFor();
    await page.getByText(`main as it was at ${before.until_lsn}, read only`).waitFor();
    expect(await button('Insert row').count()).toBe(0);
    await photograph(page, 'a look into the past');
    await button('Back to now').click();
    await page.getByText('This database has no table yet.').waitFor();
    await walkTo(at(`/branches/${branchId}`));
    await page.getByLabel('Moment', { exact: true }).fill(before.until_lsn);
    await page.getByRole('link', { name: 'Query it' }).click();
    await page.getByText(`main as it was at ${before.until_lsn}, read only`).waitFor();
    await runSql('select customer from invoices');
    await page.getByRole('gridcell', { name: 'Ada', exact: true }).waitFor();
    await runSql('delete from invoices');
    await page
      .getByRole('alert')
      .getByText(/cannot execute DELETE in a read-only transaction|during recovery/)
      .waitFor();
    // By the keyboard, from the end of the line a second back and forth, although the end goes on with the clock.
    await eventually(async () => {
      const { from, until } = await history();
      expect(Date.parse(until) - Date.parse(from)).toBeGreaterThan(3_000);
    });
    await open(at(`/branches/${branchId}`));
    const line = page.getByLabel('Moment on the time line');
    const written = page.getByLabel('Moment', { exact: true });
    await line.press('End');
    const last = await written.inputValue();
    await laterHistory(branchId);
    expect(await written.inputValue()).toBe(last);
    await line.press('ArrowLeft');
    expect(Date.parse(last) - Date.parse(await written.inputValue())).toBe(1_000);
    await line.press('ArrowRight');
    expect(await written.inputValue()).toBe(last);
    expect(await violationsInBothThemes(page)).toEqual([]);
    // A snapshot takes the moment as it is written there.
    await button('Take a snapshot').click();
    await dialog().getByLabel('At', { exact: true }).fill(last);
    await confirm('Take snapshot');
    await program.settle(project.id);
    await page.getByLabel('Moment', { exact: true }).fill(before.until_lsn);
    await button('Restore to it').click();
    await dialog()
      .getByLabel(/^Keep the present data/)
      .fill('without-invoices');
    await photograph(page, 'a moment of the past');
    await confirm('Restore');
    await program.settle(project.id);
    await page.getByText('Last restored').waitFor();
    await walkTo(at(`/sql?branch=${branchId}`));
    await runSql('select count(*) as invoices from invoices');
    await page.getByRole('columnheader', { name: 'invoices' }).waitFor();
  });

  test('that are protected are not deleted, and are written to only after a question', async () => {
    const { page } = story();
    await ownProject({ invoices: true, branches: ['feature-x'] });
    const branchId = await branchIdOf('feature-x');
    await open(at(`/branches/${branchId}`));
    await page.getByRole('heading', { name: 'feature-x' }).waitFor();
    await button('Protect').click();
    await confirm('Protect');
    await page.getByText('A protected branch cannot be deleted.').waitFor();
    await walkTo(at(`/sql?branch=${branchId}`));
    await runSql('select count(*) as n from invoices');
    await page.getByRole('gridcell', { name: '2' }).waitFor();
    await runSql('delete from invoices');
    await dialog().getByText('Write to the protected branch feature-x?').waitFor();
    await confirm('Cancel');
    await page.getByText('Not run: the branch is protected.').waitFor();
    await runSql('delete from invoices where id = 2');
    await confirm('Run it');
    await page.getByText('DELETE: 1 row').waitFor();
  });

  test('are deleted with their name typed', async () => {
    const { page } = story();
    await ownProject();
    await open(at());
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('short');
    await dialog()
      .getByLabel(/^Add a compute/)
      .uncheck();
    await confirm('Create branch');
    await page.getByRole('heading', { name: 'short' }).waitFor();
    await page.getByText('No compute: nobody can connect').waitFor();
    const parent = await branchIdOf('short');
    await story().program.settle(story().project.id);
    const { body } = await story().program.api('POST', at('/branches'), {
      branch: { name: 'below', parent_id: parent },
    });
    await story().program.settle(story().project.id);
    await open(at(`/branches/${parent}`));
    // What cannot work is said before anybody types a name.
    await button('Delete').click();
    await dialog().getByText('short cannot be deleted while it has children.').waitFor();
    await dialog().getByRole('link', { name: 'below' }).waitFor();
    expect(await dialog().getByLabel(/^Type/).count()).toBe(0);
    await confirm('Close');
    await story().program.api('DELETE', at(`/branches/${body.branch.id}`));
    await open(at(`/branches/${parent}`));
    await button('Delete').click();
    expect(await button('Delete branch').isDisabled()).toBe(true);
    await confirmTyped('short', 'Delete branch');
    await page.getByText('Branch short is deleted.').waitFor();
    await branchNode('short').waitFor({ state: 'detached' });
  });
}

/** How far the log of `main` has come. */
async function walPosition(): Promise<string> {
  const client = new pg.Client({ connectionString: await uriOf('main') });
  await client.connect();
  const { rows } = await client.query('select pg_current_wal_lsn()::text as lsn');
  await client.end();
  return rows[0].lsn;
}

const placeOf = (lsn: string) => {
  const [high = 0, low = 0] = lsn.split('/').map((part) => Number.parseInt(part, 16));
  return high * 2 ** 32 + low;
};

/** The page asks for the history again, as it does twice a minute, and hears that three more seconds are kept. */
async function laterHistory(branchId: string): Promise<void> {
  const { page } = story();
  const end = page.locator('.time-ends time').last();
  const before = await end.getAttribute('datetime');
  await page.route(`**/branches/${branchId}/history`, async (route) => {
    const reply = await route.fetch();
    const { history } = await reply.json();
    const until = new Date(Date.parse(history.until) + 3_000).toISOString();
    await route.fulfill({ response: reply, json: { history: { ...history, until } } });
  });
  await eventually(async () => {
    await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
    expect(await end.getAttribute('datetime')).not.toBe(before);
  });
  await page.unrouteAll();
}
