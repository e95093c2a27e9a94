/**
 * Waking a compute: queueing the one operation that starts it, and waiting until its route is open. A client waits for
 * every round trip here. The usual wake of a sleeping endpoint is one statement, and the notification that the route is
 * open carries the route; everything else takes a longer path to the same result.
 */
import type { Database, Sql } from '../db/client.ts';
import { type EndpointRow, lockEndpoint, selectEndpointInAnyState, touchEndpoint } from '../db/endpoints.ts';
import { followKeys } from '../db/follow.ts';
import { changesChannel, selectUnfinishedForEndpoint } from '../db/operations.ts';
import { lockProject } from '../db/projects.ts';
import { hurryOperations, insertStartOfSleeper, parseRouteNews, routesChannel, selectWake } from '../db/wakes.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import type { EndpointId, ProjectId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import { type OpenRoute, routeOf } from './connection.ts';
import { type CommandScope, type Core, commandScope } from './context.ts';
import { requireNotHeld } from './disk-guard.ts';
import { queueStart } from './endpoint.ts';
import { sleepsAt } from './idleness.ts';
import { computeKeys, newOperation, wakePriority } from './operation.ts';
import { requireQuotaLeft } from './quota.ts';

/** The poll that makes a wake right when its notification is lost. */
const readEveryMs = 500;
/** The proxy gives up on its clients earlier; this only ends the loop. */
const wakeMsMax = 5 * 60_000;
/** More endpoints than are found asleep between a login and its wake. */
const sleepersMax = 1_000;
/** More than a login takes. */
const sleepsSoonMs = 2_000;

/** What must be known of an endpoint to wake it. */
export type Sleeper = Pick<EndpointRow, 'id' | 'projectId' | 'branchId' | 'type'>;

/** Endpoints that were asleep when a login was looked up: a client that authenticates then wakes them. */
export class Sleepers {
  readonly #sleepers = new Map<EndpointId, Sleeper>();

