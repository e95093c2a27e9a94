/**
 * The proxy: one TCP port for all computes. Accepts, counts and closes connections; `connection.ts`
 * serves each of them.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, delay } from '../lib/clock.ts';
import { isLoopback, plainAddress } from '../lib/ip.ts';
import type { Logger } from '../lib/log.ts';
import { createTokenBuckets } from '../lib/token-buckets.ts';
import { createAccessWatch } from './client/access-watch.ts';
import { createAttempts } from './client/attempts.ts';
import { createMockVerifiers } from './client/authenticate.ts';
import { sayFarewell } from './client/farewell.ts';
import { RoleSessions } from './client/role-sessions.ts';
import { createUnauthenticatedConnections } from './client/unauthenticated.ts';
import { createCancelKeys } from './compute/cancel.ts';
import { HeadStarts } from './compute/head-start.ts';
import { ownSocket, type Siblings } from './compute/siblings.ts';
import { createWaker, type Waker } from './compute/wake.ts';
import { type ArrivingClient, ClientConnection } from './connection.ts';
import type { ConnectionContext } from './connection-context.ts';
import { startActivity } from './kit/activity.ts';
import type { ControlPlane } from './kit/control-plane.ts';
import { divideLimits, limitsFor, type ProxyLimits } from './kit/limits.ts';
import { noMetrics, type ProxyMetrics } from './kit/metrics.ts';
import { startTransfers } from './kit/transfers.ts';
import { Budgets } from './permits/budget.ts';
import { createLocalClientPermits, createSharedClientPermits, tooManyPooled } from './permits/client-permits.ts';
import type { PermitChannel } from './permits/messages.ts';
import { shareBudgets } from './permits/shared-budget.ts';
import { createPools, watchRoutes } from './pool/pools.ts';
import type { Listener } from './protocol/byte-stream.ts';
import { type BackendKey, type ErrorReport, errorResponse } from './protocol/messages.ts';
import { listen } from './sockets/listen.ts';
import { createTlsContexts, type TlsSource } from './sockets/tls.ts';
import { type OnWebSocket, type SqlOverHttp, startSqlOverHttp } from './sql-over-http/server.ts';

export interface ProxyOptions {
  readonly controlPlane: ControlPlane;
  readonly bind: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** A socket that is bound to the port already, which other proxies may listen on too. */
  readonly portFd?: number | null;
  readonly tls: TlsSource;
  readonly log: Logger;
  readonly clock: Clock;
  /** Hostnames are `<endpoint>.<region>.<domain>`. */
  readonly domain: string;
  readonly region: string;
  /** Whether connections without TLS are allowed; by default only on a loopback bind. */
  readonly allowPlaintext?: boolean;
  /**
   * The salts of roles that do not exist are derived from it. It must survive a restart: if those salts changed and the
   * real ones did not, a client could tell which roles exist.
   */
  readonly mockSecret?: Buffer;
  readonly limits?: Partial<ProxyLimits>;
  /** All proxies of the port, and which of them this is. Without it there is one proxy, and no SQL over HTTP. */
  readonly siblings?: Siblings;
  /** Catnaps with proxies in front of the same computes. */
  readonly replicas?: number;
  /** To the broker of the permits that the proxies share; needed when there are several. */
  readonly permits?: PermitChannel;
  readonly metrics?: ProxyMetrics;
}

export interface RunningProxy {
  readonly port: number;
  /**
   * Stops accepting, lets transactions end within `drainMs`, tells every client, closes all connections within
   * `closeMs`, reports the last activity.
   */
  close(): Promise<void>;
}

const keepAliveMs = 60_000;
const drainLookMs = 20;
const cancelsPerSecond = 100;
const noRoom: ErrorReport = { sqlState: '53300', message: 'Too many connections. Please try again later.' };
/** How many clients at once are sent this refusal; connections beyond that are dropped. */
const refusalsMax = 100;

