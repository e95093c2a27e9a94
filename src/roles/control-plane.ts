/** Answers the proxy's questions from the system database. */
import { delay } from '../clock.ts';
import { findAddress, findLogin, lookAtWake, recordActivity, requestWake } from '../core/connection.ts';
import type { Core } from '../core/context.ts';
import { changesChannel } from '../db/operations.ts';
import { asEndpointId, type EndpointId } from '../ids.ts';
import type { Logger } from '../log.ts';
import type { ControlPlane, DialAddress } from '../proxy/control-plane.ts';

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

  return {
    findLogin: async (endpointId, role) => {
      const askedAt = performance.now();
      const found = await findLogin(sql, asEndpointId(endpointId), role);
      log.debug({ endpoint: endpointId, ms: performance.now() - askedAt }, 'a login was looked up');
      return found ?? null;
    },
    findAddress: (endpointId) => findAddress(sql, asEndpointId(endpointId)),
    wake: (endpointId) => wake(asEndpointId(endpointId)).finally(() => waiting.delete(endpointId)),
    onChange: (listener) => listeners.push(listener),
    reportActivity: (lastActive) => recordActivity(sql, lastActive),
    close: unlisten,
  };
}