  note(sleeper: Sleeper): void {
    if (this.#sleepers.size >= sleepersMax) this.#sleepers.clear();
    this.#sleepers.set(sleeper.id, sleeper);
  }

  take(endpointId: EndpointId): Sleeper | undefined {
    const sleeper = this.#sleepers.get(endpointId);
    this.#sleepers.delete(endpointId);
    return sleeper;
  }
}

export interface Awake {
  readonly route: OpenRoute;
  readonly wasAsleep: boolean;
}

export interface Waker {
  /** Wakes the endpoint if it sleeps. Rejects with a CatnapError whose message is for the client. */
  wake(endpointId: EndpointId): Promise<Awake>;
  close(): Promise<void>;
}

export interface WakerOptions {
  readonly log: Logger;
  readonly sleepers?: Sleepers;
  /** A connection for wakes alone: a wake does not wait for a thousand logins. */
  readonly connection?: Database;
}

export async function createWaker(core: Core, options: WakerOptions): Promise<Waker> {
  const { log, sleepers = new Sleepers(), connection = core.database } = options;
  const news = await followKeys<OpenRoute>(core.database, {
    // The channel names operations too, which nothing here waits for.
    [changesChannel]: (payload) => ({ key: payload, told: null }),
    [routesChannel]: (payload) => {
      const { endpointId, route } = parseRouteNews(payload);
      return { key: endpointId, told: route };
    },
  });

  return {
    wake: async (endpointId) => {
      const askedAt = performance.now();
      const interest = news.interestIn(endpointId);
      try {
        let state = await requestWake({ ...core, database: connection }, endpointId, sleepers.take(endpointId));
        // A route that was announced until now may be that of an earlier wake; the rows say whether it was.
        interest.forgetTold();
        const queuedMs = performance.now() - askedAt;
        const wasAsleep = state.kind === 'waking';
        while (state.kind === 'waking' && performance.now() - askedAt < wakeMsMax) {
          await interest.wait(readEveryMs);
          const route = interest.told;
          state = route === null ? await readWake(connection.sql, endpointId) : { kind: 'awake', route };
        }
        if (state.kind === 'waking') throw new Error('a wake was never finished');
        log.debug({ endpoint: endpointId, queuedMs, ms: performance.now() - askedAt }, 'a compute is awake');
        return { route: state.route, wasAsleep };
      } finally {
        interest.end();
      }
    },
    close: news.close,
  };
}

export type WakeState =
  | { readonly kind: 'awake'; readonly route: OpenRoute }
  /** An operation will bring it up, or is about to fail; ask again when something changes. */
  | { readonly kind: 'waking' };

/**
 * Queues the one `start_compute` that is needed, if it is needed. Never queues a second one. `sleeper` is the endpoint
 * as it was last seen, asleep.
 */
export async function requestWake(core: Core, endpointId: EndpointId, sleeper?: Sleeper): Promise<WakeState> {
  // The statement itself checks that the endpoint sleeps; usually no other statement is needed.
  if (sleeper !== undefined && (await queueStartOfSleeper(core, sleeper))) return { kind: 'waking' };
  const seen = await selectEndpointInAnyState(core.database.sql, endpointId);
  if (seen === undefined) throw notFound('endpoint');
  const endpoint = mayFallAsleep(core, seen) ? await touchEndpoint(core.database.sql, endpointId) : seen;
  const route = routeOf(endpoint);
  if (route !== null) return { kind: 'awake', route };
  const seemsAsleep = endpoint.currentState === 'idle' && endpoint.pendingState === null;
  if (seemsAsleep && (await queueStartOfSleeper(core, endpoint))) return { kind: 'waking' };
  return core.database.transaction((tx) => wakeLocked(commandScope(core, tx), endpoint.projectId, endpointId));
}

/** False, with nothing queued, when anything but a sleeping endpoint was found. */
async function queueStartOfSleeper(core: Core, endpoint: Sleeper): Promise<boolean> {
  const options = { ...computeKeys(endpoint), priority: wakePriority };
  return insertStartOfSleeper(core.database.sql, newOperation(core.clock, 'start_compute', options));
}

/**
 * A compute whose idle time is about to end may be put to sleep between this check and the client's login. The
 * reconciler that suspends it checks its last use under the row's lock, so a use that is written there decides which of
 * the two came first.
 */
function mayFallAsleep({ clock }: Core, endpoint: EndpointRow): boolean {
  const at = sleepsAt(endpoint);
  return endpoint.address !== null && at !== null && at.getTime() - clock.now().getTime() < sleepsSoonMs;
}

async function wakeLocked(scope: CommandScope, projectId: ProjectId, endpointId: EndpointId): Promise<WakeState> {
  // The project first, as every command does: that order keeps the queue's order and avoids deadlocks.
  const [project, endpoint, last] = await Promise.all([
    lockProject(scope.tx, projectId),
    lockEndpoint(scope.tx, endpointId),
    selectUnfinishedForEndpoint(scope.tx, endpointId),
  ]);
  if (project === undefined || endpoint === undefined) throw notFound('endpoint');
  if (endpoint.disabled) throw new CatnapError('precondition_failed', 'endpoint is disabled');
  const route = routeOf(endpoint);
  if (route !== null) return { kind: 'awake', route };
  requireQuotaLeft(scope, project);
  requireNotHeld(endpoint);
  if (last?.job !== 'start_compute') await queueStart(scope, endpoint, wakePriority);
  // A suspend that the start waits for, say, or a start that was asked for over the API.
  if (last !== undefined) await hurryOperations(scope.tx, endpointId, wakePriority);
  return { kind: 'waking' };
}

/** The current state of a wake that was requested. */
async function readWake(sql: Sql, endpointId: EndpointId): Promise<WakeState> {
  const seen = await selectWake(sql, endpointId);
  if (seen === undefined) throw notFound('endpoint');
  const route = routeOf(seen);
  if (route !== null) return { kind: 'awake', route };
  if (seen.operationId === null) throw notFound('endpoint');
  if (seen.finishedAt === null) return { kind: 'waking' };
  // Finished without opening the route: it failed, or something else has put the compute back to sleep since.
  const message = withDetails('the compute could not be started', { operation_id: seen.operationId });
  throw new CatnapError('unavailable', message, { cause: seen.error ?? seen.status });
}
