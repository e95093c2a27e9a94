/**
 * All pools of one proxy. Pooled clients (`pool/session.ts`) and whoever else speaks to computes on behalf of a proven
 * client get their server connections here.
 *
 * For a user inside the proxy, such as SQL over HTTP:
 *
 *     const lease = await pools.lease({ identity, parameters, signal });   // waits: wake, queue, login
 *     lease.send(messages);                    // frontend messages, any number, named statements included
 *     const { type, body } = await lease.receive();   // backend messages, in order, up to ReadyForQuery and beyond
 *     lease.release();                         // back into the pool if it stands at ReadyForQuery 'I', else closed
 *
 * `identity` is what `authenticate.ts` gives back; `parameters` are those of a startup packet (`user`, `database`,
 * `options`, …). `lease` rejects with what the client is to be told: a CatnapError or a ComputeRefusal. Always release,
 * also after an error; release may be called in the middle of a query, which is then cancelled.
 */
import { createHash } from 'node:crypto';
import type { Logger } from '../../lib/log.ts';
import type { Identity } from '../client/authenticate.ts';
import { connectToCompute } from '../compute/session.ts';
import type { Waker } from '../compute/wake.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { Budgets } from '../permits/budget.ts';
import { greet } from './greeting.ts';
import { Lease } from './lease.ts';
import { splitParameters } from './parameters.ts';
import { Pool } from './pool.ts';
import { ProvenKeys } from './proven-keys.ts';

export interface LeaseRequest {
  readonly identity: Identity;
  readonly parameters: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
}

export interface Pools {
  /** The pool that a client's login and parameters lead to; kept while it has clients or connections. */
  open(identity: Identity, parameters: ReadonlyMap<string, string>): Pool;
  /** A client that wants no pool has proved a password: pools of its role can use that. */
  noteProof(identity: Identity): void;
  lease(request: LeaseRequest): Promise<Lease>;
  /** The endpoint's server is about to stop, or has stopped: no transaction is begun there any more. */
  retire(endpointId: string): void;
  /** Endpoints that have pools, for whoever watches their routes. */
  endpointIds(): ReadonlySet<string>;
  close(): void;
}

const sweepMs = 10_000;

export function createPools(options: { waker: Waker; budgets: Budgets; limits: ProxyLimits; log: Logger }): Pools {
  const { waker, budgets, limits, log } = options;
  const pools = new Map<string, { readonly pool: Pool; readonly releaseKeys: () => void }>();
  const proven = new ProvenKeys();

  const open = (identity: Identity, parameters: ReadonlyMap<string, string>): Pool => {
    const { endpointId } = identity.route;
    const { login } = splitParameters(withDatabase(identity, parameters));
    const key = poolKey(identity, login);
    proven.note(identity);
    const found = pools.get(key);
    if (found !== undefined) return found.pool;
    const { connect, release } = proven.use(identity, (by, signal) =>
      connectToCompute({ identity: by, parameters: login, waker, limits, signal }),
    );
    // Without what the key tells about a password.
    const name = createHash('sha256').update(key).digest('base64url').slice(0, 22);
    const pool = new Pool({ endpointId, name, budget: budgets.of(endpointId), connect, limits, log });
    pools.set(key, { pool, releaseKeys: release });
    return pool;
  };

  const timer = setInterval(() => {
    const now = Date.now();
    for (const [key, { pool, releaseKeys }] of pools) {
      pool.sweep(now);
      if (!pool.isUnused) continue;
      pool.close();
      releaseKeys();
      pools.delete(key);
    }
    budgets.sweep();
  }, sweepMs);
  timer.unref();

  return {
    open,
    noteProof: (identity) => proven.note(identity),
    async lease({ identity, parameters, signal }) {
      const pool = open(identity, parameters);
      pool.clients += 1;
      try {
        const { wanted } = splitParameters(parameters);
        const { values } = await greet(pool, wanted, signal);
        return await Lease.take(pool, values, signal, limits.dialMs);
      } catch (thrown) {
        pool.clients -= 1;
        throw thrown;
      }
    },
    retire(endpointId) {
      for (const { pool } of pools.values()) if (pool.endpointId === endpointId) pool.retireAll();
    },
    endpointIds: () => new Set([...pools.values()].map(({ pool }) => pool.endpointId)),
    close() {
      clearInterval(timer);
      for (const { pool } of pools.values()) pool.close();
      pools.clear();
    },
  };
}

/** Without a name the database is the role's, as in Postgres; the two forms must lead to one pool. */
function withDatabase(identity: Identity, parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([['database', identity.role], ...parameters, ['user', identity.role]]);
}

/** Never shared: endpoint, role, the password that was proved, database, and what else the server is told at login. */
function poolKey({ route, verifier }: Identity, login: ReadonlyMap<string, string>): string {
  const parameters = [...login].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([route.endpointId, verifier.storedKey.toString('base64'), parameters]);
}
