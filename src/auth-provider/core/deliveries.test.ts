import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Webhook } from 'svix';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  basic,
  makeAuthProvider,
  type ProvisionedProject,
  type TestAuthProvider,
} from '../../../test/helpers/auth-provider.ts';
import { eventually } from '../../../test/helpers/eventually.ts';
import { startSmtpServer } from '../../../test/helpers/smtp-server.ts';
import { createLogger } from '../../lib/log.ts';
import { startDeliveries } from './deliveries.ts';
import { createMailer } from './mail-delivery.ts';
import { listOutbox } from './outbox.ts';
import { forgetOldAuthProviderRecords } from './retention.ts';
import { deliverNextMessage } from './webhook-delivery.ts';

let nowMs = Date.now();
const clock = { now: () => new Date(nowMs) };
let provider: TestAuthProvider;
let project: ProvisionedProject;
beforeAll(async () => {
  provider = await makeAuthProvider({ clock });
  project = await provider.provision();
});
afterAll(() => provider.close());

interface Received {
  readonly headers: Record<string, string>;
  readonly body: string;
}

async function receiver(status: () => number): Promise<{ url: string; received: Received[]; server: Server }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    received.push({ headers: request.headers as Record<string, string>, body });
    response.writeHead(status(), { location: 'http://127.0.0.1:1/elsewhere' }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}/hook`, received, server };
}

const register = async (url: string) =>
  (await provider.call('POST', '/integrations/neon/webhooks', { ...project.admin, ...basic }, { url })).body.secret;

describe('webhooks', () => {
  test('tell of every change of a user, in a form that Svix verifies', async () => {
    nowMs = Date.now();
    const { url, received, server } = await receiver(() => 204);
    const secret = await register(url);
    const log = createLogger({ level: 'silent', process: 'test' });
    const running = await startDeliveries(provider.parts, log, null);
    const { body: user } = await provider.call('POST', '/users', project.server, { display_name: 'Ada' });
    await provider.call('PATCH', `/users/${user.id}`, project.server, { display_name: 'Ada L.' });
    await provider.call('DELETE', `/users/${user.id}`, project.server, {});
    await eventually(() => expect(received).toHaveLength(3));
    await running.stop();
    server.close();
    const hook = new Webhook(secret);
    const events = received.map(({ body, headers }) => hook.verify(body, headers) as { type: string; data: object });
    expect(events.map(({ type }) => type).sort()).toEqual(['user.created', 'user.deleted', 'user.updated']);
    expect(events.find(({ type }) => type === 'user.created')?.data).toEqual(user);
    expect(events.find(({ type }) => type === 'user.deleted')?.data).toEqual({ id: user.id, teams: [] });
    const first = received[0];
    expect(() => hook.verify(`${first?.body} `, first?.headers ?? {})).toThrow();
    await provider.core.database.sql`delete from stack_webhook_endpoints`;
  });

  test('are tried again later and later, then given up; a redirect is a failure', async () => {
    let status = 500;
    const { url, received, server } = await receiver(() => status);
    await register(url);
    await provider.call('POST', '/users', project.server, {});
    const waits = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
    for (const [at, seconds] of waits.entries()) {
      status = at === 1 ? 302 : 500;
      expect(await deliverNextMessage(provider.parts)).toBe(true);
      nowMs += seconds * 1000 - 1_000;
      expect(await deliverNextMessage(provider.parts)).toBe(false);
      nowMs += 1_000;
    }
    expect(await deliverNextMessage(provider.parts)).toBe(true);
    nowMs += 10 * 86_400_000;
    expect(await deliverNextMessage(provider.parts)).toBe(false);
    expect(received).toHaveLength(8);
    expect(new Set(received.map(({ headers }) => headers['svix-id'])).size).toBe(1);
    const [message] = await provider.core.database.sql`select last_error, given_up_at from stack_webhook_messages`;
    expect(message).toMatchObject({ lastError: 'HTTP 500', givenUpAt: expect.any(Date) });
    server.close();
  });

  test('are sent to no private address unless that is allowed, whenever they were registered', async () => {
    nowMs = Date.now();
    await provider.core.database.sql`delete from stack_webhook_endpoints`;
    const { url, received, server } = await receiver(() => 204);
    await register(url);
    await provider.call('POST', '/users', project.server, {});
    const webhookPolicy = { ...provider.parts.webhookPolicy, allowPrivate: false };
    expect(await deliverNextMessage({ ...provider.parts, webhookPolicy })).toBe(true);
    expect(received).toEqual([]);
    const [message] = await provider.core.database.sql`select last_error from stack_webhook_messages
      where delivered_at is null and given_up_at is null`;
    expect(message).toEqual({ lastError: 'the URL must start with https://' });
    nowMs += 10_000;
    expect(await deliverNextMessage(provider.parts)).toBe(true);
    expect(received).toHaveLength(1);
    server.close();

    const strict = await makeAuthProvider({}, { privateKeySets: false });
    const { admin } = await strict.provision();
    const refused = await strict.call('POST', '/integrations/neon/webhooks', { ...admin, ...basic }, { url });
    expect([refused.status, refused.body]).toEqual([400, 'The url must start with https://.']);
    await strict.close();
  });

  test('need the secret of the integration and the key of the project', async () => {
    for (const headers of [project.admin, basic, { ...project.server, ...basic }]) {
      const reply = await provider.call('POST', '/integrations/neon/webhooks', headers, { url: 'https://x.example' });
      expect(reply.status).toBeGreaterThanOrEqual(400);
    }
  });
});

describe('mails', () => {
  const writeMail = async () => {
    const email = `reader-${Math.random()}@example.com`;
    const body = { email, password: 'correct horse', verification_callback_url: 'http://localhost:3000/verify' };
    expect((await provider.call('POST', '/auth/password/sign-up', project.client, body)).status).toBe(200);
    return email;
  };

  test('stay in the outbox without a server, and are sent when there is one', async () => {
    nowMs = Date.now();
    const recipient = await writeMail();
    const [stored] = await listOutbox(provider.parts, { limit: 1 });
    expect(stored).toMatchObject({ to: recipient, status: 'stored', subject: 'Verify your e-mail address for test' });
    const smtp = await startSmtpServer();
    const mailer = createMailer({ smtpUrl: smtp.url, from: 'Catnap <catnap@example.com>' });
    expect(await mailer.sendNext(provider.parts)).toBe(true);
    mailer.close();
    await smtp.close();
    expect(smtp.mails.at(-1)).toContain(`To: ${recipient}`);
    expect(smtp.mails.at(-1)).toContain('From: Catnap <catnap@example.com>');
    expect((await listOutbox(provider.parts, { limit: 1 }))[0]).toMatchObject({ to: recipient, status: 'sent' });
  });

  test('are tried again when the server does not answer, and say what was wrong', async () => {
    const recipient = await writeMail();
    const mailer = createMailer({ smtpUrl: 'smtp://127.0.0.1:1', from: 'catnap@example.com' });
    expect(await mailer.sendNext(provider.parts)).toBe(true);
    expect((await listOutbox(provider.parts, { limit: 1 }))[0]).toMatchObject({
      to: recipient,
      status: 'retrying',
      error: expect.stringContaining('ECONNREFUSED'),
    });
    expect(await mailer.sendNext(provider.parts)).toBe(false);
    for (let i = 0; i < 5; i += 1) {
      nowMs += 2 * 3_600_000;
      await mailer.sendNext(provider.parts);
    }
    mailer.close();
    expect((await listOutbox(provider.parts, { limit: 1 }))[0]).toMatchObject({ status: 'failed' });
  });
});

test('what is old is forgotten, and the last state of every user stays in the log', async () => {
  const { sql } = provider.core.database;
  const { body: user } = await provider.call('POST', '/users', project.server, { display_name: 'old' });
  await provider.call('PATCH', `/users/${user.id}`, project.server, { display_name: 'new' });
  await forgetOldAuthProviderRecords(sql, new Date(nowMs + 400 * 86_400_000));
  const left =
    await sql`select kind, user_json->>'display_name' as name from stack_user_changes where user_id = ${user.id}`;
  expect(left).toEqual([{ kind: 'updated', name: 'new' }]);
  expect(await sql`select from stack_sessions`).toHaveLength(0);
  expect(await listOutbox(provider.parts, { limit: 1 })).toEqual([]);
});
