/** Connection strings, roles and databases, and what a compute did. */
import { expect, test } from 'vitest';
import { eventually } from '../../helpers/eventually.ts';
import {
  at,
  button,
  confirm,
  confirmTyped,
  dialog,
  expectFitDialog,
  open,
  ownProject,
  row,
  sharedProject,
  story,
} from './story.ts';

export function data(): void {
  test('the connect dialog hides the password until it is asked for', async () => {
    const { page } = story();
    await sharedProject();
    await open(at('?connect=default'));
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
    await dialog().getByLabel('Pooled').check();
    await dialog()
      .getByText(/-pooler/)
      .waitFor();
    // What is chosen stands in the address, what is secret does not.
    expect(page.url()).not.toContain('npg_');
    await page.reload();
    await dialog()
      .getByText(/^import psycopg.*neondb_owner:••••.*-pooler/s)
      .waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    expect(page.url()).not.toMatch(/connect|pooled|client/);
  });

  test('roles are made, get new passwords, and are deleted once they own nothing', async () => {
    const { page } = story();
    await ownProject();
    await open(at('/data'));
    const roles = page.getByRole('region', { name: 'Roles' });
    await button('New role').click();
    await dialog().getByLabel('Name').fill('reader');
    await expectFitDialog();
    await button('Create role').click();
    await page.getByRole('heading', { name: 'Password of reader' }).waitFor();
    const password = await page.locator('.secret code').innerText();
    await confirm('Close');
    await row(/reader/, roles)
      .getByRole('button', { name: 'Reset' })
      .click();
    await expectFitDialog();
    await button('Reset password').click();
    await page.getByRole('heading', { name: 'Password of reader' }).waitFor();
    expect(await page.locator('.secret code').innerText()).not.toBe(password);
    await confirm('Close');
    const databases = page.getByRole('region', { name: 'Databases' });
    await button('New database').click();
    await dialog().getByLabel('Name').fill('reports');
    await dialog().getByLabel('Owner').selectOption('reader');
    await confirm('Create database');
    await row(/reader/, roles)
      .getByRole('button', { name: 'Delete' })
      .click();
    await dialog().getByLabel(/^Type/).fill('reader');
    await button('Delete role').click();
    await dialog()
      .getByText(/role owns databases/i)
      .waitFor();
    await confirm('Cancel');
    await row(/reports/, databases)
      .getByRole('button', { name: 'Edit' })
      .click();
    await dialog().getByLabel('Owner').selectOption('neondb_owner');
    await confirm('Save');
    await row(/reports neondb_owner/, databases).waitFor();
    await row(/reader/, roles)
      .getByRole('button', { name: 'Delete' })
      .click();
    await confirmTyped('reader', 'Delete role');
    await row(/reader/, roles).waitFor({ state: 'detached' });
    await row(/reports/, databases)
      .getByRole('button', { name: 'Delete' })
      .click();
    await confirmTyped('reports', 'Delete database');
    await row(/reports/, databases).waitFor({ state: 'detached' });
  });

  test('a compute is measured, and the graphs show it', async () => {
    const { page, program } = story();
    await sharedProject();
    const [{ id }] = (await program.api('GET', at('/endpoints'))).body.endpoints;
    await program.api('POST', at(`/endpoints/${id}/start`));
    await open(at());
    await page.getByRole('link', { name: 'Monitoring' }).click();
    // Measured every 15 seconds, and asked for as often.
    const memory = page.getByRole('figure').filter({ hasText: 'Memory' });
    await memory.getByText(/^in use [\d.]+ MB$/).waitFor();
    await page.locator('.uplot canvas').first().waitFor();
    await page.getByLabel('Last').selectOption('7d');
    await page.waitForURL(/range=7d/);
    await memory.getByText(/^in use [\d.]+ MB$/).waitFor();
    await page.reload();
    expect(await page.getByLabel('Last').inputValue()).toBe('7d');
  });

  test('settings of the project are kept', async () => {
    await ownProject();
    const { page, program, project } = story();
    await open(at());
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByLabel('Name of the project').fill(`${project.name}, a project with a name that is rather long`);
    await button('Save name').click();
    await page.getByRole('navigation', { name: 'Project' }).getByText('rather long').waitFor();
    await page.getByLabel('Name of the project').fill(project.name);
    await button('Save name').click();
    await page.getByLabel('Allowed addresses').fill('nowhere');
    await button('Save addresses').click();
    await page.locator('.notice.bad').getByText('must be an IP address').waitFor();
    await button('Dismiss', page.locator('.notice.bad')).click();
    await page.getByLabel('Allowed addresses').fill('127.0.0.1, 10.0.0.0/8');
    await page.getByLabel('Block public connections').check();
    await button('Save addresses').click();
    await page.getByLabel('Largest size').or(page.getByLabel('Size')).first().press('ArrowRight');
    await button('Save defaults').click();
    await page.getByText(/It takes [\d.]+ \w+ now\./).waitFor();
    await page.getByLabel('Kept for').selectOption('7 days');
    await button('Save history').click();
    await eventually(async () =>
      expect((await program.api('GET', at())).body.project).toMatchObject({
        name: project.name,
        history_retention_seconds: 604_800,
        settings: { allowed_ips: { ips: ['127.0.0.1', '10.0.0.0/8'] }, block_public_connections: true },
        default_endpoint_settings: { autoscaling_limit_min_cu: 0.5 },
      }),
    );
    await page.getByText('Saved.').first().waitFor();
  });

  test('logical replication is turned on after a question, and the maintenance window is kept', async () => {
    await ownProject();
    const { page, program } = story();
    await open(at('/settings'));
    await button('Turn on logical replication').click();
    await confirm('Turn on');
    await page.getByText('It cannot be turned off again.').waitFor();
    await page.getByLabel('Monday').check();
    await page.getByLabel('To (UTC)').fill('08:30');
    await button('Save window').click();
    await eventually(async () =>
      expect((await program.api('GET', at())).body.project.settings).toMatchObject({
        enable_logical_replication: true,
        maintenance_window: { weekdays: [1, 7], start_time: '06:00', end_time: '08:30' },
      }),
    );
  });
}
