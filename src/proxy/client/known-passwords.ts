/**
 * Passwords that callers of SQL over HTTP have proved lately. Each of their requests is a login of its own, and a login
 * costs a query to the system database, one to the server and 2 ms of hashing, which is more than most statements. So a
 * password that was right is taken as right for a moment, unless something is reported that may have changed a login.
 * After that the login is looked up again; the hashing is repeated only if the role has another verifier.
 *
 * What nobody reports is a password that is changed by SQL. The new one works at once, since it is not known here; the
 * old one works until the moment is over.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { ControlPlane } from '../kit/control-plane.ts';
import { type Identity, type PasswordLogin, verifyPassword } from './authenticate.ts';

interface Known {
  readonly identity: Identity;
  /** As `performance.now()`. */
  freshUntil: number;
}

const knownMax = 10_000;

export class KnownPasswords {
  /** In the order of their last look-up. Keys are hashes: no password is kept, and none can be guessed from a key. */
  readonly #known = new Map<string, Known>();
  readonly #secret = randomBytes(32);
  readonly #freshMs: number;
  /** How often something was reported: a look-up that began at another count may have read what is old. */
  #reports = 0;

  constructor(controlPlane: ControlPlane, freshMs: number) {
    this.#freshMs = freshMs;
    controlPlane.onChange?.((endpointId) => this.#expire(endpointId));
    controlPlane.onReset?.((endpointId) => this.#expire(endpointId));
    controlPlane.onAccessChange?.(() => this.#expire(null));
  }

  /** As `verifyPassword`, with facts that may be that moment old. */
  async verify(login: PasswordLogin): Promise<Identity> {
    const key = this.#keyOf(login);
    const known = this.#known.get(key);
    if (known !== undefined && performance.now() < known.freshUntil) return { ...known.identity, route: login.route };
    const reports = this.#reports;
    const startedAt = performance.now();
    try {
      const identity = await verifyPassword(login, known?.identity);
      const freshUntil = reports === this.#reports ? startedAt + this.#freshMs : 0;
      this.#remember(key, { identity, freshUntil });
      return identity;
    } catch (thrown) {
      this.#known.delete(key);
      throw thrown;
    }
  }

  #remember(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > knownMax && oldest !== undefined) this.#known.delete(oldest);
  }

  #expire(endpointId: string | null): void {
    this.#reports += 1;
    for (const known of this.#known.values()) {
      const { route, facts } = known.identity;
      if (endpointId === null || endpointId === route.endpointId || endpointId === facts.endpointId) {
        known.freshUntil = 0;
      }
    }
  }

  #keyOf({ route, role, password }: PasswordLogin): string {
    // Neither a name of an endpoint nor that of a role contains a zero byte, so the parts cannot run together.
    const hash = createHmac('sha256', this.#secret).update(`${route.endpointId}\0${role}\0`).update(password);
    return hash.digest('base64');
  }
}
