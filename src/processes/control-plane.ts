/** Answers the proxy's questions from the system database. */

import { createServerVerifiers } from '../compute/server/verifiers.ts';
import {
  findAddress,
  findLogin,
  lookAtWake,
  recordActivity,
  recordSeenVerifier,
  requestWake,
} from '../core/connection.ts';
import type { Core } from '../core/context.ts';
import type { Sleeper } from '../core/endpoint.ts';
import { adminSecretSealContext } from '../core/project.ts';
import type { Database } from '../db/client.ts';
import type { LoginRow } from '../db/logins.ts';
import { changesChannel } from '../db/operations.ts';
import { parseRouteNews, routesChannel } from '../db/wakes.ts';
import { delay } from '../lib/clock.ts';
import { asEndpointId, type EndpointId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { ControlPlane, DialAddress, LoginFacts } from '../proxy/kit/control-plane.ts';

/** The poll that makes a wake right when its notification is lost. */
const lookEveryMs = 500;
/** The proxy gives its clients up earlier; this only ends the loop. */
const wakeMsMax = 5 * 60_000;
/** After a wake: its own client comes first. */
const openAheadMs = 100;
/** More endpoints than are looked up between a login and its wake. */
const sleepersMax = 1_000;
/** No role has an empty name. */
const nobody = '';

/** Somebody who waits for an endpoint: what there is to hear, and the open route if that was it. */
interface Waiter {
  news: AbortController;
  route: DialAddress | null;
}

/** `wakes` is a connection that nothing else is asked over: a wake does not stand behind a thousand logins. */
export async function createControlPlane(
  core: Core,
  log: Logger,
  wakes: Database = core.database,
): Promise<ControlPlane & { close(): Promise<void> }> {
  const waiting = new Map<string, Waiter>();
  const listeners: ((endpointId: string | null) => void)[] = [];
  const unlisten = await core.database.listen(changesChannel, (payload) => {
    // An empty payload says that the subscription was broken: everybody looks again.
    for (const [id, waiter] of waiting) if (payload === '' || payload === id) waiter.news.abort();
    for (const listener of listeners) listener(payload === '' ? null : payload);
  });
  const unlistenRoutes = await core.database.listen(routesChannel, (payload) => {
    // Whoever waits was told on the other channel that the subscription was broken.
    if (payload === '') return;
    const { endpointId, route } = parseRouteNews(payload);
    const waiter = waiting.get(endpointId);
    if (waiter === undefined) return;
    waiter.route = route;
    waiter.news.abort();
  });
  const { sql } = core.database;
  /** Endpoints that slept when a login was looked up: if the client proves itself, they are what it wakes. */
  const sleepers = new Map<string, Sleeper>();
  const verifiers = createServerVerifiers();

  const adminSecretOf = ({ adminSecret, projectId }: LoginRow) =>
    core.box.open(adminSecret, adminSecretSealContext(projectId));

  async function wake(endpointId: EndpointId): Promise<DialAddress> {
    const giveUpAt = Date.now() + wakeMsMax;
    const askedAt = performance.now();
    const waiter: Waiter = { news: new AbortController(), route: null };
    waiting.set(endpointId, waiter);
    const sleeper = sleepers.get(endpointId);
    sleepers.delete(endpointId);
    let state = await requestWake({ ...core, database: wakes }, endpointId, sleeper);
    // What was heard until now may be about an earlier wake; whether it was, a look tells.
    waiter.route = null;
    const queuedMs = performance.now() - askedAt;
    const wasAsleep = state.kind === 'waking';
    while (state.kind === 'waking' && Date.now() < giveUpAt) {
      await delay(lookEveryMs, waiter.news.signal);
      waiter.news = new AbortController();
      state = waiter.route ? { kind: 'awake', address: waiter.route } : await lookAtWake(wakes.sql, endpointId);
    }
    if (state.kind === 'waking') throw new Error('a wake was never finished');
    if (wasAsleep) setTimeout(() => void openAhead(endpointId), openAheadMs).unref();
    log.debug({ endpoint: endpointId, queuedMs, ms: performance.now() - askedAt }, 'a compute is awake');
    return state.address;
  }

  /** While a compute is awake it is the truth about its roles, unless a change over the API is on its way to it. */
  async function lookUp(endpointId: EndpointId, role: string): Promise<LoginFacts | null> {
    const login = await findLogin(sql, endpointId, role);
    if (login === undefined) {
      await verifiers.pretend(endpointId);
      return null;
    }
    const { disabled, allowedIps, address, pending, projectId, branchId, type } = login;
    if (sleepers.size >= sleepersMax) sleepers.clear();
    if (address === null) sleepers.set(endpointId, { id: endpointId, projectId, branchId, type });
    else sleepers.delete(endpointId);
    const stored = { verifier: login.verifier, disabled, allowedIps };
    if (address === null || pending) return stored;
    const verifier = await verifiers.read(address, adminSecretOf(login), role);
    if (verifier === undefined || verifier === login.verifier) return stored;
    // Only so that the next accident finds it stored; a login does not wait for it, nor fail with it.
    if (verifier !== null) recordSeenVerifier(sql, login, role, verifier).catch(() => {});
    return { ...stored, verifier };
  }

  /** The session that later logins are looked up by, once whoever woke the compute has had its answer. */
  async function openAhead(endpointId: EndpointId): Promise<void> {
    const login = await findLogin(sql, endpointId, nobody).catch(() => undefined);
    if (login?.address) await verifiers.read(login.address, adminSecretOf(login), nobody);
  }

  return {
    findLogin: async (endpointId, role) => {
      const askedAt = performance.now();
      const found = await lookUp(asEndpointId(endpointId), role);
      log.debug({ endpoint: endpointId, ms: performance.now() - askedAt }, 'a login was looked up');
      return found;
    },
    findAddress: (endpointId) => findAddress(sql, asEndpointId(endpointId)),
    wake: (endpointId) => wake(asEndpointId(endpointId)).finally(() => waiting.delete(endpointId)),
    onChange: (listener) => listeners.push(listener),
    reportActivity: (lastActive) => recordActivity(sql, lastActive),
    close: async () => {
      await Promise.all([unlisten(), unlistenRoutes()]);
      await verifiers.close();
    },
  };
}
