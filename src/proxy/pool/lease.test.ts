import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PooledProxies } from '../../../test/helpers/pooled-proxy.ts';
import { createLogger } from '../../lib/log.ts';
import { deriveKeys, parseVerifier } from '../../lib/scram-verifier.ts';
import type { Identity } from '../client/authenticate.ts';
import { createWaker } from '../compute/wake.ts';
import { limitsFor } from '../kit/limits.ts';
import { Budgets } from '../permits/budget.ts';
import { parseErrorResponse } from '../protocol/messages.ts';
import { cstring, encodeMessage, int32 } from '../protocol/wire.ts';
import type { Lease } from './lease.ts';
import { createPools, type Pools } from './pools.ts';

const proxies = new PooledProxies();
let identity: Identity;
let pools: Pools;
const { signal } = new AbortController();

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

const parameters = () => new Map([['database', proxies.role.database]]);
const query = (text: string) => encodeMessage('Q', cstring(text));
const sync = encodeMessage('S');

async function answer(lease: Lease): Promise<{ types: string; rows: string[] }> {
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

describe('a lease', () => {
  it('speaks the protocol, and goes back to be lent again', async () => {
    const first = await pools.lease({ identity, parameters: parameters(), signal });
    first.send(query('select pg_backend_pid()'));
    const { types, rows } = await answer(first);
    expect(types).toBe('TDCZ');
    const parse = encodeMessage('P', cstring('mine'), cstring('select $1::text'), Buffer.from([0, 0]));
    const bind = (text: string) =>
      encodeMessage(
        'B',
        cstring(''),
        cstring('mine'),
        Buffer.from([0, 0, 0, 1]),
        int32(text.length),
        Buffer.from(text),
        Buffer.from([0, 0]),
      );
    const execute = encodeMessage('E', cstring(''), int32(0));
    first.send(Buffer.concat([parse, bind('one'), execute, bind('two'), execute, sync]));
    expect(await answer(first)).toEqual({ types: '12DC2DCZ', rows: ['one', 'two'] });
    expect(first.isIdle).toBe(true);
    first.release();
    const second = await pools.lease({ identity, parameters: parameters(), signal });
    second.send(query('select pg_backend_pid()'));
    expect((await answer(second)).rows).toEqual(rows);
    // What the first had prepared is not the second's.
    second.send(Buffer.concat([bind('x'), sync]));
    expect((await answer(second)).rows).toEqual(['26000']);
    second.release();
  });

  it('that is given up in a transaction takes its server with it', async () => {
    const lease = await pools.lease({ identity, parameters: parameters(), signal });
    lease.send(query('begin; create temporary table left_behind (n int); select pg_backend_pid()'));
    const { rows } = await answer(lease);
    lease.release();
    const next = await pools.lease({ identity, parameters: parameters(), signal });
    next.send(query('select pg_backend_pid()'));
    expect((await answer(next)).rows).not.toEqual(rows);
    next.release();
  });

  it('whose server goes before it has begun is carried out by another', async () => {
    for (const moment of ['before it is lent', 'before it is asked']) {
      const before = await pools.lease({ identity, parameters: parameters(), signal });
      before.send(query('select pg_backend_pid()'));
      const [pid] = (await answer(before)).rows;
      before.release();
      const kill = () => proxies.direct`select pg_terminate_backend(${Number(pid)})`;
      if (moment === 'before it is lent') await kill();
      const lease = await pools.lease({ identity, parameters: parameters(), signal });
      if (moment === 'before it is asked') await kill();
      lease.send(query('select pg_backend_pid()'));
      const { types, rows } = await answer(lease);
      expect(types).toBe('TDCZ');
      expect(rows).not.toEqual([pid]);
      lease.release();
    }
  });

  it('that has begun gets the error of its server', async () => {
    const lease = await pools.lease({ identity, parameters: parameters(), signal });
    lease.send(query('begin'));
    await answer(lease);
    lease.send(query('select pg_terminate_backend(pg_backend_pid())'));
    await expect(answer(lease)).rejects.toThrow();
    lease.release();
  });

  it('is refused in the words of the compute', async () => {
    const absent = pools.lease({ identity, parameters: new Map([['database', 'absent']]), signal });
    await expect(absent).rejects.toMatchObject({ sqlState: '3D000' });
  });

  it('is not waited for by somebody who has left', async () => {
    const leaving = new AbortController();
    const held = await pools.lease({ identity, parameters: parameters(), signal });
    held.send(query('begin'));
    await answer(held);
    const waiting = pools.lease({ identity, parameters: parameters(), signal: leaving.signal });
    leaving.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    held.release();
  });
});
