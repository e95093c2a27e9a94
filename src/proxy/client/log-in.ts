/** A client proves who it is: by a password, or by a link that a person confirms. */

import { CatnapError } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/ip.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { StartupPacket } from '../protocol/startup.ts';
import type { OpenWebSocket } from '../websocket/open.ts';
import type { Attempts } from './attempts.ts';
import { authenticate, type Identity, type MockVerifiers } from './authenticate.ts';
import { authenticateByLink } from './link-login.ts';
import type { OpenClient } from './negotiate.ts';
import { asksForLink, chooseRoute, endpointHostname, type HostnameParts, type Route } from './route.ts';

export interface LogInParts {
  readonly controlPlane: ControlPlane;
  readonly names: HostnameParts;
  readonly allowPlaintext: boolean;
  readonly mockVerifier: MockVerifiers;
  readonly passwordIterations: number;
  readonly attempts: Attempts;
  readonly address: string;
  /** Null for a client of the database port. */
  readonly webSocket: Pick<OpenWebSocket, 'hostnames'> | null;
  readonly signal: AbortSignal;
  /** Called as soon as it is known where the client wants to go, before it has proved anything. */
  readonly onRoute: (route: Route, role: string) => void;
  /** Called when a person is waited for, with the time that this may take. */
  readonly onWait: (ms: number) => void;
}

export interface LoggedIn {
  readonly identity: Identity;
  readonly parameters: StartupPacket['parameters'];
  /** It has AuthenticationOk already. */
  readonly isToldOk: boolean;
}

export async function logIn(client: OpenClient, { parameters }: StartupPacket, parts: LogInParts): Promise<LoggedIn> {
  const { allowPlaintext, attempts, names, controlPlane, mockVerifier, passwordIterations, address, webSocket } = parts;
  // TLS of a WebSocket ends before Catnap, at a reverse proxy, as it does for every other request of the HTTP port.
  if (!client.secure && !allowPlaintext && webSocket === null) {
    throw new CatnapError('unauthenticated', 'connection is insecure (try using `sslmode=require`)');
  }
  const role = parameters.get('user');
  if (!role) throw new CatnapError('unauthenticated', "Parameter 'user' is missing in startup packet.");
  if (attempts.isExhausted(address)) throw new CatnapError('rate_limited', 'Too many connections attempts');
  const hostname = hostnameOf(client, parts);
  const route = chooseRoute(hostname, parameters.get('options'), names);
  const login = { messages: client.messages, controlPlane, mockVerifier, passwordIterations };
  // Nobody reads a notice in a WebSocket.
  const showLink = webSocket === null ? controlPlane.showLink : undefined;
  if (showLink && route === null && asksForLink(hostname, parameters.get('application_name'), names)) {
    const { signal, onWait } = parts;
    const chosen = await authenticateByLink({ ...login, showLink, parameters, address, signal, onWait });
    return { ...chosen, isToldOk: true };
  }
  if (route !== null) parts.onRoute(route, role);
  try {
    const identity = await authenticate({
      ...login,
      role,
      route,
      channelBinding: client.secure?.channelBinding ?? null,
      mayAskPassword: client.secure !== null || webSocket !== null || isLoopback(address),
      // Over a WebSocket, drivers send the password and the first query before they have read anything.
      isPasswordSent: webSocket !== null,
    });
    return { identity, parameters, isToldOk: false };
  } catch (thrown) {
    if (thrown instanceof CatnapError && thrown.kind === 'password_wrong') attempts.recordFailure(address);
    throw thrown;
  }
}

function hostnameOf({ secure }: OpenClient, { webSocket, names }: LogInParts): string | null {
  const serverName = secure?.serverName ?? null;
  return webSocket === null ? serverName : endpointHostname([serverName, ...webSocket.hostnames], names);
}
