/** Every bound of the proxy in one place. */
import { isLoopback } from '../../lib/config.ts';

export interface ProxyLimits {
  /** Largest packet before and during authentication; Postgres itself takes 10,000. */
  readonly startupBytes: number;
  /** From accept to proven password, TLS included. */
  readonly authenticationMs: number;
  /** How long one client waits for its endpoint to wake. */
  readonly wakeMs: number;
  /** One connect and login at a compute. */
  readonly dialMs: number;
  /** How long a compute that should be awake may be out of reach before its clients are told so. */
  readonly unreachableMs: number;
  /** Tries at one address before the endpoint is asked to wake again. */
  readonly dialAttempts: number;
  /** Between two tries. */
  readonly dialRetryMs: number;
  /** Open client connections, whatever their state. */
  readonly connections: number;
  /** Those that have not proved anything: in all, and of one address (IPv6: one /64; not limited on loopback). */
  readonly unproven: number;
  readonly unprovenPerAddress: number;
  /** Authenticated connections of one endpoint, direct ones and pooled ones. */
  readonly connectionsPerEndpoint: number;
  readonly pooledPerEndpoint: number;
  /** How long a direct session waits for a permit that a pool gives up. */
  readonly permitMs: number;
  /** How long a pooled client waits for a server, whatever the reason. */
  readonly queueMs: number;
  /** Part of the server's connections that one pool may have. */
  readonly poolShare: number;
  /** A pooled server connection is closed after this long without use, and at the end of this life. */
  readonly serverIdleMs: number;
  readonly serverLifeMs: number;
  /** Prepared statements kept on one pooled server connection. */
  readonly statementsPerServer: number;
  /**
   * Failed authentications of one address (IPv6: one /64) in a minute; past it the address is refused unheard. Not
   * limited on a loopback bind, where all clients share an address and one with a stale password would lock out all.
   */
  readonly failuresPerMinute: number;
  /** A cleartext password costs this many rounds of HMAC at most; the count is the tenant's to choose. */
  readonly passwordIterations: number;
  /** Body of a request for SQL over HTTP. */
  readonly httpRequestBytes: number;
  /** Body of its reply, and the largest row in it. */
  readonly httpResponseBytes: number;
  /** Bytes of such bodies that are in memory: in all, and for one endpoint. */
  readonly httpHeldBytes: number;
  readonly httpHeldBytesPerEndpoint: number;
  /** How long a caller may take nothing of its reply. */
  readonly httpFetchMs: number;
  /** Between two reports of activity. */
  readonly activityMs: number;
  /** How long close() lets sessions reach the end of a message, and a told client take its leave. */
  readonly closeMs: number;
}

export const defaultLimits: ProxyLimits = {
  startupBytes: 10_000,
  authenticationMs: 15_000,
  wakeMs: 60_000,
  dialMs: 10_000,
  unreachableMs: 10_000,
  dialAttempts: 5,
  dialRetryMs: 4,
  connections: 50_000,
  unproven: 5_000,
  unprovenPerAddress: 1_000,
  connectionsPerEndpoint: 4_000,
  pooledPerEndpoint: 10_000,
  permitMs: 1_000,
  queueMs: 120_000,
  poolShare: 0.9,
  serverIdleMs: 120_000,
  serverLifeMs: 3_600_000,
  statementsPerServer: 1_000,
  failuresPerMinute: 120,
  passwordIterations: 200_000,
  httpRequestBytes: 10 * 1024 * 1024,
  httpResponseBytes: 10 * 1024 * 1024,
  httpHeldBytes: 512 * 1024 * 1024,
  httpHeldBytesPerEndpoint: 128 * 1024 * 1024,
  httpFetchMs: 60_000,
  activityMs: 1_000,
  closeMs: 2_000,
};

/**
 * For one of several proxies: a part of what bounds the machine's memory or a stranger's guesses. What an endpoint has
 * is counted over all of them (`permits`), and the other bounds are each proxy's own.
 */
export function divideLimits(limits: ProxyLimits, proxies: number): ProxyLimits {
  return {
    ...limits,
    failuresPerMinute: Math.ceil(limits.failuresPerMinute / proxies),
    httpHeldBytes: limits.httpHeldBytes / proxies,
    httpHeldBytesPerEndpoint: limits.httpHeldBytesPerEndpoint / proxies,
  };
}

export function limitsFor(bind: string, changes: Partial<ProxyLimits> = {}): ProxyLimits {
  const unbounded = Number.POSITIVE_INFINITY;
  const local = isLoopback(bind) ? { failuresPerMinute: unbounded, unprovenPerAddress: unbounded } : {};
  return { ...defaultLimits, ...local, ...changes };
}
