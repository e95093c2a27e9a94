/** Answers the proxy's questions from the system database. */
import { delay } from '../clock.ts';
import {
  findAddress,
  findLogin,
  lookAtWake,
  recordActivity,
  recordSeenVerifier,
  requestWake,
} from '../core/connection.ts';
import type { Core } from '../core/context.ts';
import { adminSecretPlace } from '../core/project-create.ts';
import { changesChannel } from '../db/operations.ts';
import { asEndpointId, type EndpointId } from '../ids.ts';
import type { Logger } from '../log.ts';
import type { ControlPlane, DialAddress, LoginFacts } from '../proxy/control-plane.ts';
import { createServerVerifiers } from './server-verifiers.ts';

/** The poll that makes a wake right when its notification is lost. */
const lookEveryMs = 500;
/** The proxy gives its clients up earlier; this only ends the loop. */
const wakeMsMax = 5 * 60_000;

export async function createControlPlane(core: Core, log: Logger): Promise<ControlPlane & { close(): Promise<void> }> {
  const waiting = new Map<string, AbortController>();
  const listeners: ((endpointId: string | null) => void)[] = [];
  const unlisten = await core.database.listen(changesChannel, (payload) => {
    // An empty payload says that the subscription was broken: everybody looks again.
    for (const [id, waiter] of waiting) if (payload === '' || payload === id) waiter.abort();
    for (const listener of listeners) listener(payload === '' ? null : payload);
  });
  const { sql } = core.database;
  const verifiers = createServerVerifiers();

  async function wake(endpointId: EndpointId): Promise<DialAddress> {
    const giveUpAt = Date.now() + wakeMsMax;
    const askedAt = performance.now();
    const changed = new AbortController();
    waiting.set(endpointId, changed);
    let state = await requestWake(core, endpointId);
    const queuedMs = performance.now() - askedAt;
    let { signal } = changed;
    while (state.kind === 'waking' && Date.now() < giveUpAt) {
      await delay(lookEveryMs, signal);
      const next = new AbortController();
      waiting.set(endpointId, next);
      signal = next.signal;
      state = await lookAtWake(sql, endpointId);
    }
    if (state.kind === 'waking') throw new Error('a wake was never finished');
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
    const { disabled, allowedIps, address, pending, projectId } = login;
    const stored = { verifier: login.verifier, disabled, allowedIps };
    if (address === null || pending) return stored;
    const secret = core.box.open(login.adminSecret, adminSecretPlace(projectId));
    const verifier = await verifiers.read(address, secret, role);
    if (verifier === undefined || verifier === login.verifier) return stored;
    // Only so that the next accident finds it stored; a login does not wait for it, nor fail with it.
    if (verifier !== null) recordSeenVerifier(sql, login, role, verifier).catch(() => {});
    return { ...stored, verifier };
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
      await unlisten();
      await verifiers.close();
    },
  };
}
