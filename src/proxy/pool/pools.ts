/**
 * All pools of one proxy. The pooled sessions of clients and SQL over HTTP get their server connections here.
 *
 * A map of this folder, in the order in which a transaction passes through it:
 *
 *     start-session.ts       an authenticated client finds its pool (below) and is greeted (`greeting.ts`)
 *     pooled-session.ts      the client's bytes arrive; the first of a transaction take a server from the pool
 *     pool.ts                hands out an idle server, or puts the client into the waiting line (`waiting-line.ts`),
 *                            gets a permit from the endpoint's budget and opens a connection (`proven-keys.ts`)
 *     server-connection.ts   is reset if another client has left something, and set to the client's settings
 *                            (`tracked-settings.ts`)
 *     resend-buffer.ts       keeps the first request, in case the server goes before it has read it
 *     request-translator.ts  cuts the bytes into requests (`message-types.ts`) and renames prepared statements
 *                            (`statements.ts`, `deallocate.ts`, `chunk-editor.ts`)
 *     request-queue.ts       notes each request, which then goes to the server
 *     reply-scanner.ts       matches the replies with the requests, hides those that the client did not ask for, and
 *                            reads command tags (`command-tags.ts`) and errors (`error-fields.ts`)
 *     pooled-session.ts      writes the replies to the client; when the server is free, it goes back to the pool
 *
 * `lease.ts` is the counterpart of `pooled-session.ts` for code inside the proxy, such as SQL over HTTP.
 */
import { createHash } from 'node:crypto';
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Identity } from '../client/authenticate.ts';
import { socketNameOf } from '../compute/dial.ts';
import { connectToCompute } from '../compute/session.ts';
import type { Waker } from '../compute/wake.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { Budgets } from '../permits/budget.ts';
import { greet } from './greeting.ts';
import { Lease } from './lease.ts';
import { Pool } from './pool.ts';
import { ProvenKeys } from './proven-keys.ts';
import { splitParameters } from './tracked-settings.ts';

export interface LeaseRequest {
  readonly identity: Identity;
  /** As in a startup packet: `user`, `database`, `options`, …. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Of the caller's token, as JSON. Sessions are shared only with callers that have the very same. */
  readonly claims?: string | null;
  readonly signal: AbortSignal;
}

export interface Pools {
  /** The pool for a client's login and parameters; it exists while it has clients or connections. */
  open(identity: Identity, parameters: ReadonlyMap<string, string>, claims?: string | null): Pool;
  /** A client of a direct session has proved a password, which the pools of its role can use. */
  noteProof(identity: Identity): void;
  /** Waits for a wake, the waiting line and a login if necessary. Rejects with the error for the client. */
  lease(request: LeaseRequest): Promise<Lease>;
  /** The endpoint's server stops (null), or runs at another address: no new transaction starts anywhere else. */
  retireOutside(endpointId: string, socketName: string | null): void;
  /** The endpoints that have pools. */
  endpointIds(): ReadonlySet<string>;
  close(): void;
}

const sweepMs = 10_000;
/** A token is used for minutes, often by one caller only: its sessions are not worth keeping for long. */
const tokenIdleMs = 10_000;

export function createPools(options: { waker: Waker; budgets: Budgets; limits: ProxyLimits; log: Logger }): Pools {
  const { waker, budgets, limits, log } = options;
  const pools = new Map<string, { readonly pool: Pool; readonly releaseKeys: () => void }>();
  const proven = new ProvenKeys();
  const limitsOf = (claims: string | null) => (claims === null ? limits : { ...limits, serverIdleMs: tokenIdleMs });

  const open = (identity: Identity, parameters: ReadonlyMap<string, string>, claims: string | null = null): Pool => {
    const { endpointId } = identity.route;
    const { login } = splitParameters(withDatabase(identity, parameters));
    const key = poolKey(identity, login, claims);
    proven.record(identity);
    const found = pools.get(key);
    if (found !== undefined) return found.pool;
    const { connect, release } = proven.use(identity, (by, signal) =>
      connectToCompute({ identity: by, parameters: login, claims, waker, limits, signal }),
    );
    // The name leaves this process, and a hash does not reveal what the key says about the password.
    const name = createHash('sha256').update(key).digest('base64url').slice(0, 22);
    const pool = new Pool({ endpointId, name, budget: budgets.of(endpointId), connect, limits: limitsOf(claims), log });
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
    noteProof: (identity) => proven.record(identity),
    async lease({ identity, parameters, claims = null, signal }) {
      const pool = open(identity, parameters, claims);
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
    retireOutside(endpointId, socketName) {
      for (const { pool } of pools.values()) if (pool.endpointId === endpointId) pool.retireOutside(socketName);
    },
    endpointIds: () => new Set([...pools.values()].map(({ pool }) => pool.endpointId)),
    close() {
      clearInterval(timer);
      for (const { pool } of pools.values()) pool.close();
      pools.clear();
    },
  };
}

/**
 * Retires the connections of an endpoint as soon as its route is closed, before its server stops, and those to a server
 * that was replaced by one at another address: what was sent there may never get an answer.
 */
export function watchRoutes(controlPlane: ControlPlane, pools: Pools, log: Logger): void {
  controlPlane.onChange?.((changed) => {
    for (const endpointId of pools.endpointIds()) {
      if (changed === null || changed === endpointId) void retireStale(endpointId);
    }
  });

  async function retireStale(endpointId: string): Promise<void> {
    try {
      const address = await controlPlane.findAddress(endpointId);
      pools.retireOutside(endpointId, address && socketNameOf(address));
    } catch (thrown) {
      // The server itself will report that it stops.
      log.warn({ endpointId, reason: errorText(thrown) }, 'the route of an endpoint could not be read');
    }
  }
}

/** As in Postgres, the default database has the name of the role. Both forms must lead to the same pool. */
function withDatabase(identity: Identity, parameters: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([['database', identity.role], ...parameters, ['user', identity.role]]);
}

/** Clients share a pool only if they agree in endpoint, role, proved password, claims, database and parameters. */
function poolKey({ route, verifier }: Identity, login: ReadonlyMap<string, string>, claims: string | null): string {
  const parameters = [...login].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([route.endpointId, verifier.storedKey.toString('base64'), parameters, claims]);
}
