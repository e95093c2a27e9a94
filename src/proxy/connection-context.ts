/** What all connections of one proxy share. */
import type { Logger } from '../lib/log.ts';
import type { AccessWatch } from './client/access-watch.ts';
import type { Attempts } from './client/attempts.ts';
import type { MockVerifiers } from './client/authenticate.ts';
import type { RoleSessions } from './client/role-sessions.ts';
import type { HostnameParts } from './client/route.ts';
import type { UnauthenticatedConnections } from './client/unauthenticated.ts';
import type { CancelKeys } from './compute/cancel.ts';
import type { HeadStarts } from './compute/head-start.ts';
import type { Waker } from './compute/wake.ts';
import type { Activity } from './kit/activity.ts';
import type { ControlPlane } from './kit/control-plane.ts';
import type { ProxyLimits } from './kit/limits.ts';
import type { ProxyMetrics } from './kit/metrics.ts';
import type { Transfers } from './kit/transfers.ts';
import type { Budgets } from './permits/budget.ts';
import type { ClientPermits } from './permits/client-permits.ts';
import type { Pools } from './pool/pools.ts';
import type { TlsContext } from './sockets/tls.ts';

export interface ConnectionContext {
  readonly controlPlane: ControlPlane;
  readonly tlsContext: () => TlsContext;
  readonly names: HostnameParts;
  readonly allowPlaintext: boolean;
  readonly limits: ProxyLimits;
  readonly log: Logger;
  readonly metrics: ProxyMetrics;
  readonly mockVerifier: MockVerifiers;
  readonly attempts: Attempts;
  readonly unauthenticated: UnauthenticatedConnections;
  readonly access: AccessWatch;
  readonly directClients: ClientPermits;
  readonly pooledClients: ClientPermits;
  readonly roleSessions: RoleSessions;
  readonly budgets: Budgets;
  readonly pools: Pools;
  readonly headStarts: HeadStarts;
  readonly waker: Waker;
  readonly cancelKeys: CancelKeys;
  readonly activity: Activity;
  readonly transfers: Transfers;
}
