/** What a real server reports as work, and what does not count; and what it writes out before it falls asleep. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../../test/helpers/eventually.ts';
import { type LocalSubject, makeLocalSubject } from '../../../../test/helpers/local-subject.ts';
import type { ComputeAddress } from '../../../lib/model.ts';
import { Bench, ownerAndDatabase, password } from '../../contract/bench.ts';
import { adminLogin, withSession } from '../../server/admin-session.ts';

let subject: LocalSubject;
let bench: Bench;
let address: ComputeAddress;
const clients: pg.Client[] = [];

/** Background work would disturb the other tests, and so would a checkpoint that comes by time. */
const settings = { wal_level: 'logical', autovacuum: 'off', checkpoint_timeout: '1d' };
const eagerVacuum = {
  ...settings,
  autovacuum: 'on',
  autovacuum_naptime: '1s',
  autovacuum_vacuum_cost_delay: '100ms',
  autovacuum_vacuum_cost_limit: '1',
  autovacuum_vacuum_threshold: '1',
};

beforeAll(async () => {
  subject = await makeLocalSubject(17);
  bench = new Bench(subject);
  await bench.createBranch();
  const running = await bench.start(1, { settings });
  if (running.address === null) throw new Error('it does not run');
  address = running.address;
  await bench.driver.configure(bench.ref, ownerAndDatabase);
  await withSession(address, adminLogin(bench.adminSecret), async (sql) => {
    await sql`ALTER ROLE owner REPLICATION`;
  });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end().catch(() => {})));
  await bench.driver.removeProject(bench.ref);
  await subject.close();
});

async function connect(more: object = {}): Promise<pg.Client> {
  if (address.kind !== 'unix') throw new Error('a local server has a unix socket');
  const host = address.path.slice(0, address.path.lastIndexOf('/'));
  const login = { host, user: 'owner', password, database: 'app', application_name: 'the test' };
  const client = new pg.Client({ ...login, ...more });
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

const observeWork = () => bench.driver.observeWork(bench.ref);
const untilBusyWith = (kind: string | undefined) =>
  eventually(
    async () => {
      const { work } = await observeWork();
      expect(work?.kind).toBe(kind);
      return work;
    },
    { everyMs: 50 },
  );

describe('a server', () => {
  it('is at rest with nobody there, and with an open session that does nothing', async () => {
    await untilBusyWith(undefined);
    const client = await connect();
    await client.query('select 1');
    const { work, lastWorkAt } = await observeWork();
    expect(work).toBeNull();
    expect(Date.now() - (lastWorkAt?.getTime() ?? 0)).toBeLessThan(60_000);
    await client.end();
  });

  it('is busy with a query, and with a transaction, failed ones too', async () => {
    const client = await connect();
    const { pid } = (await client.query('select pg_backend_pid() as pid')).rows[0];
    const running = client.query('select pg_sleep(60)').catch(() => {});
    expect(await untilBusyWith('query')).toMatchObject({
      description: `a query of owner (pid ${pid})`,
      pid,
      role: 'owner',
      slot: null,
      applicationName: 'the test',
    });
    await (await connect()).query('select pg_cancel_backend($1)', [pid]);
    await running;
    await untilBusyWith(undefined);
    await client.query('begin');
    expect((await untilBusyWith('transaction'))?.description).toContain('an open transaction of owner');
    await client.query('select 1/0').catch(() => {});
    await untilBusyWith('transaction');
    await client.query('rollback');
    await untilBusyWith(undefined);
  });

  it('is busy with a client’s replication, and names its slot', async () => {
    await (await connect()).query('create publication empty');
    const client = await connect({ replication: 'database' });
    await client.query('CREATE_REPLICATION_SLOT kept LOGICAL pgoutput');
    // It never answers while it streams.
    void client
      .query(`START_REPLICATION SLOT kept LOGICAL 0/0 (proto_version '1', publication_names 'empty')`)
      .catch(() => {});
    const work = await eventually(async () => {
      const seen = (await observeWork()).work;
      expect(seen).toMatchObject({ kind: 'replication', role: 'owner', slot: 'kept' });
      return seen;
    });
    expect(work?.description).toContain('through the slot kept');
    await (await connect()).query('select pg_terminate_backend($1)', [work?.pid]);
    await untilBusyWith(undefined);
  });

  it('is busy with its own background work, such as autovacuum', async () => {
    await bench.driver.reload(bench.spec(1, { settings: eagerVacuum }));
    const client = await connect();
    await client.query(`create table worn as select i, repeat('x', 500) as t from generate_series(1, 20000) i`);
    await client.query('delete from worn');
    expect((await untilBusyWith('background_worker'))?.description).toContain('autovacuum worker');
    await client.query('drop table worn');
    await bench.driver.reload(bench.spec(1, { settings }));
    await untilBusyWith(undefined);
  });

  it('is at rest beside Catnap’s own session, however busy that is', async () => {
    await untilBusyWith(undefined);
    await withSession(address, adminLogin(bench.adminSecret), async (sql) => {
      await sql.begin(async (tx) => {
        await tx`SELECT 1`;
        expect((await observeWork()).work).toBeNull();
      });
    });
  });

  it('is at rest with an idle session whose state is not tracked', async () => {
    await withSession(address, adminLogin(bench.adminSecret), async (sql) => {
      await sql`ALTER ROLE owner SET track_activities = off`;
    });
    const client = await connect();
    await client.query('select 1');
    await untilBusyWith(undefined);
    await client.query('begin');
    await client.query('create table untracked (a int)');
    await untilBusyWith('query');
    await client.query('rollback');
    await untilBusyWith(undefined);
  });
});

describe('a server that is about to stop', () => {
  const lastCheckpoint = () =>
    withSession(address, adminLogin(bench.adminSecret), async (sql) => {
      const [row] = await sql`SELECT redo_lsn::text AS lsn FROM pg_control_checkpoint()`;
      return row?.lsn;
    });

  it('leaves a few changes to the shutdown, and writes many out first, while its sessions go on', async () => {
    const client = await connect();
    await client.query('create table changed (words text)');
    const before = await lastCheckpoint();
    expect((await bench.driver.settle(bench.ref))?.position).toEqual(expect.any(String));
    expect(await lastCheckpoint()).toBe(before);
    await client.query(
      `select pg_logical_emit_message(false, 'test', repeat('x', 1000000)) from generate_series(1, 40)`,
    );
    expect((await bench.driver.settle(bench.ref))?.position).toEqual(expect.any(String));
    expect(await lastCheckpoint()).not.toBe(before);
    await client.query('drop table changed');
  });
});
