/** What a compute does: who waits for whom, what costs time, its locks and log, and the extensions of a database. */
import pg from 'pg';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../../helpers/accessibility.ts';
import { at, button, confirm, dialog, open, ownProject, photograph, row, story, uriOf } from './story.ts';

const page = () => story().page;
const tab = (name: string) => page().getByRole('tab', { name, exact: true });
const menuItem = (name: string) => page().getByRole('menuitem', { name, exact: true });

async function connectAs(name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: await uriOf('main'), application_name: name });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** Looks at everything about it in both themes. */
async function expectFit(name: string): Promise<void> {
  await photograph(page(), name);
  expect(await violationsInBothThemes(page()), name).toEqual([]);
}

export function activity(): void {
  test('who waits for whom is seen, and a statement and a session are stopped', async () => {
    await ownProject({ invoices: true });
    const holder = await connectAs('holder');
    const waiter = await connectAs('waiter');
    await holder.query("begin; update invoices set customer = 'Eve' where id = 1");
    const refused = expect(waiter.query('update invoices set customer = null where id = 1')).rejects.toMatchObject({
      code: '57014',
    });
    await open(at('/monitoring?view=sessions'));
    const blocked = row(/waiter/);
    await blocked.getByText(/^Waits for \d+ \(neondb_owner\).*ShareLock on transactionid$/).waitFor();
    await row(/holder/)
      .getByText('blocks 1 session')
      .waitFor();
    // Catnap's own sessions are not among them.
    const { sessions } = (await story().program.api('GET', `${await endpointPath()}/sessions`)).body;
    const roles = sessions.map(({ role }: { role?: string }) => role);
    expect(new Set(roles)).toEqual(new Set(['neondb_owner']));
    await expectFit('sessions');
    await tab('Locks').click();
    await row(/transaction \d+ waits/).waitFor();
    await row(/RowExclusiveLock invoices held/)
      .first()
      .waitFor();
    await expectFit('locks');
    await tab('Sessions').click();
    await button(/^Actions of session/, blocked).click();
    await menuItem('Cancel statement').click();
    await refused;
    await page().getByText('The statement is cancelled.').waitFor();
    // Not `once` of node:events, which an error fails: the server says one before it closes the connection.
    const ended = new Promise<void>((resolve) => {
      holder.once('end', () => resolve());
    });
    await button(/^Actions of session/, row(/holder/)).click();
    await menuItem('Terminate session').click();
    await expectFit('terminate session');
    await confirm('Terminate');
    await ended;
    await row(/holder/).waitFor({ state: 'detached' });
    await waiter.end();
    // What the server wrote about it is in its log.
    await tab('Log').click();
    await page().getByLabel('Search').fill('FATAL terminating');
    await page()
      .getByText(/terminating connection due to administrator command/)
      .first()
      .waitFor();
    await page().getByLabel('Show').selectOption('The server itself');
    await page().getByText('No entry matches.').waitFor();
    await page().getByLabel('Search').fill('');
    await page().getByLabel('Show').selectOption('Everything');
    await expectFit('log');
  });

  test('extensions are installed, and with one of them statements are counted', async () => {
    await ownProject({ invoices: true });
    await open(at('/monitoring?view=queries'));
    await button('Install it under Extensions').click();
    await page().getByLabel('Search').fill('pg_stat');
    await button('Install pg_stat_statements').click();
    await dialog().getByText('create extension "pg_stat_statements" cascade;').waitFor();
    await expectFit('install extension');
    await confirm('Install');
    await row(/^pg_stat_statements installed/).waitFor();
    await page().getByLabel('Search').fill('file_fdw');
    await row(/^file_fdw .*it reads server files and runs programs/).waitFor();
    await page().getByLabel('Search').fill('');
    await expectFit('extensions');
    await tab('Top queries').click();
    // What ran before the extension was there has been counted, too.
    await row(/create table invoices/).waitFor();
    await page().getByLabel('Order by').selectOption('Rows');
    await row(/create table invoices/).waitFor();
    await page()
      .getByRole('button', { name: /create table invoices/ })
      .click();
    await page().locator('.statement-open').getByText('values').waitFor();
    await expectFit('top queries');
    await tab('Extensions').click();
    await button('Remove pg_stat_statements').click();
    await confirm('Remove');
    await button('Install pg_stat_statements').waitFor();
  });
}

async function endpointPath(): Promise<string> {
  const { endpoints } = (await story().program.api('GET', at('/endpoints'))).body;
  return at(`/endpoints/${endpoints[0].id}`);
}
