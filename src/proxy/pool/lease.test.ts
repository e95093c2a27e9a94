import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bind, execute, parse, query, sync } from '../../../test/helpers/postgres-messages.ts';
import { PostgresProxies } from '../../../test/helpers/proxy.ts';
import { createLogger } from '../../lib/log.ts';
import { deriveKeys, parseVerifier } from '../../lib/scram-verifier.ts';
import type { Identity } from '../client/authenticate.ts';
import { socketNameOf } from '../compute/dial.ts';
import { createWaker } from '../compute/wake.ts';
import { limitsFor } from '../kit/limits.ts';
import { Budgets } from '../permits/budget.ts';
import { parseErrorResponse } from '../protocol/messages.ts';
import type { Lease } from './lease.ts';
import { createPools, type Pools } from './pools.ts';

const proxies = new PostgresProxies();
let identity: Identity;
let pools: Pools;

beforeAll(async () => {
  await proxies.prepare();
  const verifier = parseVerifier(proxies.verifier);
  if (!verifier) throw new Error('no verifier');
  identity = {
    route: { endpointId: 'ep-a', pooled: true },
    role: proxies.role.user,
    keys: await deriveKeys(proxies.role.password, verifier.salt, verifier.iterations),
    verifier,
    facts: { verifier: proxies.verifier, disabled: false, allowedIps: [] },
  };
  const controlPlane = {
    findLogin: async () => null,
    findAddress: async () => null,
    reportActivity: async () => {},
    reportTransfer: async () => {},
    wake: async () => ({ ...proxies.compute, sessions: 2 }),
  };
  const limits = limitsFor('127.0.0.1');
  const waker = createWaker(controlPlane, limits.wakeMs);
  pools = createPools({
    waker,
    budgets: new Budgets(),
    limits,
    log: createLogger({ level: 'silent', process: 'proxy' }),
  });
});
afterEach(() => proxies.cleanUp());
afterAll(async () => {
  pools.close();
  await proxies.dispose();
});

function take({ database = proxies.role.database, signal = new AbortController().signal } = {}): Promise<Lease> {
  return pools.lease({ identity, parameters: new Map([['database', database]]), signal });
}

/** Everything up to ReadyForQuery: the types of the messages, the first column of rows, the SQLSTATE of errors. */
async function receiveReply(lease: Lease): Promise<{ types: string; rows: string[] }> {
  let types = '';
  const rows: string[] = [];
  for (;;) {
    const { type, body } = await lease.receive();
    types += type;
    if (type === 'D') rows.push(body.toString('utf8', 6));
    if (type === 'E') rows.push(parseErrorResponse(body).sqlState);
    if (type === 'Z') return { types, rows };
  }
}

async function backendPid(lease: Lease): Promise<string | undefined> {
  lease.send(query('select pg_backend_pid()'));
  const { types, rows } = await receiveReply(lease);
  expect(types).toBe('TDCZ');
  return rows[0];
}

describe('a lease', () => {
  it('speaks the protocol, and its connection is used again after its release', async () => {
    const first = await take();
    const pid = await backendPid(first);
    const executeWith = (value: string) => Buffer.concat([bind('mine', [value]), execute()]);
    first.send(Buffer.concat([parse('mine', 'select $1::text'), executeWith('one'), executeWith('two'), sync]));
    expect(await receiveReply(first)).toEqual({ types: '12DC2DCZ', rows: ['one', 'two'] });
    expect(first.isIdle).toBe(true);
    first.release();
    const second = await take();
    expect(await backendPid(second)).toBe(pid);
    // The second lease does not have the statement that the first has prepared.
    second.send(Buffer.concat([bind('mine', ['x']), sync]));
    expect((await receiveReply(second)).rows).toEqual(['26000']);
    second.release();
  });

  it('gets no connection to an address that its server has left', async () => {
    const lease = await take();
    const pid = await backendPid(lease);
    lease.release();
    pools.retireOutside('ep-a', socketNameOf(proxies.compute));
    const same = await take();
    expect(await backendPid(same)).toBe(pid);
    // One that is in use when its server moves is not used again after that.
    pools.retireOutside('ep-a', 'elsewhere');
    same.release();
    const other = await take();
    expect(await backendPid(other)).not.toBe(pid);
    other.release();
  });

  it('that is released in a transaction closes its connection', async () => {
    const lease = await take();
    lease.send(query('begin; create temporary table left_behind (n int); select pg_backend_pid()'));
    const [pid] = (await receiveReply(lease)).rows;
    lease.release();
    const next = await take();
    expect(await backendPid(next)).not.toBe(pid);
    next.release();
  });

  it('resets its session behind its last request, and the next one gets it when that is done', async () => {
    const mark = `select set_config('my.mark', 'left', false), pg_backend_pid()`;
    const first = await take();
    const pid = await backendPid(first);
    first.sendLast(Buffer.concat([parse('', mark), bind(''), execute(), sync]));
    expect((await receiveReply(first)).types).toBe('12DCZ');
    first.release();
    const second = await take();
    expect(await backendPid(second)).toBe(pid);
    second.send(query(`select coalesce(nullif(current_setting('my.mark', true), ''), 'nothing')`));
    expect((await receiveReply(second)).rows).toEqual(['nothing']);
    second.release();
  });

  it.each([
    ['a transaction that it leaves open', 'begin', 'CZ'],
    ['an error', 'select 1/0', 'EZ'],
    ['a reset that is refused', `set statement_timeout = 1`, 'CZ'],
  ])('leaves nothing of %s, whether its connection is used again or not', async (_, text, types) => {
    for (let turn = 0; turn < 5; turn++) {
      const lease = await take();
      lease.sendLast(query(text));
      expect((await receiveReply(lease)).types).toBe(types);
      lease.release();
      const next = await take();
      next.send(query(`select current_setting('statement_timeout')`));
      expect((await receiveReply(next)).rows).toEqual(['0']);
      expect(next.isIdle).toBe(true);
      next.release();
    }
  });

  it('gets another server if its own stops before the first request', async () => {
    for (const moment of ['before the lease', 'before the request']) {
      const earlier = await take();
      const pid = await backendPid(earlier);
      earlier.release();
      const stopServer = () => proxies.direct`select pg_terminate_backend(${Number(pid)})`;
      if (moment === 'before the lease') await stopServer();
      const lease = await take();
      if (moment === 'before the request') await stopServer();
      expect(await backendPid(lease)).not.toBe(pid);
      lease.release();
    }
  });

  it('that is in a transaction when its server stops gets an error', async () => {
    const lease = await take();
    lease.send(query('begin'));
    await receiveReply(lease);
    lease.send(query('select pg_terminate_backend(pg_backend_pid())'));
    await expect(receiveReply(lease)).rejects.toThrow();
    lease.release();
  });

  it('that the compute refuses is rejected with the error of the compute', async () => {
    await expect(take({ database: 'absent' })).rejects.toMatchObject({ sqlState: '3D000' });
  });

  it('is rejected when its caller stops waiting', async () => {
    const caller = new AbortController();
    const held = await take();
    held.send(query('begin'));
    await receiveReply(held);
    const waiting = take({ signal: caller.signal });
    caller.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    held.release();
  });
});
