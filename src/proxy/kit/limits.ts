/** All limits of the proxy. */
import { isLoopback } from '../../lib/ip.ts';

export interface ProxyLimits {
  /** Largest packet before and during authentication; Postgres itself takes 10,000. */
  readonly startupBytes: number;
  /** From accept to the end of authentication, TLS included. */
  readonly authenticationMs: number;
  /** How long one client waits for its endpoint to wake. */
  readonly wakeMs: number;
  /** One connect and login at a compute. */
  readonly dialMs: number;
  /** How long a compute that should be awake may be unreachable before its clients get an error. */
  readonly unreachableMs: number;
  /** Tries at one address before the endpoint is asked to wake again. */
  readonly dialAttempts: number;
  /** Between two tries. */
  readonly dialRetryMs: number;
  /** Open client connections, whatever their state. */
  readonly connections: number;
  /** Those that have not authenticated yet: in all, and of one address (IPv6: one /64; not limited on loopback). */
  readonly unauthenticated: number;
  readonly unauthenticatedPerAddress: number;
  /** Authenticated connections of one endpoint, direct ones and pooled ones. */
  readonly connectionsPerEndpoint: number;
  readonly pooledPerEndpoint: number;
  /** How long a direct session waits for a permit that a pool gives up. */
  readonly permitMs: number;
  /** How long a pooled client waits for a server, whatever the reason. */
  readonly queueMs: number;
  /** Part of the server's connections that one pool may have. */
  readonly poolShare: number;
  /** A pooled server connection is closed after being idle this long, and at this age. */
  readonly serverIdleMs: number;
  readonly serverLifeMs: number;
  /** Prepared statements kept on one pooled server connection. */
  readonly statementsPerServer: number;
  /**
   * Failed authentications of one address (IPv6: one /64) in a minute; beyond that its connections are refused before
   * they authenticate. Not limited on a loopback bind, where all clients share an address, and one client with a stale
   * password would lock out all of them.
   */
  readonly failuresPerMinute: number;
  /** Most rounds of HMAC spent on checking a cleartext password; a tenant chooses the count of its verifiers. */
  readonly passwordIterations: number;
  /** How long a password that was right is taken as right over HTTP without a look at the role. */
  readonly httpPasswordMs: number;
  /** Body of a request for SQL over HTTP. */
  readonly httpRequestBytes: number;
  /** Body of its reply, and the largest row in it. */
  readonly httpResponseBytes: number;
  /** Bytes of such bodies that are held in memory: in all, and for one endpoint. */
  readonly httpHeldBytes: number;
  readonly httpHeldBytesPerEndpoint: number;
  /** How long a caller may go without reading any of its reply. */
  readonly httpFetchMs: number;
  /** Between two pings of a WebSocket; reverse proxies close what is silent for longer, often after a minute. */
  readonly webSocketPingMs: number;
  /** Between two reports of activity. */
  readonly activityMs: number;
  /** How long close() lets sessions go on that are in a transaction, and requests for SQL over HTTP. */
  readonly drainMs: number;
  /** How long a session that has just begun may be idle before it counts as idle, once the proxy closes. */
  readonly firstRequestMs: number;
  /** How long close() then waits for sessions to reach the end of a message, and for clients to close their side. */
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
  unauthenticated: 5_000,
  unauthenticatedPerAddress: 1_000,
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
  httpPasswordMs: 1_000,
  httpRequestBytes: 10 * 1024 * 1024,
  httpResponseBytes: 10 * 1024 * 1024,
  httpHeldBytes: 512 * 1024 * 1024,
  httpHeldBytesPerEndpoint: 128 * 1024 * 1024,
  httpFetchMs: 60_000,
  webSocketPingMs: 30_000,
  activityMs: 1_000,
  drainMs: 0,
  firstRequestMs: 500,
  closeMs: 2_000,
};

/**
 * For one of several proxies: its part of the limits on the machine's memory and on guesses at passwords. The
 * connections of an endpoint are counted over all proxies of a Catnap (`permits`), and the other limits hold for each
 * proxy. Several Catnaps (`replicas`) do not count together, so their pools divide what pools may have. Direct sessions
 * are not divided: no Catnap knows how many clients come to the others, and the server refuses one too many itself.
 */
export function divideLimits(limits: ProxyLimits, proxies: number, replicas = 1): ProxyLimits {
  return {
    ...limits,
    poolShare: limits.poolShare / replicas,
    pooledPerEndpoint: Math.ceil(limits.pooledPerEndpoint / replicas),
    failuresPerMinute: Math.ceil(limits.failuresPerMinute / proxies / replicas),
    httpHeldBytes: limits.httpHeldBytes / proxies,
    httpHeldBytesPerEndpoint: limits.httpHeldBytesPerEndpoint / proxies,
  };
}

export function limitsFor(bind: string, changes: Partial<ProxyLimits> = {}): ProxyLimits {
  const unbounded = Number.POSITIVE_INFINITY;
  const local = isLoopback(bind) ? { failuresPerMinute: unbounded, unauthenticatedPerAddress: unbounded } : {};
  return { ...defaultLimits, ...local, ...changes };
}
