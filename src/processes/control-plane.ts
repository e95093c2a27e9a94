/** Answers the proxy's questions from the system database, and from servers that are awake. */

import { fetchKeySet } from '../auth-client/key-set-fetch.ts';
import { TokenVerifier } from '../auth-client/token-verifier.ts';
import type { ReadyServer } from '../compute/interface/driver-host.ts';
import { createServerVerifiers } from '../compute/server/verifiers.ts';
import { findAddress } from '../core/connection.ts';
import type { Core } from '../core/context.ts';
import { findTokenLogins, passwordForToken } from '../core/key-set.ts';
import { findByPassword, findLogin, openSessionSoon } from '../core/login.ts';
import { createLooks, findLookRoute, requireLookRoute } from '../core/look.ts';
import { openLoginDesk } from '../core/waiting-login.ts';
import { createWaker, Sleepers } from '../core/wake.ts';
import { announceCancel, cancelsChannel } from '../db/cancels.ts';
import type { Database } from '../db/client.ts';
import { updateLastActive } from '../db/endpoints.ts';
import { accessChannel, selectAccess } from '../db/logins.ts';
import { updateLooksActive } from '../db/looks.ts';
import { changesChannel } from '../db/operations.ts';
import { resetsChannel, selectResets } from '../db/roles.ts';
import { insertTransfers } from '../db/transfers.ts';
import { CatnapError } from '../lib/errors.ts';
import { asEndpointId, isLookId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import { outboundPolicy } from '../lib/outbound.ts';
import type { CancelKey, ControlPlane } from '../proxy/kit/control-plane.ts';

export async function createControlPlane(
  core: Core,
  log: Logger,
  connection: Database,
  followServers: (listener: (server: ReadyServer) => void) => void = () => {},
): Promise<ControlPlane & { close(): Promise<void> }> {
  const { database } = core;
  const sleepers = new Sleepers();
  const verifiers = createServerVerifiers();
  const logins = { core, log, verifiers, sleepers };
  const waker = await createWaker(core, { log, sleepers, connection });
  const loginDesk = await openLoginDesk(core);
  const looks = await createLooks(core);
  const listeners: ((endpointId: string | null) => void)[] = [];
  const unlisten = await database.listen(changesChannel, (payload) => {
    for (const listener of listeners) listener(payload === '' ? null : payload);
  });
  const resetListeners: ((endpointId: string | null) => void)[] = [];
  const unlistenResets = await database.listen(resetsChannel, (payload) => {
    for (const listener of resetListeners) listener(payload === '' ? null : payload);
  });
  const accessListeners: (() => void)[] = [];
  const unlistenAccess = await database.listen(accessChannel, () => {
    for (const listener of accessListeners) listener();
  });
  const cancelListeners: ((key: CancelKey) => void)[] = [];
  // Where there is no other Catnap, nobody passes anything on.
  const unlistenCancels =
    core.config.replicas === 1
      ? async () => {}
      : await database.listen(cancelsChannel, (payload) => {
          const [processId = Number.NaN, secret = Number.NaN] = payload.split(' ').map(Number);
          for (const listener of cancelListeners) listener({ processId, secret });
        });
  return {
    findLogin: (name, role) => findLogin(logins, name, role),
    findByPassword: (role, password) => findByPassword(logins, role, password),
    openPast: (request) => looks.open(request),
    findAddress: (endpointId) =>
      isLookId(endpointId)
        ? findLookRoute(core, asEndpointId(endpointId))
        : findAddress(database.sql, asEndpointId(endpointId)),
    wake: async (given) => {
      const endpointId = asEndpointId(given);
      if (isLookId(given)) return requireLookRoute(core, endpointId);
      const { route, wasAsleep } = await waker.wake(endpointId);
      if (wasAsleep) openSessionSoon(logins, endpointId);
      return route;
    },
    onReady: (listener) => {
      followServers(({ endpointId, generation, address }) => listener(endpointId, { ...address, generation }));
    },
    onChange: (listener) => listeners.push(listener),
    onReset: (listener) => resetListeners.push(listener),
    findResets: async (endpointId) => {
      const resets = await selectResets(database.sql, asEndpointId(endpointId));
      return new Map(resets.map(({ role, resetAt }) => [role, resetAt.getTime()]));
    },
    onAccessChange: (listener) => accessListeners.push(listener),
    findAccess: async (names) => new Map((await selectAccess(database.sql, names)).map((rules) => [rules.name, rules])),
    passCancelOn: ({ processId, secret }) => announceCancel(database.sql, `${processId} ${secret}`),
    onCancel: (listener) => cancelListeners.push(listener),
    verifyToken: makeTokenLogin(core),
    showLink: (request) => loginDesk.showLink(request),
    reportActivity: async (lastActive) => {
      const ofLooks = new Map([...lastActive].filter(([id]) => isLookId(id)));
      if (ofLooks.size > 0) await updateLooksActive(database.sql, ofLooks);
      await updateLastActive(database.sql, lastActive);
    },
    reportTransfer: (report) => insertTransfers(database.sql, report),
    close: async () => {
      await Promise.all([
        unlisten(),
        unlistenResets(),
        unlistenAccess(),
        unlistenCancels(),
        waker.close(),
        loginDesk.close(),
        looks.close(),
      ]);
      await verifiers.close();
    },
  };
}

function makeTokenLogin(core: Core): NonNullable<ControlPlane['verifyToken']> {
  const policy = outboundPolicy(core.config);
  const verifier = new TokenVerifier((url) => fetchKeySet(url, policy));
  return async (endpointId, role, token) => {
    const logins = await findTokenLogins(core, asEndpointId(endpointId), role);
    const sources = logins.map(({ jwksUrl, jwtAudience }) => ({ url: jwksUrl, audience: jwtAudience }));
    const claims = await verifier.verify(token, sources).catch((refused: Error) => {
      throw new CatnapError('unauthenticated', refused.message, { cause: refused.cause });
    });
    return { password: passwordForToken(core, role, logins), claims: JSON.stringify(claims) };
  };
}
