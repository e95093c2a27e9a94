import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeApi, type TestApi } from '../../test/helpers/contract.ts';
import { drain } from '../../test/helpers/drain.ts';
import { FakeDriver } from '../compute/fake/fake-driver.ts';
import { periodOf } from '../db/consumption.ts';
import { isAnythingGoingOn } from '../db/going-on.ts';
import { dayMs, hourMs, minuteMs } from '../lib/clock.ts';
import { createLogger } from '../lib/log.ts';
import { retention } from './retention.ts';
import { makeWebhooks } from './webhooks.ts';

const log = createLogger({ level: 'silent', process: 'test' });
const driver = new FakeDriver();
let api: TestApi;
let receiver: Server;
let url: string;
/** What the receiver answers; a header is a redirect. */
let answer: { status: number; location?: string } = { status: 200 };
let received: { headers: IncomingHttpHeaders; body: string }[] = [];
/** The clock that decides what is due stands still but for this. */
let ahead = 0;
let begunAt = Date.now();

beforeAll(async () => {
  api = await makeApi({ privateKeySets: true }, { now: () => new Date(begunAt + ahead) });
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    const { status, location } = answer;
    response.writeHead(status, location === undefined ? {} : { location }).end('x'.repeat(100_000));
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
});
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await api.close();
});

let project: string;
let endpoint: string;
let turn: () => Promise<void>;

beforeEach(async () => {
  answer = { status: 200 };
  received = [];
  ahead = 0;
  begunAt = Date.now();
  await api.core.database.sql`delete from webhooks`;
  const made = (await api.call('POST', '/api/v2/projects', { body: { project: { name: 'shop' } } })).json();
  project = `/projects/${made.project.id}`;
  endpoint = made.endpoints[0].id;
  await drain(api.core, driver);
  const loop = makeWebhooks();
  turn = () => loop.turn({ core: api.core, driver, log });
});

async function call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
  const reply = await api.call(method, `/api/v2${project}${path}`, body === undefined ? {} : { body });
  return { status: reply.statusCode, body: reply.json() };
}

async function newWebhook(events: string[]): Promise<{ id: string; secret: string }> {
  const { status, body } = await call('POST', '/webhooks', { webhook: { url, events } });
  expect(status).toBe(201);
  return { id: body.webhook.id, secret: body.secret };
}

const deliveriesOf = async (id: string) => (await call('GET', `/webhooks/${id}/deliveries`)).body.deliveries;
const types = () => received.map(({ body }) => JSON.parse(body).type);

async function suspendAndWake(): Promise<void> {
  await call('POST', `/endpoints/${endpoint}/suspend`);
  await drain(api.core, driver);
  await call('POST', `/endpoints/${endpoint}/start`);
  await drain(api.core, driver);
}

describe('events', () => {
  test('of operations are sent once to each webhook that is told of them, signed', async () => {
    const all = await newWebhook(['operation.ended', 'compute.woke']);
    await newWebhook(['compute.woke']);
    await turn();
    // What had ended before there was a webhook is not told.
    expect(received).toEqual([]);
    await suspendAndWake();
    await turn();
    await turn();
    expect(types().sort()).toEqual(['compute.woke', 'compute.woke', 'operation.ended', 'operation.ended']);

    const { headers, body } = received.find((one) => one.body.includes('suspend_compute')) ?? { headers: {}, body: '' };
    const event = new Webhook(all.secret).verify(body, headers as Record<string, string>);
    expect(event).toMatchObject({
      type: 'operation.ended',
      project_id: project.slice('/projects/'.length),
      data: { action: 'suspend_compute', status: 'finished', endpoint_id: endpoint, failures_count: 0 },
    });
    expect(headers['webhook-id']).toBe((event as { id: string }).id);
    expect(() => new Webhook(all.secret).verify(`${body} `, headers as Record<string, string>)).toThrow();
    const woke = received.map((one) => JSON.parse(one.body)).find(({ type }) => type === 'compute.woke');
    expect(woke.data).toMatchObject({ endpoint_id: endpoint, woke_at: woke.timestamp });
  });

  test('of a quota come once, and again when it was changed', async () => {
    await newWebhook(['quota.near']);
    const { sql } = api.core.database;
    const limitTo = (seconds: number) =>
      call('PATCH', '', { project: { settings: { quota: { active_time_seconds: seconds } } } });
    const month = periodOf(new Date());
    await limitTo(1_000);
    const id = project.slice('/projects/'.length);
    await sql`update projects set usage = jsonb_build_object('period', ${month}::text, 'active', 799)
      where id = ${id}`;
    const look = () => makeWebhooks().turn({ core: api.core, driver, log });
    await look();
    expect(received).toEqual([]);
    await sql`update projects set usage = jsonb_set(usage, '{active}', '800') where id = ${id}`;
    await look();
    await look();
    expect(received.map(({ body }) => JSON.parse(body).data)).toMatchObject([
      { quota: 'active_time_seconds', unit: 'seconds', limit: 1_000, used: 800 },
    ]);
    await limitTo(900);
    await look();
    expect(received).toHaveLength(2);
  });

  test('of a late backup come once a day', async () => {
    await newWebhook(['backup.late']);
    const late = { ...api.core, config: { ...api.core.config, backup: lateBackup } };
    const look = () => makeWebhooks().turn({ core: late, driver, log });
    const id = project.slice('/projects/'.length);
    await api.core.database.sql`
      insert into backup_histories (history_id, project_id, branch_id, local_at, local_lsn, base_count, stored_bytes,
        waiting_bytes, gap_count, reported_at, behind_since)
      values ('h1', ${id}, 'br-1', now(), '0/2', 0, 0, 0, 0, now(), now())`;
    // A base image takes a while to go up.
    await look();
    expect(received).toEqual([]);
    ahead = hourMs;
    await look();
    await look();
    expect(received.map(({ body }) => JSON.parse(body).data)).toEqual([
      { count: 1, branches: [{ branch_id: 'br-1', behind_seconds: null }] },
    ]);
    ahead += dayMs;
    await look();
    expect(received).toHaveLength(2);
    await api.core.database.sql`delete from backup_histories`;
  });
});

