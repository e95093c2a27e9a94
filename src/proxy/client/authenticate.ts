/**
 * Checks that a client knows the password of its role. Nobody learns more than that without it: an unknown endpoint, an
 * unknown role and a wrong password take the same steps and get the same answer.
 */
import { timingSafeEqual } from 'node:crypto';
import { CatnapError } from '../../lib/errors.ts';
import {
  defaultIterations,
  deriveKeys,
  hmac,
  parseVerifier,
  type ScramKeys,
  type ScramVerifier,
  saltBytes,
} from '../../lib/scram-verifier.ts';
import type { ControlPlane, LoginFacts } from '../kit/control-plane.ts';
import type { MessageStream } from '../protocol/message-stream.ts';
import {
  authenticationCleartextPassword,
  authenticationSasl,
  authenticationSaslContinue,
  authenticationSaslFinal,
  parsePassword,
  parseSaslInitialResponse,
} from '../protocol/messages.ts';
import { finishServerExchange, offeredMechanisms, parseClientFirst, startServerExchange } from '../protocol/scram.ts';
import { ProtocolError } from '../protocol/wire.ts';
import { endpointMissing, parsePasswordForm, type Route } from './route.ts';

export interface Identity {
  readonly route: Route;
  readonly role: string;
  readonly keys: ScramKeys;
  readonly verifier: ScramVerifier;
  readonly facts: LoginFacts;
}

export interface AuthenticateOptions {
  readonly messages: MessageStream;
  readonly role: string;
  /** Null when the endpoint must be named in the password. */
  readonly route: Route | null;
  /** Hash of our certificate on a TLS connection whose client can bind to it. */
  readonly channelBinding: Buffer | null;
  /** Whether a password may be sent over this connection in clear: with TLS, or if both ends are on this machine. */
  readonly mayAskPassword: boolean;
  /** The client has sent its password without being asked; it may not be able to answer anything else. */
  readonly isPasswordSent: boolean;
  readonly controlPlane: ControlPlane;
  readonly mockVerifier: MockVerifiers;
  readonly passwordIterations: number;
}

export function authenticate(options: AuthenticateOptions): Promise<Identity> {
  const { route } = options;
  return route === null || options.isPasswordSent
    ? authenticateByPassword(options)
    : authenticateByScram(options, route);
}

export function passwordWrong(role: string): CatnapError {
  return new CatnapError('password_wrong', `password authentication failed for user '${role}'`);
}

async function authenticateByScram(options: AuthenticateOptions, route: Route): Promise<Identity> {
  const { messages, role, channelBinding } = options;
  const lookup = findLogin(options, route);
  // Awaited below; until then a rejection must not count as unhandled.
  lookup.catch(() => {});
  const offered = offeredMechanisms(channelBinding);
  messages.write(authenticationSasl(offered));
  const initial = parseSaslInitialResponse(await readResponse(messages));
  let data = initial.data;
  if (data === null) {
    messages.write(authenticationSaslContinue(''));
    data = (await readResponse(messages)).toString('utf8');
  }
  const clientFirst = parseClientFirst(data, initial.mechanism, offered);
  const login = await lookup;
  const exchange = startServerExchange(clientFirst, login.verifier);
  messages.write(authenticationSaslContinue(exchange.serverFirst));
  const clientFinal = (await readResponse(messages)).toString('utf8');
  const proven = finishServerExchange(exchange, clientFinal, channelBinding);
  if (!proven || !login.facts) throw passwordWrong(role);
  messages.write(authenticationSaslFinal(proven.serverFinal));
  return { route, role, keys: proven.keys, verifier: login.verifier, facts: login.facts };
}

async function authenticateByPassword(options: AuthenticateOptions): Promise<Identity> {
  const { messages } = options;
  if (!options.mayAskPassword) throw new CatnapError('unauthenticated', endpointMissing);
  messages.write(authenticationCleartextPassword);
  const given = parsePassword(await readResponse(messages));
  const { route } = options;
  const named = route === null ? parsePasswordForm(given) : { route, password: given };
  if (!named) throw new CatnapError('unauthenticated', endpointMissing);
  return verifyPassword({ ...options, ...named });
}

export interface PasswordLogin {
  readonly role: string;
  readonly route: Route;
  readonly password: Buffer;
  readonly controlPlane: ControlPlane;
  readonly mockVerifier: MockVerifiers;
  readonly passwordIterations: number;
}

/**
 * For a password that the client has sent in clear: it is used here and kept nowhere. `known` is what an earlier proof
 * of this very password has found; its keys are used again if the role has the same verifier.
 */
export async function verifyPassword(login: PasswordLogin, known?: Identity): Promise<Identity> {
  const { role, route } = login;
  let { facts, verifier } = await findLogin(login, route);
  if (verifier.iterations > login.passwordIterations) {
    facts = null;
    verifier = login.mockVerifier(route.endpointId, role);
  }
  const isKnown = known !== undefined && facts !== null && known.facts.verifier === facts.verifier;
  const keys = isKnown ? known.keys : await deriveKeys(login.password, verifier.salt, verifier.iterations);
  const matches = timingSafeEqual(keys.storedKey, verifier.storedKey);
  if (!matches || !facts) throw passwordWrong(role);
  return { route, role, keys, verifier, facts };
}

interface Login {
  readonly verifier: ScramVerifier;
  /** Null when the verifier is a mock, which no proof can satisfy. */
  readonly facts: LoginFacts | null;
}

async function findLogin(
  { role, controlPlane, mockVerifier }: Pick<AuthenticateOptions, 'role' | 'controlPlane' | 'mockVerifier'>,
  route: Route,
): Promise<Login> {
  let facts: LoginFacts | null;
  try {
    facts = await controlPlane.findLogin(route.endpointId, role);
  } catch (cause) {
    // One text whatever the cause: the client is not authenticated yet.
    throw new CatnapError('unavailable', 'Control plane request failed', { cause });
  }
  const verifier = facts?.verifier ? parseVerifier(facts.verifier) : null;
  return verifier ? { verifier, facts } : { verifier: mockVerifier(route.endpointId, role), facts: null };
}

async function readResponse(messages: MessageStream): Promise<Buffer> {
  const message = await messages.readMessage();
  if (message.type !== 'p') throw new ProtocolError('expected an authentication response');
  return message.body;
}

export type MockVerifiers = (endpointId: string, role: string) => ScramVerifier;

/** The same endpoint and role always get the same salt, as they would if the role existed. */
export function createMockVerifiers(secret: Buffer): MockVerifiers {
  return (endpointId, role) => {
    const derive = (what: string) => hmac(secret, `${what}\0${endpointId}\0${role}`);
    return {
      iterations: defaultIterations,
      salt: derive('salt').subarray(0, saltBytes),
      storedKey: derive('stored key'),
      serverKey: derive('server key'),
    };
  };
}
