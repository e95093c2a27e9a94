/** Logins at a real server that begin before the client has proved its password, and those that must not. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../../test/helpers/eventually.ts';
import { PostgresProxies } from '../../../test/helpers/proxy.ts';
import type { DialAddress } from '../kit/control-plane.ts';

const proxies = new PostgresProxies();
const { direct } = proxies;
const compute: DialAddress = { ...proxies.compute, generation: 1 };

beforeAll(() => proxies.prepare());
afterEach(() => proxies.cleanUp());
afterAll(() => proxies.dispose());

/** Sessions that the server has under this name, begun early or not. */
async function sessionsOf(name: string): Promise<number> {
  const [row] = await direct`select count(*)::int as n from pg_stat_activity where application_name = ${name}`;
  return row?.n;
}

/** A proxy whose wakes can be held up: until then a client gets as far as its proof. */
async function startHolding() {
  let gate = Promise.resolve();
  let open = () => {};
  const wake = async (): Promise<DialAddress> => {
    await gate;
    return compute;
  };
  const proxy = await proxies.start({ wake });
  const hold = () => {
    gate = new Promise((resolve) => {
      open = resolve;
    });
  };
  const name = `early-${randomUUID()}`;
  const options = { options: 'endpoint=ep-a', application_name: name };
  return { proxy, hold, release: () => open(), name, options };
}

async function useOnce({ proxy, options }: Awaited<ReturnType<typeof startHolding>>): Promise<void> {
  const client = await proxies.client(proxy, options);
  await client.query('select 1');
  await client.end();
}

test('a client that comes again has its session begun before its compute is known to be awake', async () => {
  const held = await startHolding();
  await useOnce(held);
  await eventually(async () => expect(await sessionsOf(held.name)).toBe(0));
  held.hold();
  const client = proxies.newClient(held.proxy, held.options);
  const connecting = client.connect();
  await eventually(async () => expect(await sessionsOf(held.name)).toBe(1));
  held.release();
  await connecting;
  expect((await client.query('select current_user as who')).rows).toEqual([{ who: proxies.role.user }]);
  expect(await sessionsOf(held.name)).toBe(1);
});

test('a client that comes for the first time has none', async () => {
  const held = await startHolding();
  held.hold();
  const client = proxies.newClient(held.proxy, held.options);
  const connecting = client.connect();
  await eventually(() => expect(held.proxy.wakes.length).toBeGreaterThan(0));
  expect(await sessionsOf(held.name)).toBe(0);
  held.release();
  await connecting;
});

test('a wrong password ends the session that was begun, and earns no other', async () => {
  const held = await startHolding();
  await useOnce(held);
  for (let attempt = 0; attempt < 2; attempt++) {
    const wrong = proxies.newClient(held.proxy, { ...held.options, password: 'wrong' });
    await expect(wrong.connect()).rejects.toMatchObject({ code: '28P01' });
  }
  await eventually(async () => expect(await sessionsOf(held.name)).toBe(0));
});

test('a session that was begun with an earlier server of the compute is not used', async () => {
  let address = compute;
  const proxy = await proxies.start({ wake: async () => address });
  const name = `restarted-${randomUUID()}`;
  const options = { options: 'endpoint=ep-a', application_name: name };
  const client = await proxies.client(proxy, options);
  await client.end();
  address = { ...compute, generation: 2 };
  const other = await proxies.client(proxy, options);
  const [{ pid, n } = { pid: 0, n: 0 }] = await direct<{ pid: number; n: number }[]>`
    select max(pid) as pid, count(*)::int as n from pg_stat_activity
    where application_name = ${name} and backend_start = (
      select max(backend_start) from pg_stat_activity where application_name = ${name})`;
  expect(n).toBe(1);
  expect((await other.query('select pg_backend_pid() as pid')).rows).toEqual([{ pid }]);
  await eventually(async () => expect(await sessionsOf(name)).toBe(1));
});

test('a client that comes again to a compute that has fallen asleep asks once for it to be woken', async () => {
  if (compute.kind !== 'unix') throw new Error('the server of the tests has a unix socket');
  const folder = await mkdtemp(join(tmpdir(), 'catnap-asleep-'));
  proxies.onCleanup(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 's');
  let starting = symlink(compute.path, path);
  let generation = 1;
  const wake = async (): Promise<DialAddress> => {
    await starting;
    return { kind: 'unix', path, generation };
  };
  const proxy = await proxies.start({ wake });
  const options = { options: 'endpoint=ep-a' };
  await (await proxies.client(proxy, options)).end();
  expect(proxy.wakes).toHaveLength(1);
  await rm(path);
  generation = 2;
  let start = () => {};
  starting = new Promise<void>((resolve) => {
    start = resolve;
  });
  const client = proxies.newClient(proxy, options);
  const connecting = client.connect();
  await eventually(() => expect(proxy.wakes).toHaveLength(2));
  await symlink(compute.path, path);
  start();
  await connecting;
  expect(proxy.wakes).toHaveLength(2);
});
