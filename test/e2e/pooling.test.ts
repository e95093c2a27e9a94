/** Pooled hosts of the whole program: clients wait through sleep, restart, resize and a crash, and do not fail. */
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, stays } from '../helpers/eventually.ts';
import { Program } from '../helpers/program.ts';
import { ask } from '../helpers/query.ts';

let program: Program;
let projectId: string;
let endpointId: string;
let branchId: string;
let uri: string;
let pooledUri: string;
const clients: pg.Client[] = [];

beforeAll(async () => {
  program = await Program.create();
  await program.start();
  const { body } = await program.api('POST', '/projects', { project: { name: 'pooled' } });
  projectId = body.project.id;
  branchId = body.branch.id;
  endpointId = body.endpoints[0].id;
  uri = body.connection_uris[0].connection_uri;
  pooledUri = uri.replace(endpointId, `${endpointId}-pooler`);
  await ask(uri, 'create table counted (client int, n int)');
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end().catch(() => {})));
  await program.destroy();
});

async function connect(connectionString = pooledUri): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

const path = (rest = '') => `/projects/${projectId}/endpoints/${endpointId}${rest}`;
const state = async () => (await program.api('GET', path())).body.endpoint.current_state;

/** Processes that carry the endpoint's name in their titles, as backends do. */
async function backends(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const titles = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')));
  return titles.filter((title) => title.startsWith('postgres: ') && title.includes(endpointId));
}

/** Many clients that write, one statement at a time, until they are told to stop; any failure is kept. */
function startWriting(pooled: readonly pg.Client[]) {
  const written = pooled.map(() => 0);
  const failures: string[] = [];
  let stopped = false;
  const loops = pooled.map(async (client, id) => {
    while (!stopped) {
      try {
        await client.query({ name: 'count', text: 'insert into counted values ($1, $2)', values: [id, written[id]] });
        written[id] = (written[id] ?? 0) + 1;
      } catch (error) {
        failures.push(String(error));
        return;
      }
    }
  });
  return {
    total: () => written.reduce((sum, n) => sum + n, 0),
    stop: async () => {
      stopped = true;
      await Promise.all(loops);
      return { written, failures };
    },
  };
}

async function whileWriting(disturb: () => Promise<void>): Promise<void> {
  await ask(uri, 'truncate counted');
  const pooled = await Promise.all(Array.from({ length: 10 }, () => connect()));
  const writing = startWriting(pooled);
  await eventually(() => expect(writing.total()).toBeGreaterThan(50));
  await disturb();
  const before = writing.total();
  await eventually(() => expect(writing.total()).toBeGreaterThan(before + 50));
  const { written, failures } = await writing.stop();
  expect(failures).toEqual([]);
  // Every write that was confirmed is there, once.
  const found = await ask(uri, `select count(*) || ' ' || count(distinct (client, n)) from counted`);
  const total = written.reduce((sum, n) => sum + n, 0);
  expect(found).toBe(`${total} ${total}`);
  await Promise.all(pooled.map((client) => client.end()));
}

describe('clients of the pooled host', () => {
  it('stay connected while the compute sleeps, and their next query wakes it', async () => {
    const [one, other] = [await connect(), await connect()];
    await one.query({ name: 'kept', text: 'select 1 as n' });
    await program.api('POST', path('/suspend'));
    await eventually(async () => expect(await state()).toBe('idle'));
    expect(await program.serverPids(endpointId)).toEqual([]);
    await stays(async () => expect(await state()).toBe('idle'), 50);
    expect((await one.query({ name: 'kept', text: 'select 1 as n' })).rows).toEqual([{ n: 1 }]);
    expect((await other.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
    expect(await state()).toBe('active');
    // To leave is not to ask for something.
    await program.api('POST', path('/suspend'));
    await eventually(async () => expect(await state()).toBe('idle'));
    await Promise.all([one.end(), other.end()]);
    expect(await state()).toBe('idle');
  });

  it('wait through a restart, a resize and a suspend', async () => {
    await whileWriting(async () => {
      expect((await program.api('POST', path('/restart'))).status).toBe(200);
      await program.settle(projectId);
    });
    await whileWriting(async () => {
      const size = { autoscaling_limit_min_cu: 0.5, autoscaling_limit_max_cu: 0.5 };
      expect((await program.api('PATCH', path(), { endpoint: size })).status).toBe(200);
      await program.settle(projectId);
    });
    await whileWriting(async () => {
      expect((await program.api('POST', path('/suspend'))).status).toBe(200);
      await program.settle(projectId);
    });
  });

  it('that have not begun wait for a compute that was killed; a transaction gets its error', async () => {
    const [idle, busy] = [await connect(), await connect()];
    await idle.query('select 1');
    await busy.query('begin');
    const [postmaster = 0] = await program.serverPids(endpointId);
    process.kill(postmaster, 'SIGKILL');
    // The backends notice a moment later; a query that reaches one of them at that very moment has begun.
    await eventually(async () => expect(await backends()).toEqual([]));
    await expect(busy.query('select 1')).rejects.toThrow();
    expect((await idle.query('select 3 as n')).rows).toEqual([{ n: 3 }]);
  });

  it('are served by a read replica likewise', async () => {
    const endpoint = { branch_id: branchId, type: 'read_only' };
    const { body } = await program.api('POST', `/projects/${projectId}/endpoints`, { endpoint });
    await program.settle(projectId);
    const replica = await connect(uri.replace(endpointId, `${body.endpoint.id}-pooler`));
    const { rows } = await replica.query({ name: 'r', text: 'select pg_is_in_recovery() as standby' });
    expect(rows).toEqual([{ standby: true }]);
    await expect(replica.query('insert into counted values (1, 1)')).rejects.toMatchObject({ code: '25006' });
    expect((await replica.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
  });
});
