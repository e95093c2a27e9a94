/** From an OAuth provider in the management API to a row in `neon_auth.users_sync`, in the whole program. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { type OpenIdServer, startOpenIdServer, visitOpenIdServer } from '../helpers/openid-server.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let openId: OpenIdServer;
let program: Program;
let projectId: string;
let uri: string;
let keys: { base_url: string; auth_provider_project_id: string; pub_client_key: string };

beforeAll(async () => {
  openId = await startOpenIdServer();
  openId.people.set('ada', { email: 'ada@example.com', email_verified: true, name: 'Ada' });
  program = await Program.create({ CATNAP_OAUTH_ISSUERS: `google=${openId.url},corp=${openId.url}` });
  await program.start();
  const made = (await program.api('POST', '/projects', { project: {} })).body;
  projectId = made.project.id;
  uri = made.connection_uris[0].connection_uri;
  await program.settle(projectId);
  const body = { auth_provider: 'stack', project_id: projectId, branch_id: made.branch.id };
  keys = (await program.api('POST', '/projects/auth/create', body)).body;
  openId.allow([`${keys.base_url}/api/v1/auth/oauth/callback/google`]);
}, 180_000);
afterAll(async () => {
  await program?.destroy();
  await openId?.close();
});

const redirectUri = 'http://localhost:3000/handler/oauth-callback';
const client = () => ({ client_id: keys.auth_provider_project_id, client_secret: keys.pub_client_key });

async function authorize() {
  const codeVerifier = randomBytes(32).toString('base64url');
  const query = new URLSearchParams({
    ...client(),
    redirect_uri: redirectUri,
    state: 'ours',
    code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
    code_challenge_method: 'S256',
    stack_response_mode: 'json',
  });
  const reply = await fetch(`${keys.base_url}/api/v1/auth/oauth/authorize/google?${query}`);
  const { location = '' } = reply.ok ? ((await reply.json()) as { location?: string }) : {};
  return { status: reply.status, codeVerifier, location };
}

describe('an OAuth provider', () => {
  const path = () => `/projects/${projectId}/auth/oauth_providers`;

  it('is refused without credentials of its own, with the reason', async () => {
    const shared = await program.api('POST', path(), { id: 'google' });
    expect([shared.status, shared.body.message]).toEqual([
      422,
      expect.stringContaining('shared keys belong to the hosted service'),
    ]);
    const unknown = await program.api('POST', path(), { id: 'facebook', client_id: 'c', client_secret: 's' });
    expect([unknown.status, unknown.body.message]).toEqual([400, expect.stringContaining('vercel, corp')]);
    expect((await program.api('GET', path())).body).toEqual({ providers: [] });
    expect((await authorize()).status).toBe(400);
  });

  it('lets people in, who appear in the database, until it is removed', async () => {
    const { clientId, clientSecret } = openId;
    const added = await program.api('POST', path(), { id: 'google', client_id: clientId, client_secret: clientSecret });
    expect([added.status, added.body.type]).toEqual([200, 'standard']);
    const { codeVerifier, location } = await authorize();
    const returned = await visitOpenIdServer(openId, location, 'ada');
    const back = await fetch(returned, { redirect: 'manual' });
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: codeVerifier };
    const url = `${keys.base_url}/api/v1/auth/oauth/token`;
    const redeemed = await fetch(url, { method: 'POST', body: new URLSearchParams({ ...client(), ...form }) });
    expect(await redeemed.json()).toMatchObject({ is_new_user: true, token_type: 'Bearer' });
    const query = `select name || ' ' || (raw_json->'oauth_providers'->0->>'id') from neon_auth.users_sync
      where email = 'ada@example.com'`;
    await eventually(async () => expect(await ask(uri, query)).toBe('Ada google'));
    expect((await program.api('DELETE', `${path()}/google`)).status).toBe(200);
    expect((await authorize()).status).toBe(400);
  });

  it('may be one of the operator, beside those that are published', async () => {
    const url = `http://127.0.0.1:${program.httpPort}/api/v2${path()}`;
    const headers = { authorization: `Bearer ${await program.apiKey()}`, 'content-type': 'application/json' };
    const corp = { id: 'corp', client_id: 'c', client_secret: 's' };
    const added = await fetch(url, { method: 'POST', headers, body: JSON.stringify(corp) });
    expect([added.status, await added.json()]).toEqual([200, { ...corp, type: 'standard' }]);
    const listed = await fetch(url, { headers });
    expect(await listed.json()).toEqual({ providers: [{ ...corp, type: 'standard' }] });
    expect((await fetch(`${url}/corp`, { method: 'DELETE', headers })).status).toBe(200);
  });
});
