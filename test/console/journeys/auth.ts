/** Auth: from one button to a row in `neon_auth.users_sync`, then everything else on the page. */
import { expect, test } from 'vitest';
import { at, button, confirm, dialog, expectFitDialog, open, ownProject, row, runDirectly, story } from './story.ts';

const cell = (name: string) => story().page.getByRole('cell', { name, exact: true });

export function auth(): void {
  test('is set up with one button, and a user who is made appears in the table', async () => {
    const { page } = story();
    await ownProject();
    await open(at('/auth'));
    await button('Set up auth').click();
    await dialog()
      .getByText(/STACK_SECRET_SERVER_KEY=/)
      .waitFor();
    await confirm('Close');
    for (const [email, name] of [
      ['ada@example.com', 'Ada'],
      ['grace@example.com', 'Grace'],
    ] as const) {
      await button('New user').click();
      await page.getByLabel('Email').fill(email);
      await dialog().getByLabel('Name').fill(name);
      await confirm('Create user');
      await cell(email).waitFor();
    }
    await page.getByText(/^Up to date\. Last copied/).waitFor();
    await page.getByLabel('Search').fill('GRA');
    await cell('ada@example.com').waitFor({ state: 'detached' });
    await page.waitForURL(/q=GRA/);
    await row(/grace@example/)
      .getByRole('button', { name: 'Delete' })
      .click();
    await confirm('Delete user');
    await page.getByText('Nobody has “GRA” in email or name.').waitFor();
    await page.getByLabel('Search').fill('');
    await cell('ada@example.com').waitFor();
  });

  test('makes users without a password, who set one by mail and sign in with it', async () => {
    const { page, program } = story();
    await ownProject({ auth: true });
    const order = { auth_provider: 'stack', project_id: story().project.id };
    const { body: keys } = await program.api('POST', '/projects/auth/keys', order);
    const askProvider = async (path: string, body: object) => {
      const headers = {
        'content-type': 'application/json',
        'x-stack-access-type': 'client',
        'x-stack-project-id': keys.auth_provider_project_id,
        'x-stack-publishable-client-key': keys.pub_client_key,
      };
      const reply = await fetch(`${keys.base_url}/api/v1${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      return { status: reply.status, body: JSON.parse(await reply.text()) };
    };
    const login = { email: 'ada@example.com', password: 'correct horse' };
    await open(at('/auth'));
    await button('New user').click();
    await dialog()
      .getByText(/^There is no password at first/)
      .waitFor();
    await page.getByLabel('Email').fill(login.email);
    await confirm('Create user');
    await cell(login.email).waitFor();
    const early = await askProvider('/auth/password/sign-in', login);
    expect([early.status, early.body.code]).toEqual([400, 'EMAIL_PASSWORD_MISMATCH']);
    const forgotten = { email: login.email, callback_url: 'http://localhost:3000/reset' };
    expect((await askProvider('/auth/password/send-reset-code', forgotten)).status).toBe(200);
    await page.getByRole('tab', { name: 'Mails' }).click();
    await page.getByText(`to ${login.email}`).click();
    const link = /http:\S+reset\?code=\S+/.exec(await page.locator('details[open] pre').innerText())?.[0] ?? '';
    const code = new URL(link).searchParams.get('code');
    expect((await askProvider('/auth/password/reset', { code, password: login.password })).status).toBe(200);
    expect((await askProvider('/auth/password/sign-in', login)).status).toBe(200);
  });

  test('says what keeps users from being copied, until it is put right', async () => {
    const { page, program } = story();
    await ownProject({ auth: true });
    const { uri } = (await program.api('GET', at('/connection_uri?database_name=neondb&role_name=neondb_owner'))).body;
    const run = (query: string) => runDirectly(uri, query);
    await open(at('/auth'));
    await page.getByText(/^Up to date\. Last copied/).waitFor();
    await run(`alter table neon_auth.users_sync add constraint nobody_else check (email <> 'eve@example.com')`);
    await button('New user').click();
    await page.getByLabel('Email').fill('eve@example.com');
    await confirm('Create user');
    await page.getByText('Users cannot be copied into the database.').waitFor();
    await page.getByText(/violates check constraint "nobody_else"/).waitFor();
    await run('alter table neon_auth.users_sync drop constraint nobody_else');
    await cell('eve@example.com').waitFor();
    await page.getByText('Users cannot be copied into the database.').waitFor({ state: 'detached' });
    // Many of them come in pages.
    await run(`insert into neon_auth.users_sync (raw_json) select jsonb_build_object('id', 'many-' || n, 'display_name',
      'Many', 'primary_email', 'many' || n || '@example.com', 'signed_up_at_millis', 1000000 - n)
      from generate_series(1, 30) n`);
    await page.getByLabel('Search').fill('many');
    await cell('many25@example.com').waitFor();
    expect(await cell('many26@example.com').count()).toBe(0);
    await button('Next').click();
    await cell('many30@example.com').waitFor();
    expect(new URL(page.url()).searchParams.get('page')).toBe('2');
    expect(await button('Next').isDisabled()).toBe(true);
  });

  test('has domains and OAuth providers, which come and go', async () => {
    const { page } = story();
    await ownProject({ auth: true });
    await open(at('/auth?view=sign-in'));
    await page.getByLabel('Domain').fill('https://app.example.com');
    await button('Add').click();
    await page.getByText('https://app.example.com', { exact: true }).waitFor();
    await button('Remove').click();
    await confirm('Remove domain');
    await page.getByText('None yet: add where your app runs.').waitFor();
    await page.getByText('None: people sign in with email and password.').waitFor();
    await button('Add provider').click();
    await dialog().getByLabel('Provider').selectOption('microsoft');
    await dialog()
      .getByText(/\/stack\/api\/v1\/auth\/oauth\/callback\/microsoft$/)
      .waitFor();
    await button('Add', dialog()).click();
    await dialog()
      .getByText(/shared keys belong to the hosted service/i)
      .waitFor();
    await dialog().getByLabel('Client id').fill('our-client');
    await dialog().getByLabel('Client secret').fill('our-secret');
    await confirm('Add');
    await page.getByText('client our-client').waitFor();
    await page.getByText('usable').waitFor();
    await button('Edit Microsoft').click();
    await dialog().getByLabel('Client id').fill('our-other-client');
    await confirm('Save');
    await page.getByText('client our-other-client').waitFor();
    await button('Remove Microsoft').click();
    await confirm('Remove');
    await page.getByText('client our-other-client').waitFor({ state: 'detached' });
  });

  test('gives new keys, and a page to hand it over on', async () => {
    const { page } = story();
    await ownProject({ auth: true });
    await open(at('/auth?view=keys'));
    await button('New SDK keys').click();
    await expectFitDialog();
    await button('Create keys', dialog()).click();
    await button('Copy the lines').click();
    const lines = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(lines).toMatch(/^NEXT_PUBLIC_STACK_PUBLISHABLE_CLIENT_KEY=\w+$/m);
    await confirm('Close');
    await button('Transfer ownership').click();
    await expectFitDialog();
    await button('Begin transfer').click();
    const link = page.getByRole('link', { name: 'Choose the account' });
    const offered = await fetch((await link.getAttribute('href')) ?? '');
    expect(offered.status).toBe(200);
    await page.keyboard.press('Escape');
    await page.getByText('a transfer has begun').waitFor();
  });

  test('is deleted with its users, and can be set up again', async () => {
    const { page } = story();
    await ownProject({ auth: true });
    await open(at('/auth?view=keys'));
    await button('Delete integration').click();
    await dialog().getByLabel('Also delete the users').check();
    await confirm('Delete integration');
    await button('Set up auth').click();
    await dialog()
      .getByText(/STACK_SECRET_SERVER_KEY=/)
      .waitFor();
    await confirm('Close');
    await page.getByRole('tab', { name: 'Users' }).click();
    await page.getByText('There is nobody yet.').waitFor();
  });
}
