/** The provider's own pages in a real browser, and what they refuse. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { violationsOf } from '../../../test/helpers/accessibility.ts';
import {
  basic,
  listenAuthProvider,
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';
import { startBrowser, type TestBrowser } from '../../../test/helpers/browser.ts';
import { listOutbox } from '../core/outbox.ts';

const transferPath = '/integrations/neon/projects/transfer';

async function transferLink(provider: TestAuthProvider, project: ProvisionedProject): Promise<string> {
  const reply = await provider.call('POST', transferPath, basic, { project_id: project.id });
  expect(reply.status).toBe(200);
  return reply.body.confirmation_url;
}

const ownerOf = async (provider: TestAuthProvider, project: ProvisionedProject) =>
  (await provider.call('GET', '/integrations/neon/projects/current', project.admin)).body.owner_team_id;

/** Set it to view the pages: one picture of each state, in four forms. */
const pictures = process.env.CATNAP_SCREENSHOTS;

describe('in a browser', () => {
  let provider: TestAuthProvider & { readonly url: string };
  let browser: TestBrowser;
  beforeAll(async () => {
    provider = await listenAuthProvider();
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await provider.close();
  });

  async function picture(page: Page, name: string): Promise<void> {
    // Nothing may overflow sideways, not even on a phone.
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      expect([name, width, overflow]).toEqual([name, width, 0]);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        if (width === 390) {
          expect([name, colorScheme, ...(await violationsOf(page))]).toEqual([name, colorScheme]);
        }
        if (pictures === undefined) continue;
        await mkdir(pictures, { recursive: true });
        await page.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  }

  /** The other test checks these; here they are only photographed. */
  async function pictureRefusals(page: Page): Promise<void> {
    const link = await transferLink(provider, await provider.provision('Book shop'));
    await page.goto(link.replace(/code=.*/, 'code=forged'));
    await page.getByRole('heading', { name: 'This link is not valid' }).waitFor();
    await picture(page, '8-forged');
    await provider.core.database.sql`update stack_codes set expires_at = now() - interval '1 s'`;
    await page.goto(link);
    await page.getByRole('heading', { name: 'This link has expired' }).waitFor();
    await picture(page, '8-expired');
    await page.goto(`${provider.url}/forgot-password`);
    await picture(page, '9-forgot');
    await page.goto(`${provider.url}/dashboard/projects/none`);
    await picture(page, '9-not-there');
  }

  test('somebody makes an account, changes to another one, takes a project over and manages it', async () => {
    const project = await provider.provision('Corner shop');
    await provider.call('POST', '/users', project.server, {
      display_name: 'Cora <b>',
      primary_email: 'cora@example.com',
    });
    const link = await transferLink(provider, project);
    const visit = await browser.visit({ baseURL: provider.url });
    const page = await visit.newPage();
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('dialog', (dialog) => void dialog.accept());

    await page.goto(link);
    await page.getByRole('heading', { name: 'Take over Corner shop' }).waitFor();
    await picture(page, '1-who');
    await page.getByText('Create an account').click();
    const signUp = page.locator('form[action="/stack/sign-up"]');
    await signUp.getByLabel('Name').fill('Bob');
    await signUp.getByLabel('E-mail').fill('bob@example.com');
    await signUp.getByLabel('Password').fill('a long password');
    if (pictures !== undefined) await picture(page, '1-new-account');
    await signUp.getByRole('button').click();

    await page.getByText('Which account receives it?').waitFor();
    await page.getByRole('button', { name: 'Use another account' }).click();
    await page.getByText('Create an account').click();
    await signUp.getByLabel('Name').fill('Ada Lovelace');
    await signUp.getByLabel('E-mail').fill('ada@example.com');
    await signUp.getByLabel('Password').fill('another long password');
    await signUp.getByRole('button').click();
    await page.locator('.account', { hasText: 'ada@example.com' }).waitFor();
    await picture(page, '2-confirm');
    expect(await ownerOf(provider, project)).toBeNull();
    await page.getByRole('button', { name: 'Transfer to this account' }).click();
    await page.getByText('Ownership was transferred.').waitFor();
    await picture(page, '3-done');
    expect(await ownerOf(provider, project)).not.toBeNull();

    await page.getByRole('link', { name: 'Open the project' }).click();
    await page.getByRole('heading', { name: 'Corner shop' }).waitFor();
    await page.getByText('Cora <b>').waitFor();
    await page.getByLabel('Domain').fill('https://shop.example.com/');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('code', { hasText: 'https://shop.example.com' }).waitFor();
    await page.getByLabel('Domain').fill('nonsense');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Description').fill('after the takeover');
    await page.getByRole('button', { name: 'New keys' }).click();
    const shown = await page.locator('.secret code').allTextContents();
    const secret = shown.find((text) => text.startsWith('ssk_')) ?? '';
    await picture(page, '4-project');
    expect(
      (await provider.call('GET', '/users', { ...project.server, 'x-stack-secret-server-key': secret })).status,
    ).toBe(200);
    const old = page.locator('#keys li', { hasText: 'for the SDK' });
    await old.getByRole('button', { name: 'Revoke' }).click();
    await page.locator('#keys li.gone', { hasText: 'for the SDK' }).waitFor();
    expect((await provider.call('GET', '/users', project.server)).body.code).toBe('INVALID_SECRET_SERVER_KEY');
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('signs soon').waitFor();

    await page.goto(link);
    await page.getByRole('heading', { name: 'This link was used already' }).waitFor();
    await picture(page, '5-used');
    await page.getByRole('link', { name: 'Go to the dashboard' }).click();
    await page.getByRole('heading', { name: 'Your projects' }).waitFor();
    await picture(page, '6-dashboard');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByRole('heading', { name: 'No account yet?' }).waitFor();
    await page.locator('form[action="/stack/sign-in"]').getByLabel('E-mail').fill('ada@example.com');
    await page.locator('form[action="/stack/sign-in"]').getByLabel('Password').fill('wrong password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await picture(page, '7-wrong');
    if (pictures !== undefined) await pictureRefusals(page);
    await visit.close();
    // Refusals are errors in the browser's console; any other error would be a defect of the page.
    expect(problems.filter((text) => !/status of (400|403|404|409)/.test(text))).toEqual([]);
  });
});

describe('codes and forms', () => {
  let nowMs = Date.now();
  let provider: TestAuthProvider;
  beforeAll(async () => {
    provider = await makeAuthProvider({ clock: { now: () => new Date(nowMs) } });
  });
  afterAll(() => provider.close());

  const get = (url: string, cookie = '') =>
    provider.app.inject({ url: url.replace(/^http:\/\/[^/]+/, ''), headers: { host: 'localhost', cookie } });
  const send = (path: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
    provider.app.inject({
      method: 'POST',
      url: `/stack${path}`,
      headers: { host: 'localhost', 'content-type': 'application/x-www-form-urlencoded', ...headers },
      payload: new URLSearchParams(form).toString(),
    });
  const cookieOf = (reply: { headers: Record<string, unknown> }) =>
    String(reply.headers['set-cookie']).split(';')[0] ?? '';
  const markOf = (text: string) => /name="mark" value="([^"]+)"/.exec(text)?.[1] ?? '';

  async function account(email: string) {
    const first = await get('/stack/sign-in');
    const form = { mark: markOf(first.body), email, password: 'a long password', name: '' };
    const made = await send('/sign-up', form, { cookie: cookieOf(first) });
    expect(made.statusCode).toBe(303);
    return cookieOf(made);
  }

  async function confirm(link: string, cookie: string) {
    const page = await get(link, cookie);
    const code = new URL(link).searchParams.get('code') ?? '';
    return send(`${transferPath}/confirm`, { mark: markOf(page.body), code }, { cookie });
  }

  test('a code works once and for an hour; forged, used, expired and second ones change nothing', async () => {
    const cookie = await account('one@example.com');
    const project = await provider.provision('first');
    const [link, second] = [await transferLink(provider, project), await transferLink(provider, project)];
    for (const code of ['', 'x', 'a'.repeat(45), '%00', '<script>']) {
      const forged = await get(`/stack${transferPath}/confirm?code=${encodeURIComponent(code)}`, cookie);
      expect([code, forged.statusCode]).toEqual([code, 404]);
      expect(forged.body).toContain('not valid');
      expect(forged.body).not.toContain('<script>x');
    }
    nowMs += 3_600_001;
    const expired = await get(link, cookie);
    expect([expired.statusCode, expired.body.includes('has expired')]).toEqual([400, true]);
    expect((await confirm(link, cookie)).body).toContain('has expired');
    expect(await ownerOf(provider, project)).toBeNull();
    const fresh = await transferLink(provider, project);
    const other = await transferLink(provider, project);
    expect((await confirm(fresh, cookie)).body).toContain('Ownership was transferred');
    const owner = await ownerOf(provider, project);
    const thief = await account('thief@example.com');
    for (const again of [fresh, other, second]) {
      const page = await get(again, thief);
      expect(page.statusCode).toBeGreaterThanOrEqual(400);
      const mark = markOf((await get('/stack/dashboard', thief)).body);
      const code = new URL(again).searchParams.get('code') ?? '';
      const forced = await send(`${transferPath}/confirm`, { mark, code }, { cookie: thief });
      expect(forced.statusCode).toBeGreaterThanOrEqual(400);
      expect(forced.body).toContain('Nothing was changed');
    }
    expect(await ownerOf(provider, project)).toBe(owner);
    const probe = await provider.call('GET', `${transferPath}?project_id=${project.id}`, basic);
    expect([probe.status, probe.headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
    expect((await provider.call('POST', transferPath, basic, { project_id: project.id })).status).toBe(400);
    // Keys that were handed out before stay valid.
    expect((await provider.call('GET', '/users', project.server)).status).toBe(200);
  });

  test('two confirmations at once make one owner', async () => {
    const project = await provider.provision('race');
    const cookies = [await account('left@example.com'), await account('right@example.com')];
    const link = await transferLink(provider, project);
    const replies = await Promise.all(cookies.map((cookie) => confirm(link, cookie)));
    expect(replies.filter((reply) => reply.body.includes('Ownership was transferred'))).toHaveLength(1);
    const teams = await provider.core.database
      .sql`select from stack_projects where owner_team_id is not null and id = ${project.id}`;
    expect(teams).toHaveLength(1);
  });

  test('the API does the same for a signed-in user of the project internal', async () => {
    const project = await provider.provision('by API');
    const code = new URL(await transferLink(provider, project)).searchParams.get('code');
    const client = { 'x-stack-access-type': 'client', 'x-stack-project-id': 'internal' };
    const path = `${transferPath}/confirm`;
    expect((await provider.call('POST', `${path}/check`, client, { code })).body).toEqual({ is_code_valid: true });
    expect((await provider.call('POST', path, client, { code })).body.code).toBe('USER_AUTHENTICATION_REQUIRED');
    expect((await provider.call('POST', path, project.client, { code })).body.code).toBe('CURRENT_PROJECT_NOT_FOUND');
    const body = { email: 'api@example.com', password: 'a long password' };
    const { access_token: token } = (await provider.call('POST', '/auth/password/sign-up', client, body)).body;
    const signedIn = { ...client, 'x-stack-access-token': token };
    expect((await provider.call('POST', path, signedIn, { code })).body).toEqual({ project_id: project.id });
    expect((await provider.call('POST', path, signedIn, { code })).body.code).toBe('VERIFICATION_CODE_ALREADY_USED');
    const teams = await provider.call('GET', '/teams?user_id=me', signedIn);
    expect(teams.body.items).toMatchObject([{ display_name: "api@example.com's Team" }]);
  });

  test('forms of other sites, and without the mark, are refused', async () => {
    const cookie = await account('safe@example.com');
    const project = await provider.provision('csrf');
    const link = await transferLink(provider, project);
    const page = await get(link, cookie);
    const form = { mark: markOf(page.body), code: new URL(link).searchParams.get('code') ?? '' };
    const path = `${transferPath}/confirm`;
    expect((await send(path, { ...form, mark: 'x' }, { cookie })).statusCode).toBe(403);
    expect((await send(path, form, { cookie, origin: 'https://evil.example' })).statusCode).toBe(403);
    expect((await send(path, form, { cookie, origin: 'null' })).statusCode).toBe(403);
    expect((await send(path, form, { cookie, 'sec-fetch-site': 'cross-site' })).statusCode).toBe(403);
    const other = await account('other@example.com');
    expect((await send(path, form, { cookie: other })).statusCode).toBe(403);
    expect(await ownerOf(provider, project)).toBeNull();
    expect(page.headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(String((await get('/stack/sign-in')).headers['set-cookie'])).toMatch(/Path=\/stack; HttpOnly; SameSite=Lax/);
  });

  test('nobody sees or changes a project of somebody else, and signing in leads to our own pages only', async () => {
    const owner = await account('owner@example.com');
    const project = await provider.provision('private');
    await confirm(await transferLink(provider, project), owner);
    const path = `/dashboard/projects/${project.id}`;
    expect((await get(`/stack${path}`, owner)).statusCode).toBe(200);
    const stranger = await account('stranger@example.com');
    expect((await get(`/stack${path}`, stranger)).statusCode).toBe(404);
    expect((await get(`/stack${path}`)).headers.location).toBe(`/stack/sign-in?next=/stack${path}`);
    const mark = markOf((await get('/stack/dashboard', stranger)).body);
    const attempts = {
      'make-keys': { description: 'x' },
      'add-domain': { domain: 'https://evil.example' },
      'rotate-signing-key': {},
    };
    for (const [action, form] of Object.entries(attempts)) {
      expect((await send(`${path}/${action}`, { mark, ...form }, { cookie: stranger })).statusCode).toBe(404);
    }
    expect((await provider.call('GET', '/integrations/neon/domains', project.admin)).body.items).toEqual([]);
    for (const next of [
      '//evil.example',
      'https://evil.example',
      '/stack//evil.example',
      '/stack/../x\\',
      'javascript:x',
    ]) {
      const page = await get(`/stack/sign-in?next=${encodeURIComponent(next)}`);
      expect(page.body).toContain('name="next" value="/stack/dashboard"');
    }
  });

  test('a page session ends with a new password and with time', async () => {
    const old = await account('brief@example.com');
    expect((await get('/stack/dashboard', old)).statusCode).toBe(200);
    const first = await get('/stack/forgot-password');
    const visitor = { cookie: cookieOf(first) };
    const mark = markOf(first.body);
    const sent = await send('/forgot-password', { mark, email: 'brief@example.com' }, visitor);
    const absent = await send('/forgot-password', { mark, email: 'nobody@example.com' }, visitor);
    expect([sent.statusCode, sent.body]).toEqual([200, absent.body]);
    const [mail] = await listOutbox(provider.parts, { limit: 1 });
    const code = /reset-password\?code=([0-9a-z]{45})/.exec(mail?.text ?? '')?.[1] ?? '';
    expect((await get(`/stack/reset-password?code=${code}`)).statusCode).toBe(200);
    expect((await get('/stack/reset-password?code=forged')).statusCode).toBe(404);
    const short = await send('/reset-password', { mark, code, password: 'short' }, visitor);
    expect([short.statusCode, short.body.includes('at least 8')]).toEqual([400, true]);
    const reset = await send('/reset-password', { mark, code, password: 'a renewed password' }, visitor);
    expect(reset.headers.location).toBe('/stack/sign-in');
    expect((await send('/reset-password', { mark, code, password: 'a robbed password' }, visitor)).statusCode).toBe(
      409,
    );
    expect((await get('/stack/dashboard', old)).statusCode).toBe(303);
    const form = { mark, email: 'brief@example.com', password: 'a renewed password', next: '/stack/dashboard' };
    const cookie = cookieOf(await send('/sign-in', form, visitor));
    expect((await get('/stack/dashboard', cookie)).statusCode).toBe(200);
    nowMs += 8 * 86_400_000;
    expect((await get('/stack/dashboard', cookie)).statusCode).toBe(303);
  });
});
