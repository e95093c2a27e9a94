/** Logical replication through the front door: out of a compute, into another one, and what a tenant may not do. */
import { tmpdir } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { eventually } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';
import { isInstalled } from '../helpers/tools.ts';

interface Side {
  readonly projectId: string;
  readonly branchId: string;
  readonly endpointId: string;
  readonly uri: string;
}

let program: Program;
/** Postgres 18, where replication is turned on later, and 17, where it is on from the start. */
let publisher: Side;
let subscriber: Side;

const logical = { enable_logical_replication: true };
/** As root a compute reaches this machine only through a way out, and by an address of its own. */
const asRoot = process.getuid?.() === 0;
const machineSeen = asRoot ? '192.0.0.2' : '127.0.0.1';
const canGoOut = !asRoot || isInstalled('slirp4netns');
const waiting = { everyMs: 100 };

async function makeSide(project: object): Promise<Side> {
  const default_endpoint_settings = { suspend_timeout_seconds: 2 };
  const { status, body } = await program.api('POST', '/projects', {
    project: { default_endpoint_settings, ...project },
  });
  expect(status).toBe(201);
  return {
    projectId: body.project.id,
    branchId: body.branch.id,
    endpointId: body.endpoints[0].id,
    uri: body.connection_uris[0].connection_uri,
  };
}

const endpointOf = async ({ projectId, endpointId }: Side) =>
  (await program.api('GET', `/projects/${projectId}/endpoints/${endpointId}`)).body.endpoint;

/** Keeps the compute awake, so that it is asked. */
async function slotsSeen({ projectId, branchId, uri }: Side) {
  await ask(uri, 'select 1');
  return (await program.api('GET', `/projects/${projectId}/branches/${branchId}`)).body.branch.replication_slots;
}

async function suspend({ projectId, endpointId }: Side): Promise<void> {
  await program.api('POST', `/projects/${projectId}/endpoints/${endpointId}/suspend`);
  await program.settle(projectId);
}

/** As a subscription takes it. Its `options` are the subscription's own, so the host name says which endpoint. */
function conninfo({ uri, endpointId }: Side): string {
  const { username, password, port, pathname } = new URL(uri);
  const host = `host=${endpointId}.local.localhost hostaddr=${machineSeen} port=${port} sslmode=require`;
  return `${host} user=${username} password=${password} dbname=${pathname.slice(1)}`;
}

async function replicationClient(uri: string, replication: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri, ...{ replication } });
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** What a person sees of the slots of a branch, of which one is lost. */
async function lookInConsole({ projectId, branchId }: Side): Promise<void> {
  const browser = await startBrowser();
  try {
    const visitor = await browser.visit({ baseURL: `http://localhost:${program.httpPort}` });
    const page = await visitor.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(`/projects/${projectId}/branches/${branchId}`);
    await page.getByLabel('API key').fill(await program.apiKey());
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('row', { name: /^forgotten neondb test_decoding lost/ }).waitFor();
    await page.getByRole('row', { name: /^waiting neondb pgoutput inactive/ }).waitFor();
    await page.getByText('drop the slot, and set its subscriber up again').waitFor();
    expect(await page.getByRole('row').getByText('lost', { exact: true }).count()).toBe(1);
  } finally {
    await browser.close();
  }
}

const countOn = (side: Side) => ask(side.uri, 'select count(*) from t');

beforeAll(async () => {
  // On a disk: a gigabyte of log in memory would count as memory of the compute.
  program = await Program.create(
    { CATNAP_SUSPEND_MIN_SECONDS: '1', CATNAP_OUTBOUND_ALLOW: 'loopback' },
    { under: tmpdir() },
  );
  await program.start();
  publisher = await makeSide({ pg_version: 18 });
  subscriber = await makeSide({
    pg_version: 17,
    settings: { ...logical, ...(canGoOut && { allow_outbound_connections: true }) },
  });
  await ask(publisher.uri, 'create table t (id int primary key, note text)');
  await ask(publisher.uri, `create role app login password 'app'`);
});
afterAll(() => program.destroy());

