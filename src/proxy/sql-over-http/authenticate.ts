/** Who calls: the password of a role, or a token that somebody else has signed for it. */
import { CatnapError } from '../../lib/errors.ts';
import type { Attempts } from '../client/attempts.ts';
import type { Identity, MockVerifiers, PasswordLogin } from '../client/authenticate.ts';
import type { KnownPasswords } from '../client/known-passwords.ts';
import type { UnauthenticatedConnections } from '../client/unauthenticated.ts';
import type { ControlPlane } from '../kit/control-plane.ts';
import type { ProxyLimits } from '../kit/limits.ts';
import type { SqlTarget } from './request.ts';
import { EndpointNotFound, findUnnamedEndpoint } from './unnamed-endpoint.ts';

/** They are sent to the server in the startup packet, which Postgres limits to 10,000. */
const claimsBytesMax = 8_000;

export interface AuthenticateParts {
  readonly controlPlane: ControlPlane;
  readonly limits: ProxyLimits;
  readonly mockVerifier: MockVerifiers;
  readonly attempts: Attempts;
  readonly unauthenticated: UnauthenticatedConnections;
  readonly knownPasswords: KnownPasswords;
}

export interface KnownCaller {
  readonly identity: Identity;
  /** Of its token, as JSON. */
  readonly claims: string | null;
}

export async function authenticate(
  target: SqlTarget,
  address: string,
  context: AuthenticateParts,
): Promise<KnownCaller> {
  const { attempts, unauthenticated, controlPlane, mockVerifier, limits, knownPasswords } = context;
  const { role, credential } = target;
  if (attempts.isExhausted(address)) throw new CatnapError('rate_limited', 'Too many connections attempts');
  const leave = unauthenticated.enter(address);
  if (leave === null) throw new CatnapError('rate_limited', 'Too many connections attempts');
  try {
    const route = target.route ?? (await findUnnamedEndpoint(target, controlPlane));
    const login = { role, route, controlPlane, mockVerifier, passwordIterations: limits.passwordIterations };
    if ('password' in credential) {
      return { identity: await knownPasswords.verify({ ...login, password: credential.password }), claims: null };
    }
    return await verifyToken(login, credential.token, knownPasswords);
  } catch (thrown) {
    const isWrong = thrown instanceof CatnapError && thrown.kind === 'password_wrong';
    if (isWrong || thrown instanceof EndpointNotFound) attempts.recordFailure(address);
    throw thrown;
  } finally {
    leave();
  }
}

async function verifyToken(
  login: Omit<PasswordLogin, 'password'>,
  token: string,
  knownPasswords: KnownPasswords,
): Promise<KnownCaller> {
  const { role, route, controlPlane } = login;
  if (controlPlane.verifyToken === undefined) {
    throw new CatnapError('unauthenticated', 'missing authentication credentials: required password');
  }
  const { password, claims } = await controlPlane.verifyToken(route.endpointId, role, token);
  if (Buffer.byteLength(claims) > claimsBytesMax) {
    throw new CatnapError('invalid_request', `the claims of the token are longer than ${claimsBytesMax} bytes`);
  }
  try {
    return { identity: await knownPasswords.verify({ ...login, password: Buffer.from(password) }), claims };
  } catch (thrown) {
    if (!(thrown instanceof CatnapError) || thrown.kind !== 'password_wrong') throw thrown;
    // The token was right: this is no guess at a password.
    throw new CatnapError('precondition_failed', `the password of role "${role}" was changed by SQL: reset it first`);
  }
}
