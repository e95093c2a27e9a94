import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command } from '../../../test/helpers/commands.ts';
import { makeCore, type TestCore } from '../../../test/helpers/core.ts';
import { json } from '../../db/client.ts';
import { oauthSecretSealContext } from './oauth-providers.ts';
import { insertProviderRows, type ProviderRows, selectProviderRows } from './project-rows.ts';
import { signingKeySealContext } from './signing-keys.ts';
import { webhookSealContext } from './webhooks.ts';

const projectId = randomUUID();
const userId = randomUUID();
const webhookId = randomUUID();
let there: TestCore;
let here: TestCore;
let rows: ProviderRows;

beforeAll(async () => {
  there = await makeCore();
  here = await makeCore();
  const { sql } = there.core.database;
  const { box } = there.core;
  const secret = box.seal('client secret', oauthSecretSealContext({ projectId, id: 'github' }));
  const key = box.seal('private key', signingKeySealContext('kid'));
  await sql`insert into stack_projects (id, display_name) values (${projectId}, 'app')`;
  await sql`insert into stack_users (id, project_id, primary_email, client_metadata)
    values (${userId}, ${projectId}, 'ann@example.com', ${json(sql, { camelCase: 1 })})`;
  await sql`insert into stack_oauth_providers (project_id, id, client_id, client_secret)
    values (${projectId}, 'github', 'c', ${secret})`;
  await sql`insert into stack_signing_keys (kid, project_id, audience, public_jwk, private_jwk, signs_from)
    values ('kid', ${projectId}, 'plain', '{}', ${key}, now())`;
  await sql`insert into stack_webhook_endpoints (id, project_id, url, secret)
    values (${webhookId}, ${projectId}, 'http://127.0.0.1:1', ${box.seal('hook', webhookSealContext(webhookId))})`;
  await sql`
    insert into stack_user_changes (project_id, user_id, kind, user_json)
    select ${projectId}, ${userId}, 'updated', '{}' from generate_series(1, 5)`;
  rows = await selectProviderRows(sql, projectId);
});
afterAll(async () => {
  await there.close();
  await here.close();
});

const bring = () =>
  command(here, (scope) => insertProviderRows(scope.tx, rows, { old: there.core.box, current: here.core.box }));

test('a provider’s project comes with its users, and with secrets that this installation opens', async () => {
  expect(await bring()).toBe(true);
  const { sql } = here.core.database;
  const { box } = here.core;
  const [user] = await sql`select * from stack_users`;
  expect(user).toMatchObject({ id: userId, primaryEmail: 'ann@example.com', clientMetadata: { camelCase: 1 } });
  const [provider] = await sql`select client_secret as sealed from stack_oauth_providers`;
  expect(box.open(provider?.sealed, oauthSecretSealContext({ projectId, id: 'github' }))).toBe('client secret');
  const [key] = await sql`select private_jwk as sealed from stack_signing_keys`;
  expect(box.open(key?.sealed, signingKeySealContext('kid'))).toBe('private key');
  const [webhook] = await sql`select secret as sealed from stack_webhook_endpoints`;
  expect(box.open(webhook?.sealed, webhookSealContext(webhookId))).toBe('hook');
  // Positions in the old log mean nothing in this one: everything in it comes after them.
  const [log] = await sql`select min(seq) as first, count(*)::int as count from stack_user_changes`;
  expect(log?.count).toBe(5);
  expect(log?.first).toBeGreaterThan(5);
});

test('one that is here stays as it is', async () => {
  const { sql } = here.core.database;
  await sql`update stack_projects set display_name = 'changed since' where id = ${projectId}`;
  expect(await bring()).toBe(false);
  const [project] = await sql`select display_name from stack_projects where id = ${projectId}`;
  expect(project).toEqual({ displayName: 'changed since' });
});