describe('logical replication', () => {
  it('is off until the project turns it on, and then stays on', async () => {
    const { body } = await program.api('POST', `/projects/${publisher.projectId}/endpoints`, {
      endpoint: { branch_id: publisher.branchId, type: 'read_only' },
    });
    await program.settle(publisher.projectId);
    expect(await ask(publisher.uri, 'show wal_level')).toBe('replica');
    await expect(replicationClient(publisher.uri, 'database')).rejects.toMatchObject({ code: '42501' });
    const path = `/projects/${publisher.projectId}`;
    const on = await program.api('PATCH', path, { project: { settings: logical } });
    expect(on.body.operations.map(({ action }: { action: string }) => action)).toContain('apply_config');
    await program.settle(publisher.projectId);
    expect(await ask(publisher.uri, 'show wal_level')).toBe('logical');
    await ask(publisher.uri, 'create table followed as select 1 as one');
    const replica = publisher.uri.replaceAll(publisher.endpointId, body.endpoint.id);
    await eventually(async () => expect(await ask(replica, 'select one from followed')).toBe('1'), waiting);
    expect(await ask(replica, 'show wal_level')).toBe('logical');
    const off = await program.api('PATCH', path, { project: { settings: { enable_logical_replication: false } } });
    expect(off.status).toBe(400);
    expect(off.body.message).toContain('enable_logical_replication cannot be turned off again');
  });

  it('is for roles that were made through the API, and not for those made by SQL', async () => {
    const replicates = (side: Side) =>
      ask(
        side.uri,
        `select string_agg(rolname, ',' order by rolname) from pg_roles
        where rolreplication and rolname !~ '^catnap'`,
      );
    expect(await replicates(publisher)).toBe('neondb_owner');
    expect(await replicates(subscriber)).toBe('neondb_owner');
    const roles = `/projects/${publisher.projectId}/branches/${publisher.branchId}/roles`;
    expect((await program.api('POST', roles, { role: { name: 'second' } })).status).toBe(201);
    await program.settle(publisher.projectId);
    expect(await replicates(publisher)).toBe('neondb_owner,second');
  });

  it.runIf(canGoOut)('goes out of a compute and into another one, and keeps both awake', async () => {
    await ask(publisher.uri, `insert into t values (1, 'before')`);
    await ask(publisher.uri, 'create publication p for table t');
    await ask(subscriber.uri, 'create table t (id int primary key, note text)');
    await ask(subscriber.uri, `create subscription s connection '${conninfo(publisher)}' publication p`);
    await eventually(async () => expect(await countOn(subscriber)).toBe('1'), waiting);
    await ask(publisher.uri, `insert into t select n, repeat('x', 1000) from generate_series(2, 20000) n`);
    await eventually(async () => expect(await countOn(subscriber)).toBe('20000'), waiting);
    await eventually(async () => {
      expect((await endpointOf(publisher)).why_awake).toMatchObject({ reason: 'replication', slot: 's' });
      const { why_awake } = await endpointOf(subscriber);
      expect(why_awake).toMatchObject({ reason: 'replication' });
      expect(why_awake.description).toContain('the subscription s');
    }, waiting);
    await eventually(async () => {
      const slot = { name: 's', plugin: 'pgoutput', database: 'neondb', active: true, wal_status: 'reserved' };
      expect(await slotsSeen(publisher)).toMatchObject([slot]);
    }, waiting);
  });

  it.runIf(canGoOut)(
    'goes on after its publisher was suspended: the subscriber wakes it, and the slot is still there',
    async () => {
      const before = await ask(publisher.uri, 'select pg_postmaster_start_time()');
      const begunAt = Date.now();
      await suspend(publisher);
      // A subscriber that does not answer would hold the shutdown up for a minute.
      expect(Date.now() - begunAt).toBeLessThan(55_000);
      await eventually(async () => expect((await endpointOf(publisher)).current_state).toBe('active'), waiting);
      expect(await ask(publisher.uri, 'select pg_postmaster_start_time()')).not.toBe(before);
      await ask(publisher.uri, `insert into t values (20001, 'after')`);
      await eventually(async () => expect(await countOn(subscriber)).toBe('20001'), waiting);
    },
  );

  it.runIf(canGoOut)(
    'is left behind by copies: a branch has no slot, and its subscription is off and has none',
    async () => {
      const branchOf = async (side: Side) => {
        const { body } = await program.api('POST', `/projects/${side.projectId}/branches`, {
          branch: { parent_id: side.branchId },
          endpoints: [{ type: 'read_write' }],
        });
        await program.settle(side.projectId);
        return { ...side, branchId: body.branch.id, endpointId: body.endpoints[0].id };
      };
      const uriOf = (side: Side, from: Side) => side.uri.replaceAll(from.endpointId, side.endpointId);
      const published = await branchOf(publisher);
      expect(
        await ask(uriOf(published, publisher), `select count(*) from pg_replication_slots where slot_type = 'logical'`),
      ).toBe('0');
      expect(await ask(uriOf(published, publisher), 'show wal_level')).toBe('logical');
      const subscribed = await branchOf(subscriber);
      const state = `select subenabled || ' ' || coalesce(subslotname, 'none') from pg_subscription`;
      expect(await ask(uriOf(subscribed, subscriber), state)).toBe('false none');
      await ask(uriOf(subscribed, subscriber), 'drop subscription s');
      expect(await ask(subscriber.uri, state)).toBe('true s');
      await ask(publisher.uri, `insert into t values (20002, 'still')`);
      await eventually(async () => expect(await countOn(subscriber)).toBe('20002'), waiting);
    },
  );

  it.runIf(canGoOut)('ends cleanly, and then both computes sleep', async () => {
    await ask(subscriber.uri, 'drop subscription s');
    const logicalSlots = `select count(*) from pg_replication_slots where slot_type = 'logical'`;
    expect(await ask(publisher.uri, logicalSlots)).toBe('0');
    for (const side of [publisher, subscriber]) {
      await eventually(async () => expect((await endpointOf(side)).current_state).toBe('idle'), waiting);
    }
    await eventually(async () => expect(await slotsSeen(publisher)).toEqual([]), waiting);
  });

  it('shows a slot that is lost, because the server keeps no more than 1 GB for it', async () => {
    await ask(subscriber.uri, `select pg_create_logical_replication_slot('forgotten', 'test_decoding')`);
    const fill = `select count(pg_logical_emit_message(false, 'fill', repeat('x', 33554432)))`;
    await ask(subscriber.uri, `${fill} from generate_series(1, 36)`);
    await suspend(subscriber);
    await eventually(async () => {
      const lost = { name: 'forgotten', plugin: 'test_decoding', active: false, wal_status: 'lost' };
      expect(await slotsSeen(subscriber)).toMatchObject([lost]);
    }, waiting);
    await eventually(() => expect(program.output).toContain('a replication slot is lost'), waiting);
    await ask(subscriber.uri, `select pg_create_logical_replication_slot('waiting', 'pgoutput')`);
    await eventually(async () => expect(await slotsSeen(subscriber)).toHaveLength(2), waiting);
    await lookInConsole(subscriber);
  });
});

describe('physical replication', () => {
  it.each(['true', 'on', '1'])('is refused with replication=%s', async (value) => {
    await expect(replicationClient(publisher.uri, value)).rejects.toThrow(/physical replication is not offered/);
  });

  it.each([
    'BASE_BACKUP',
    `BASE_BACKUP (LABEL 'x', WAL true)`,
    'START_REPLICATION 0/0',
    'START_REPLICATION PHYSICAL 0/0',
    'CREATE_REPLICATION_SLOT x PHYSICAL',
    'TIMELINE_HISTORY 1',
  ])('is refused on a connection of a database: %s', async (text) => {
    const client = await replicationClient(publisher.uri, 'database');
    expect((await client.query('IDENTIFY_SYSTEM')).rows).toHaveLength(1);
    await expect(client.query(text)).rejects.toThrow(/physical replication is not offered/);
    await expect(client.query('IDENTIFY_SYSTEM')).rejects.toThrow();
    await client.end().catch(() => {});
  });

  it('and the pooled host refuses all replication', async () => {
    const pooled = publisher.uri.replaceAll(publisher.endpointId, `${publisher.endpointId}-pooler`);
    await expect(replicationClient(pooled, 'database')).rejects.toThrow(/leave -pooler out of the host name/);
  });
});