/** Rejects with the system error when the port is not available, and when key and certificate do not match. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const context = buildContext(options);
  const connections = new Set<ClientConnection>();
  let listener: Listener | null = null;
  let sql: SqlOverHttp | null = null;
  try {
    // A key that does not match its certificate should fail the start, not the first client.
    context.tlsContext();
    listener = await listen({
      bind: options.bind,
      port: options.port,
      portFd: options.portFd,
      keepAliveMs,
      connectionsMax: context.limits.connections + refusalsMax,
      onConnection: (stream, address) =>
        accept({ stream, address: plainAddress(address), webSocket: null }, connections, context),
      onError: (error) => context.log.error({ err: error }, 'the listener failed'),
    });
    if (options.siblings) {
      const onWebSocket: OnWebSocket = (webSocket, address) =>
        accept({ stream: webSocket.stream, address, webSocket }, connections, context);
      sql = await startSqlOverHttp(ownSocket(options.siblings), context, onWebSocket);
    }
  } catch (thrown) {
    void listener?.close();
    context.access.close();
    context.pools.close();
    await Promise.all([context.activity.close(), context.transfers.close()]);
    throw thrown;
  }
  const { port } = listener;
  const ours = listener;
  return {
    port,
    close: async () => {
      await Promise.all([sql?.close(), closeConnections(ours, connections, context.limits)]);
      context.access.close();
      context.pools.close();
      await Promise.all([context.activity.close(), context.transfers.close()]);
    },
  };
}

function buildContext(options: ProxyOptions): ConnectionContext {
  const { controlPlane, clock, log } = options;
  const { permits, siblings } = options;
  const { replicas = 1 } = options;
  const limits = divideLimits(limitsFor(options.bind, options.limits), siblings?.sockets.length ?? 1, replicas);
  const budgets = permits ? shareBudgets('servers', permits) : new Budgets();
  const cancelKeys = createCancelKeys(siblings, limits.dialMs, replicas > 1 ? passCancelsOn(options) : null);
  controlPlane.onCancel?.(
    (key) =>
      void cancelKeys
        .findOwn(key)
        ?.cancel()
        .catch(() => {}),
  );
  const waker = learnLimitsOnWake(createWaker(controlPlane, limits.wakeMs), budgets);
  const pools = createPools({ waker, budgets, limits, log });
  watchRoutes(controlPlane, pools, log);
  return {
    controlPlane,
    tlsContext: createTlsContexts(options.tls),
    names: { domain: options.domain, region: options.region },
    allowPlaintext: options.allowPlaintext ?? isLoopback(options.bind),
    limits,
    log,
    metrics: options.metrics ?? noMetrics,
    mockVerifier: createMockVerifiers(options.mockSecret ?? randomBytes(32)),
    attempts: createAttempts(clock, limits.failuresPerMinute),
    access: createAccessWatch(controlPlane, log),
    unauthenticated: createUnauthenticatedConnections({
      total: limits.unauthenticated,
      perAddress: limits.unauthenticatedPerAddress,
    }),
    directClients: createLocalClientPermits(limits.connectionsPerEndpoint),
    pooledClients: permits
      ? createSharedClientPermits(permits, limits.pooledPerEndpoint, tooManyPooled)
      : createLocalClientPermits(limits.pooledPerEndpoint, tooManyPooled),
    roleSessions: new RoleSessions(controlPlane, log),
    budgets,
    pools,
    headStarts: new HeadStarts(limits.dialMs),
    waker,
    cancelKeys,
    activity: startActivity({ controlPlane, clock, log, intervalMs: limits.activityMs }),
    transfers: startTransfers({ controlPlane, log, intervalMs: limits.activityMs }),
  };
}

/** Anybody can send a cancel request, so only some in each second are worth the attention of all other Catnaps. */
function passCancelsOn({ controlPlane, clock }: ProxyOptions): (key: BackendKey) => Promise<void> {
  const bucket = createTokenBuckets({ capacity: cancelsPerSecond, perSecond: cancelsPerSecond }, 1);
  return async (key) => {
    if (bucket.take('all', clock.now().getTime()) === 0) await controlPlane.passCancelOn?.(key);
  };
}

/** Each wake reports how many sessions the server takes now. */
function learnLimitsOnWake(waker: Waker, budgets: Budgets): Waker {
  return {
    async wake(endpointId, signal, onReady) {
      const address = await waker.wake(endpointId, signal, onReady);
      if (address.sessions !== undefined) budgets.of(endpointId).learnLimit(address.sessions);
      return address;
    },
  };
}

function accept(client: ArrivingClient, connections: Set<ClientConnection>, context: ConnectionContext): void {
  const { limits, metrics, unauthenticated } = context;
  const { stream, address } = client;
  stream.on('error', () => {});
  // Without a message: a flood must not be kept for as long as its clients take to read it.
  const makeRoom = () => {
    metrics.connectionRefused(noRoom.sqlState);
    stream.destroy();
  };
  const leaveUnauthenticated = connections.size < limits.connections ? unauthenticated.enter(address, makeRoom) : null;
  if (leaveUnauthenticated === null) {
    metrics.connectionRefused(noRoom.sqlState);
    // Sent before the first packet of the client, which a proxy without room has no room to read.
    void sayFarewell(stream, errorResponse(noRoom)).then(() => stream.destroy());
    return;
  }
  const connection = new ClientConnection(client, context, leaveUnauthenticated);
  connections.add(connection);
  metrics.connectionOpened();
  void connection.serve().then(() => {
    connections.delete(connection);
    metrics.connectionClosed();
  });
}

async function closeConnections(
  listener: Listener,
  connections: Set<ClientConnection>,
  { drainMs, closeMs }: Pick<ProxyLimits, 'drainMs' | 'closeMs'>,
): Promise<void> {
  const closed = listener.close();
  if (drainMs > 0) {
    for (const connection of connections) connection.drain();
    const endsMs = performance.now() + drainMs;
    // Those that came over HTTP are not the listener's.
    while (connections.size > 0 && performance.now() < endsMs) await delay(drainLookMs);
  }
  for (const connection of connections) connection.shutDown();
  const grace = new AbortController();
  void closed.then(() => grace.abort());
  await delay(closeMs, grace.signal);
  for (const connection of connections) connection.destroy();
  await closed;
}
