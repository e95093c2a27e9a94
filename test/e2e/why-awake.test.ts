/** What an endpoint says about why it is awake is what the loop goes by that puts it to sleep. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
const clients: pg.Client[] = [];

beforeAll(async () => {
  program = await Program.create({ CATNAP_SUSPEND_MIN_SECONDS: '1' });
  await program.start();
});
afterAll(async () => {
  for (const client of clients) await client.end().catch(() => {});
  await program.destroy();
});

/** A project of its own, so that the tests can wait at the same time. */
async function makeEndpoint(suspendSeconds: number) {
  const { body } = await program.api('POST', '/projects', {
    project: { default_endpoint_settings: { suspend_timeout_seconds: suspendSeconds } },
  });
  const uri: string = body.connection_uris[0].connection_uri;
  const path = `/projects/${body.project.id}/endpoints/${body.endpoints[0].id}`;
  const look = async () => (await program.api('GET', path)).body.endpoint;
  const untilIdle = () => eventually(async () => expect((await look()).current_state).toBe('idle'), { everyMs: 50 });
  const untilReason = (reason: string) =>
    eventually(
      async () => {
        const { why_awake } = await look();
        expect(why_awake?.reason).toBe(reason);
        return why_awake;
      },
      { everyMs: 50 },
    );
  const connect = async () => {
    const client = new pg.Client({ connectionString: uri, application_name: 'a test' });
    client.on('error', () => {});
    clients.push(client);
    await client.connect();
    return client;
  };
  return { path, uri, look, untilIdle, untilReason, connect };
}

describe.concurrent('an endpoint says that it is awake', () => {
  it('because it was used, and sleeps when it says; an open idle session is cut with 57P01', async () => {
    const endpoint = await makeEndpoint(6);
    const beforeConnecting = Date.now();
    const client = await endpoint.connect();
    const cut = new Promise<{ code?: string }>((resolve) => client.once('error', resolve));
    const beforeUse = Date.now();
    await client.query('select 1');
    const { why_awake } = await endpoint.look();
    const afterUse = Date.now();
    expect(why_awake.reason).toBe('recent_activity');
    // Times are in whole seconds on the wire. What a session does is seen when the compute is next
    // observed; until then the connection request is the last use that is known.
    const usedAt = Date.parse(why_awake.sleeps_at) - 6_000;
    expect(usedAt).toBeGreaterThan(beforeConnecting - 1_000);
    expect(usedAt).toBeLessThan(afterUse + 1_000);
    await endpoint.untilIdle();
    expect(Date.now() - beforeUse).toBeGreaterThan(5_900);
    expect((await endpoint.look()).why_awake).toBeUndefined();
    expect((await cut).code).toBe('57P01');
  });

  it('because of its setting', async () => {
    const endpoint = await makeEndpoint(-1);
    expect(await ask(endpoint.uri, 'select 1')).toBe('1');
    expect((await endpoint.look()).why_awake).toEqual({
      reason: 'never_suspends',
      description: 'suspend_timeout_seconds is -1',
    });
  });

  it('because of a query, and counts from its end', async () => {
    const endpoint = await makeEndpoint(2);
    const client = await endpoint.connect();
    const begunAt = Date.now();
    const running = client.query('select pg_sleep(6)');
    const why = await endpoint.untilReason('query');
    expect(why).toMatchObject({ role: 'neondb_owner', application_name: 'a test' });
    expect(why.description).toContain(`(pid ${why.pid})`);
    expect(why.sleeps_at).toBeUndefined();
    expect(Date.now() - Date.parse(why.since)).toBeGreaterThan(1_000);
    await running;
    await endpoint.untilIdle();
    expect(Date.now() - begunAt).toBeGreaterThan(7_900);
  });

  it('because of an open transaction, until it ends', async () => {
    const endpoint = await makeEndpoint(1);
    const client = await endpoint.connect();
    await client.query('begin');
    expect((await endpoint.untilReason('transaction')).description).toContain('an open transaction of neondb_owner');
    await client.query('commit');
    await endpoint.untilIdle();
  });

  it('and every connection request moves the time', async () => {
    const endpoint = await makeEndpoint(4);
    await ask(endpoint.uri, 'select 1');
    const first = Date.parse((await endpoint.untilReason('recent_activity')).sleeps_at);
    await eventually(async () => {
      await ask(endpoint.uri, 'select 1');
      const next = Date.parse((await endpoint.untilReason('recent_activity')).sleeps_at);
      expect(next - first).toBeGreaterThanOrEqual(2_000);
    });
    expect((await endpoint.look()).current_state).toBe('active');
  });
});