// biome-ignore lint/suspicious/noExplicitAny: only what is read here
const lateBackup: any = { url: 'file:///nowhere', delaySeconds: 60, verifySeconds: undefined };

describe('a delivery', () => {
  test('that fails is sent again later, and then given up; the log says why, and it can be replayed', async () => {
    const { id } = await newWebhook(['compute.woke']);
    answer = { status: 500 };
    await suspendAndWake();
    await turn();
    expect(await deliveriesOf(id)).toMatchObject([{ status: 'pending', attempts: 1, response_status: 500 }]);
    // Not before its time.
    await turn();
    expect(received).toHaveLength(1);
    for (let attempt = 2; attempt <= 9; attempt++) {
      ahead += 601 * minuteMs;
      await turn();
    }
    expect(received).toHaveLength(9);
    const [given] = await deliveriesOf(id);
    expect(given).toMatchObject({ status: 'failed', attempts: 9, error: 'HTTP 500' });
    ahead += dayMs;
    await turn();
    expect(received).toHaveLength(9);

    answer = { status: 204 };
    const replayed = await call('POST', `/webhooks/${id}/deliveries/${given.id}/replay`);
    expect([replayed.status, replayed.body.delivery]).toMatchObject([201, { replay_of: given.id, status: 'pending' }]);
    await turn();
    expect(received.at(-1)?.headers['webhook-id']).toBe(given.event_id);
    const [latest] = await deliveriesOf(id);
    expect(latest).toMatchObject({ status: 'delivered', attempts: 1, response_status: 204, event_id: given.event_id });
    expect(latest).not.toHaveProperty('error');
  });

  test('is not sent to where a redirect leads, nor to private addresses unless they are allowed', async () => {
    const { id } = await newWebhook(['compute.woke']);
    answer = { status: 302, location: url };
    await suspendAndWake();
    await turn();
    expect(received).toHaveLength(1);
    expect(await deliveriesOf(id)).toMatchObject([{ status: 'pending', error: 'HTTP 302' }]);
    ahead = minuteMs;
    const strict = { ...api.core, config: { ...api.core.config, privateKeySets: false } };
    await makeWebhooks().turn({ core: strict, driver, log });
    expect(received).toHaveLength(1);
    expect(await deliveriesOf(id)).toMatchObject([{ attempts: 2, error: 'the URL must start with https://' }]);
  });

  test('keeps the loops from resting only if it can be sent; one that fails for days turns its webhook off', async () => {
    const { id } = await newWebhook(['compute.woke']);
    answer = { status: 500 };
    await suspendAndWake();
    await turn();
    await call('POST', `/endpoints/${endpoint}/suspend`);
    await drain(api.core, driver);
    const { sql } = api.core.database;
    await sql`update endpoints set current_state = 'idle'`;
    const goesOn = () => isAnythingGoingOn(sql, api.core.clock.now());
    expect(await goesOn()).toBe(false);
    ahead = minuteMs;
    expect(await goesOn()).toBe(true);
    await sql`update webhooks set failing_since = now() - interval '6 days'`;
    await turn();
    const [webhook] = (await call('GET', '/webhooks')).body.webhooks;
    expect(webhook).toMatchObject({ id, enabled: false, failing_since: expect.any(String) });
    ahead += dayMs;
    expect(await goesOn()).toBe(false);
    await turn();
    expect(received).toHaveLength(2);
    const refused = await call('POST', `/webhooks/${id}/deliveries/${(await deliveriesOf(id))[0].id}/replay`);
    expect([refused.status, refused.body.message]).toEqual([412, 'the webhook is not enabled']);
    answer = { status: 200 };
    expect((await call('PATCH', `/webhooks/${id}`, { webhook: { enabled: true } })).body.webhook).not.toHaveProperty(
      'failing_since',
    );
    await turn();
    expect(await deliveriesOf(id)).toMatchObject([{ status: 'delivered', attempts: 3 }]);
  });

  test('is forgotten after a week, and what can last a month later', async () => {
    const { id } = await newWebhook(['compute.woke']);
    await suspendAndWake();
    await turn();
    await api.core.database.sql`
      insert into webhook_deliveries (id, webhook_id, event_id, event, body, due_at, created_at)
      values (gen_random_uuid(), ${id}, 'quota.near:x', 'quota.near', '{}', now(), now())`;
    const clean = () => retention.turn({ core: api.core, driver, log });
    ahead = 8 * dayMs;
    await clean();
    expect((await deliveriesOf(id)).map(({ event }: { event: string }) => event)).toEqual(['quota.near']);
    ahead = 41 * dayMs;
    await clean();
    expect(await deliveriesOf(id)).toEqual([]);
  });
});
