/** What the console shows when something is wrong; and that the keyboard alone is enough. */
import { expect, test } from 'vitest';
import {
  at,
  branchNode,
  button,
  confirm,
  dialog,
  newPage,
  open,
  ownProject,
  photograph,
  sharedProject,
  story,
  walkTo,
} from './story.ts';

/** What the console reads of a history in the store. */
const history = { history_id: 'a', project_id: 'quiet-cat-1', base_count: 1, behind_seconds: 400, gone_since: null };

export function trouble(): void {
  test('what is not there is said to be not there', async () => {
    const { page } = story();
    await sharedProject();
    await open('/projects/no-such-project');
    await page.getByRole('alert').getByText('project not found').waitFor();
    await walkTo(at('/branches/br-none'));
    await page.getByText('This branch is not there any more.').waitFor();
    await walkTo(at('/nowhere'));
    await page.getByText('There is no such page.').waitFor();
  });

  test('a project that is deleted elsewhere is not shown on', async () => {
    const { page, program } = story();
    const { body } = await program.api('POST', '/projects', { project: { name: 'brief' } });
    await open(`/projects/${body.project.id}`);
    await page.getByRole('heading', { name: 'brief' }).waitFor();
    await program.api('DELETE', `/projects/${body.project.id}`);
    // Each part of the page may notice it first.
    await page.getByRole('alert').getByText('project not found').first().waitFor();
    await page.getByRole('heading', { name: 'brief' }).waitFor({ state: 'detached' });
  });

  test('backups that fail are told on top of the page, and explained under About', async () => {
    const { page, program } = story();
    const { body } = await program.api('GET', '/backup');
    const alerts = ['Backups fail since today: no space is left', 'The last verification failed'];
    const failing = {
      state: 'failing',
      alerts,
      url: 'file:///mnt/backup',
      verified_at: body.read_at,
      verified_ok: false,
      histories: [
        { ...history, snapshot_id: null },
        { ...history, history_id: 'b', snapshot_id: 'snap-1' },
      ],
    };
    await page.route('**/api/v2/backup', (route) => route.fulfill({ json: { ...body, ...failing } }));
    await open('/about');
    const banner = page.getByRole('status').filter({ hasText: 'no space is left' });
    await banner.getByText('(and 1 more)').waitFor();
    await page.getByText('1 branch, 1 snapshot').waitFor();
    await page.getByText('not in order').waitFor();
    expect(await page.getByRole('listitem').filter({ hasText: 'The last verification failed' }).count()).toBe(1);
    await photograph(page, 'backups that fail');
    await page.unroute('**/api/v2/backup');
  });

  test('a failure of the server is shown with the id to look for, and can be tried again', async () => {
    const { page } = story();
    await sharedProject();
    const failing = '**/api/v2/projects/*/operations?*';
    const reply = { message: 'something broke', code: 'INTERNAL', request_id: 'request-42' };
    await page.route(failing, (route) => route.fulfill({ status: 500, json: reply }));
    await open(at('/operations'));
    await page.getByRole('alert').getByText('request-42').waitFor();
    await button('Try again').waitFor();
    await page.unroute(failing);
    // It may look again by itself first, and then there is nothing to press.
    await button('Try again')
      .click({ timeout: 1_000 })
      .catch(() => undefined);
    await page.getByText('Created the first branch').first().waitFor();
  });

  test('a refusal of the API is shown in the dialog, and nothing that was typed is lost', async () => {
    await sharedProject();
    await open(at());
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('main');
    await button('Create branch').click();
    await dialog().getByRole('alert').waitFor();
    expect(await dialog().getByLabel('Name').inputValue()).toBe('main');
    await confirm('Cancel');
  });

  test('the keyboard opens a dialog, stays in it, leaves it, and is back where it was', async () => {
    const { page } = story();
    await sharedProject();
    await open(at());
    // The page takes the focus for itself while it loads.
    await branchNode('main').waitFor();
    const focused = () => page.evaluate<string>('document.activeElement?.textContent?.trim() ?? ""');
    await button('New branch').focus();
    await page.keyboard.press('Enter');
    await dialog().waitFor();
    for (let i = 0; i < 12; i += 1) {
      await page.keyboard.press('Tab');
      const place =
        "document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement)";
      expect(await page.evaluate<boolean>(place)).toBe(true);
    }
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    expect(await focused()).toBe('New branch');
    await page.keyboard.press('Home');
    await page.reload();
    await branchNode('main').waitFor();
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the page');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await page.evaluate<boolean>("document.querySelector('main').contains(document.activeElement)")).toBe(true);
  });

  test('a page from before an upgrade loads itself anew when a script of it has another name now', async () => {
    const { browser, baseURL, visitor } = story();
    const newcomer = await browser.visit({ baseURL });
    await newcomer.addCookies((await visitor.storageState()).cookies);
    const page = await newPage(newcomer);
    // The server answers a name that it does not know as it does after an upgrade: 404.
    const script = /\/assets\/keys-[^/]+\.js$/;
    await page.route(script, (route) => route.continue({ url: `${baseURL}/assets/keys-of-an-older-build.js` }));
    await page.goto('/about');
    await page.getByRole('heading', { name: 'About' }).waitFor();
    const loadedAnew = page.waitForEvent('load');
    await walkTo('/keys', page);
    await loadedAnew;
    // The first reload has not helped, and there is no second one.
    await page.getByRole('alert').getByText('Reload the page.').waitFor();
    for (const fault of story().faults.splice(0)) expect(fault).toContain('A script of this page could not be loaded');
    await page.unroute(script);
    await button('Try again', page).click();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    await newcomer.close();
  });

  test('a server that is gone is noticed, and the page goes on when it is back', async () => {
    await ownProject();
    const { page, program, browser, baseURL, visitor, project } = story();
    await open(at());
    await branchNode('main').waitFor();
    const fresh = await newPage(visitor);
    await fresh.goto('/keys');
    await fresh.getByRole('heading', { name: 'API keys' }).waitFor();
    await fresh.goto('/about');
    // Somebody who has never been on another page, so that no script of one is in the browser's cache.
    const newcomer = await browser.visit({ baseURL });
    await newcomer.addCookies((await visitor.storageState()).cookies);
    const unread = await newPage(newcomer);
    await unread.goto('/about');
    await unread.getByRole('heading', { name: 'About' }).waitFor();
    await program.stop();
    await page.getByText(/^Catnap does not answer/).waitFor();
    expect(await branchNode('main').count()).toBe(1);
    await button('New branch').click();
    await dialog().getByLabel('Name').fill('into-nothing');
    await button('Create branch').click();
    await dialog().getByText('Catnap does not answer. Is it running?').waitFor();
    await confirm('Cancel');
    await walkTo('/keys', fresh);
    await fresh.getByRole('alert').getByText('Not reachable').first().waitFor();
    await walkTo('/keys', unread);
    await unread.getByText(/^Catnap does not answer/).waitFor();
    expect(await unread.getByRole('heading', { name: 'About' }).count()).toBe(1);
    await program.start();
    await page.getByText(/^Catnap does not answer/).waitFor({ state: 'detached' });
    await fresh.getByRole('alert').first().waitFor({ state: 'detached' });
    await unread.getByRole('heading', { name: 'API keys' }).waitFor();
    await unread.getByText(/^Catnap does not answer/).waitFor({ state: 'detached' });
    await fresh.close();
    await newcomer.close();
    // The stream is open again: what is made elsewhere shows up.
    await program.api('POST', at('/branches'), { branch: { name: 'after-restart' } });
    await branchNode('after-restart').waitFor();
    await program.settle(project.id);
  });
}
