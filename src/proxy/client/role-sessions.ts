/**
 * The sessions of each role, so that they end when the role's password is reset: a pooled client would otherwise go on
 * with the keys of whoever logs in next. A session that was admitted before the reset, and begins after it, ends too.
 */
import { errorText } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { ControlPlane } from '../kit/control-plane.ts';

/** A login takes less: what it has read before a reset is compared with the reset for this long. */
const rememberMs = 120_000;

interface RoleSession {
  readonly role: string;
  /** The reset that its login knew of. */
  readonly resetAt: number | null;
  readonly end: () => void;
}

export class RoleSessions {
  readonly #sessions = new Map<string, Set<RoleSession>>();
  /** Newest resets, by endpoint; each is forgotten after a while. */
  readonly #recent = new Map<string, ReadonlyMap<string, number>>();
  readonly #controlPlane: ControlPlane;
  readonly #log: Logger;

  constructor(controlPlane: ControlPlane, log: Logger) {
    this.#controlPlane = controlPlane;
    this.#log = log;
    controlPlane.onReset?.((endpointId) => {
      for (const id of endpointId === null ? this.#sessions.keys() : [endpointId]) void this.#check(id);
    });
  }

  /** Call what this returns when the session is over. */
  enter(endpointId: string, session: RoleSession): () => void {
    const ofEndpoint = this.#sessions.get(endpointId) ?? new Set();
    this.#sessions.set(endpointId, ofEndpoint.add(session));
    const resets = this.#recent.get(endpointId);
    if (resets !== undefined && isOlder(session, resets)) session.end();
    return () => {
      ofEndpoint.delete(session);
      if (ofEndpoint.size === 0 && this.#sessions.get(endpointId) === ofEndpoint) this.#sessions.delete(endpointId);
    };
  }

  async #check(endpointId: string): Promise<void> {
    try {
      const resets = (await this.#controlPlane.findResets?.(endpointId)) ?? new Map();
      this.#remember(endpointId, resets);
      for (const session of this.#sessions.get(endpointId) ?? []) if (isOlder(session, resets)) session.end();
    } catch (thrown) {
      // The server ends the sessions that it has; only idle clients of a pool are left.
      this.#log.warn({ endpointId, reason: errorText(thrown) }, 'the resets of an endpoint could not be read');
    }
  }

  #remember(endpointId: string, resets: ReadonlyMap<string, number>): void {
    this.#recent.set(endpointId, resets);
    setTimeout(() => {
      if (this.#recent.get(endpointId) === resets) this.#recent.delete(endpointId);
    }, rememberMs).unref();
  }
}

function isOlder({ role, resetAt }: RoleSession, resets: ReadonlyMap<string, number>): boolean {
  const newest = resets.get(role);
  return newest !== undefined && newest !== resetAt;
}
