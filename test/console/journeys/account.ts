/** API keys of the three kinds, and the plan of the organization. */
import { expect, test } from 'vitest';
import {
  at,
  button,
  confirm,
  dialog,
  expectFitDialog,
  newPage,
  open,
  ownProject,
  row,
  sharedProject,
  story,
} from './story.ts';

interface Limits {
  readonly scope: string;
  readonly days: string;
}

async function makeKey(name: string, kind: string, project?: string, limits?: Limits): Promise<string> {
  await button('New key').click();
  await dialog().getByLabel('Name').fill(name);
  await dialog().getByLabel('Kind').selectOption(kind);
  if (project !== undefined) await dialog().getByLabel('Project').selectOption({ label: project });
  if (limits !== undefined) {
    await dialog().getByLabel('May', { exact: true }).selectOption(limits.scope);
    await dialog().getByLabel('Expires').selectOption(limits.days);
  }
  await expectFitDialog();
  await button('Create key').click();
  const key = await story().page.locator('.secret code').innerText();
  expect(key).toMatch(/^napi_/);
  await confirm('Close');
  return key;
}

export function account(): void {
  test('a dialog that is quicker than the server is filled in when the answer comes', async () => {
    const { page } = story();
    await sharedProject();
    const organizations = '**/users/me/organizations';
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(organizations, (route) => held.then(() => route.continue()));
    await open('/keys');
    await button('New key').click();
    await dialog().getByLabel('Name').fill('early');
    await dialog().getByLabel('Kind').selectOption('project');
    expect(await button('Create key').isDisabled()).toBe(true);
    answer();
    await dialog().getByLabel('Project').selectOption({ label: 'billing' });
    expect(await button('Create key').isEnabled()).toBe(true);
    await confirm('Cancel');
    await page.unroute(organizations);
  });

  test('keys of one project sign in to that project alone, until they are revoked', async () => {
    const { page, browser, baseURL } = story();
    await ownProject();
    const { name: elsewhere } = story().project;
    await sharedProject();
    await open('/keys');
    const key = await makeKey('deploy', 'project', 'billing');
    const other = await browser.visit({ baseURL });
    const theirs = await newPage(other);
    await theirs.goto(at());
    await theirs.getByLabel('API key').fill('napi_wrong');
    await button('Sign in', theirs).click();
    await theirs.getByText('this key does not work here').waitFor();
    await theirs.getByLabel('API key').fill(key);
    await button('Sign in', theirs).click();
    await theirs.getByRole('heading', { name: 'billing' }).waitFor();
    await theirs.getByRole('link', { name: 'Projects', exact: true }).click();
    await theirs.getByText('billing').first().waitFor();
    expect(await theirs.getByText(elsewhere).count()).toBe(0);
    expect(await theirs.getByRole('link', { name: 'API keys' }).count()).toBe(0);
    await row(/deploy/)
      .getByRole('button', { name: 'Revoke' })
      .click();
    await confirm('Revoke key');
    await page.getByText('no longer works').waitFor();
    // Without a reload: the page notices, and says why.
    await theirs.getByRole('heading', { name: 'Sign in' }).waitFor();
    await theirs.getByText(/^Your session has ended: its key was revoked/).waitFor();
    await other.close();
  });

  test('keys of the organization, and of a person, are made and revoked', async () => {
    await open('/keys');
    for (const kind of ['organization', 'personal']) {
      await makeKey(`of-${kind}`, kind);
      await row(new RegExp(`of-${kind}`))
        .getByRole('button', { name: 'Revoke' })
        .click();
      await confirm('Revoke key');
      await row(new RegExp(`of-${kind}`)).waitFor({ state: 'detached' });
    }
  });

  test('a key of limited scope is shown as one, and neither sees nor makes keys', async () => {
    const { browser, baseURL } = story();
    await open('/keys');
    const key = await makeKey('agent', 'personal', undefined, { scope: 'branches', days: '30' });
    const cells = await row(/agent/).getByRole('cell').allInnerTexts();
    expect(cells.slice(1, 3)).toEqual(['everything', 'branches']);
    expect(cells[5]).toMatch(/\d{4}/);
    const other = await browser.visit({ baseURL });
    const theirs = await newPage(other);
    await theirs.goto('/keys');
    await theirs.getByLabel('API key').fill(key);
    await button('Sign in', theirs).click();
    await theirs.getByText('A key of limited scope neither sees nor makes keys.').waitFor();
    await other.close();
    await row(/agent/).getByRole('button', { name: 'Revoke' }).click();
    await confirm('Revoke key');
    await row(/agent/).waitFor({ state: 'detached' });
  });

  test('the plan limits what sliders offer', async () => {
    const { page } = story();
    await open('/');
    await page.getByRole('link', { name: 'Organization', exact: true }).click();
    const plan = page.getByLabel('Plan');
    await plan.selectOption('free');
    await button('Change plan').click();
    await page.getByText('2 vCPU · 8 GB').waitFor();
    await page.getByRole('link', { name: 'Projects', exact: true }).click();
    await button('New project').click();
    await dialog().getByLabel('Size').press('End');
    await dialog().getByText('2 vCPU · 8 GB').waitFor();
    await confirm('Cancel');
    await page.getByRole('link', { name: 'Organization', exact: true }).click();
    await plan.selectOption('scale');
    await button('Change plan').click();
    await page.getByText('2 vCPU · 8 GB').waitFor({ state: 'detached' });
  });
}
