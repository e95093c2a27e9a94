/** The embedded auth provider in the whole program, whose roles have given up their rights. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StackClientApp } from '@stackframe/js';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Program } from '../helpers/program.ts';
import { keyHeaders } from '../helpers/stack.ts';

let program: Program;
let base: string;
let project: { id: string; adminKey: string };
beforeAll(async () => {
  program = await Program.create();
  await program.start();
  base = `http://localhost:${program.httpPort}/stack`;
  const secret = (await readFile(join(program.home.path, 'stack-secret'), 'utf8')).trim();
  const authorization = `Basic ${Buffer.from(`catnap:${secret}`).toString('base64')}`;
  const reply = await post('/integrations/neon/projects/provision', { authorization }, { display_name: 'e2e' });
  const made = (await reply.json()) as { project_id: string; super_secret_admin_key: string };
  project = { id: made.project_id, adminKey: made.super_secret_admin_key };
});
afterAll(() => program.destroy());

function post(path: string, headers: Record<string, string>, body: object): Promise<Response> {
  return fetch(`${base}/api/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

const newClient = () =>
  new StackClientApp({ baseUrl: base, projectId: project.id, publishableClientKey: 'unused', tokenStore: 'memory' });

test('a person signs up over the port that is printed, and the token verifies with the public key set', async () => {
  const mode = (await stat(join(program.home.path, 'stack-secret'))).mode & 0o777;
  expect(mode).toBe(0o600);
  const keys = await post('/integrations/neon/api-keys', keyHeaders('admin', project.id, project.adminKey), {
    ...{ description: 'e2e', expires_at_millis: Date.now() + 86_400_000 },
    ...{ has_publishable_client_key: true, has_secret_server_key: false, has_super_secret_admin_key: false },
  });
  const { publishable_client_key: publishableClientKey } = (await keys.json()) as { publishable_client_key: string };
  const client = new StackClientApp({
    baseUrl: base,
    projectId: project.id,
    publishableClientKey,
    tokenStore: 'memory',
  });
  const order = { email: 'ada@example.com', password: 'correct horse', noRedirect: true } as const;
  const callback = { verificationCallbackUrl: 'http://localhost:3000/verify' };
  expect((await client.signUpWithCredential({ ...order, ...callback })).status).toBe('ok');
  const me = await client.getUser({ or: 'throw' });
  const { accessToken } = await me.currentSession.getTokens();
  const keySet = createRemoteJWKSet(new URL(`${base}/api/v1/projects/${project.id}/.well-known/jwks.json`));
  const { payload } = await jwtVerify(accessToken ?? '', keySet, { audience: project.id });
  expect(payload).toMatchObject({ sub: me.id, iss: `${base}/api/v1/projects/${project.id}` });
  const { body } = await program.api('GET', '/outbox');
  expect(body.mails).toMatchObject([{ to: 'ada@example.com', status: 'stored' }]);
  await expect(newClient().signInWithCredential(order)).rejects.toThrow(/publishable/i);
});
