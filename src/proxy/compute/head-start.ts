/**
 * A client that comes again to a compute: its login there begins while it still proves its password, with the keys
 * that its last login has proved. Half of the time of a connection is the server's own work to begin a session, and
 * this hides most of it behind the client's round trips.
 *
 * Nothing of the session reaches the client before its proof, and only with the same keys. Somebody else at the same
 * address can make the server begin a session in vain once for each proof of the real client, no more often. The
 * compute is not woken by this: if it sleeps, nobody listens, and the client takes the usual way.
 */
import { timingSafeEqual } from 'node:crypto';
import type { ScramKeys, ScramVerifier } from '../../lib/scram-verifier.ts';
import type { Identity } from '../client/authenticate.ts';
import type { Route } from '../client/route.ts';
import type { DialAddress } from '../kit/control-plane.ts';
import type { EndpointBudget } from '../permits/budget.ts';
import { type ComputeLogin, logIn } from './login.ts';

/** Whose login it is: a client's address, and where it wants to go as whom. */
export interface Caller {
  readonly address: string;
  readonly route: Route;
  readonly role: string;
}

export interface HeadStart {
  /** Nobody listens, or the login was refused: the compute sleeps, for example. */
  readonly hasFailed: boolean;
  /**
   * The session, if the client has proved the keys that it began with, and the server that runs now is the one that it
   * began on: another start of the compute answers at the same address. Null when the usual way must be taken.
   */
  take(identity: Identity, generation: number | undefined): Promise<BegunSession | null>;
  /** The client has not come so far. Does nothing after `take`. */
  discard(): void;
}

export interface BegunSession {
  readonly compute: ComputeLogin;
  readonly releasePermit: () => void;
}

interface Earned {
  readonly keys: ScramKeys;
  readonly verifier: ScramVerifier;
  readonly address: DialAddress;
}

/** The oldest are dropped: each holds the keys of a role. */
const earnedMax = 1_000;

export class HeadStarts {
  readonly #earned = new Map<string, Earned>();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** After a direct session has begun: the next one of this caller may begin early. */
  earn(caller: Caller, { keys, verifier }: Identity, address: DialAddress): void {
    if (address.generation === undefined) return;
    const key = keyOf(caller);
    this.#earned.delete(key);
    this.#earned.set(key, { keys, verifier, address });
    if (this.#earned.size <= earnedMax) return;
    for (const oldest of this.#earned.keys()) {
      this.#earned.delete(oldest);
      return;
    }
  }

  /** Null when the caller has not earned one, or the server may have no room for another session. */
  begin(caller: Caller, parameters: ReadonlyMap<string, string>, budget: EndpointBudget): HeadStart | null {
    const earned = this.#earned.get(keyOf(caller));
    if (earned === undefined) return null;
    this.#earned.delete(keyOf(caller));
    const releasePermit = takeFreePermit(budget);
    if (releasePermit === null) return null;
    const abort = new AbortController();
    const { signal } = abort;
    const login = logIn({ ...earned, parameters, timeoutMs: this.#timeoutMs, signal }).then(
      (outcome) => (outcome.kind === 'open' ? outcome : null),
      () => null,
    );
    let hasFailed = false;
    void login.then((compute) => {
      hasFailed = compute === null;
    });
    let isTaken = false;
    const discard = () => {
      if (isTaken) return;
      isTaken = true;
      abort.abort();
      void login.then((compute) => {
        compute?.socket.destroy();
        releasePermit();
      });
    };
    return {
      get hasFailed() {
        return hasFailed;
      },
      discard,
      async take({ keys, route }, generation) {
        const isSameServer = generation === earned.address.generation;
        if (!isSameServer || route.endpointId !== caller.route.endpointId || !isSameKey(keys, earned.keys)) {
          discard();
          return null;
        }
        const compute = await login;
        if (isTaken) return null;
        if (compute === null || compute.socket.destroyed) {
          discard();
          return null;
        }
        isTaken = true;
        return { compute, releasePermit };
      },
    };
  }
}

function keyOf({ address, route, role }: Caller): string {
  return `${address}\0${route.endpointId}\0${role}`;
}

function isSameKey(one: ScramKeys, other: ScramKeys): boolean {
  return timingSafeEqual(one.storedKey, other.storedKey);
}

/** A permit that is there at once, or null: nobody waits for a head start. */
function takeFreePermit(budget: EndpointBudget): (() => void) | null {
  if (budget.used >= budget.limit) return null;
  let isGranted = false;
  const withdraw = budget.request(() => {
    isGranted = true;
  });
  if (isGranted) return () => budget.release();
  withdraw();
  return null;
}
