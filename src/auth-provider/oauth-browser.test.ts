/** Signing in with an OAuth provider as people do: both SDKs, in a browser, with a real OpenID server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  listenAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../test/helpers/auth-provider.ts';
import { startBrowser, type TestBrowser } from '../../test/helpers/browser.ts';
import { type OpenIdServer, startOpenIdServer } from '../../test/helpers/openid-server.ts';
import { type SdkPage, servePage } from '../../test/helpers/sdk-page.ts';

let browser: TestBrowser;
let openId: OpenIdServer;
let provider: TestAuthProvider & { readonly url: string };
let project: ProvisionedProject;

beforeAll(async () => {
  openId = await startOpenIdServer();
  provider = await listenAuthProvider({ oauthIssuers: { google: openId.url } });
  openId.allow([`${provider.url}/api/v1/auth/oauth/callback/google`]);
  openId.people.set('ada', { email: 'ada@example.com', email_verified: true, name: 'Ada' });
  openId.people.set('eve', { email: 'taken@example.com', email_verified: false });
  browser = await startBrowser();
}, 120_000);
afterAll(async () => {
  await browser.close();
  await provider.close();
  await openId.close();
});

const sdks = [
  // The newer one takes an access token that is not kept for an account that is not connected.
  { version: '2.8.108', name: '@stackframe/js', connected: null },
  { version: '2.8.102', name: 'stackframe-js-2.8.102', connected: 'OAUTH_ACCESS_TOKEN_NOT_AVAILABLE' },
] as const;

describe.each(sdks)('@stackframe/js $version in a browser', ({ name, connected }) => {
  let page: SdkPage;
  beforeAll(async () => {
    project = await provider.provision();
    await provider.call('POST', '/integrations/neon/oauth-providers', project.admin, {
      id: 'google',
      client_id: openId.clientId,
      client_secret: openId.clientSecret,
    });
    const settings = { baseUrl: provider.url, projectId: project.id, publishableClientKey: project.publishableKey };
    page = await servePage(name, settings);
  }, 120_000);
  afterAll(() => page.close());

  async function visit() {
    const context = await browser.visit({ baseURL: page.url });
    const tab = await context.newPage();
    await tab.goto('/');
    const shown = async (text: string | RegExp) => {
      const output = tab.locator('output').filter({ hasText: text });
      await output.waitFor();
      return JSON.parse((await output.textContent()) ?? '');
    };
    const signInAs = async (who: string) => {
      await shown('null');
      await tab.evaluate(`void window.signIn('google')`);
      await tab.getByLabel('Name').fill(who);
      await tab.getByRole('button', { name: 'Continue' }).click();
    };
    return { context, tab, shown, signInAs };
  }

  test('somebody signs in, is known, and signs out', async () => {
    const { context, tab, shown, signInAs } = await visit();
    await signInAs('ada');
    const user = await shown('ada@example.com');
    expect(user).toMatchObject({ providers: [{ id: 'google', account_id: 'ada', email: 'ada@example.com' }] });
    expect(new URL(tab.url()).pathname).toBe('/');
    const accounts = await tab.evaluate<Record<string, unknown>>('window.accounts()');
    expect(accounts).toEqual({
      accessToken: expect.stringContaining('.'),
      list: [{ type: 'google', email: 'ada@example.com' }],
      connected,
      offered: [{ id: 'google' }],
    });
    await tab.evaluate(`void window.signOut()`);
    await shown('null');
    await context.close();
  });

  test('somebody whose address is not verified is kept out, and the application knows why', async () => {
    const body = { email: 'taken@example.com', password: 'correct horse' };
    await provider.call('POST', '/auth/password/sign-up', project.client, body);
    const { context, shown, signInAs } = await visit();
    await signInAs('eve');
    const { error } = await shown('error');
    expect(error).toBe('CONTACT_CHANNEL_ALREADY_USED_FOR_AUTH_BY_SOMEONE_ELSE');
    await context.close();
  });
});
