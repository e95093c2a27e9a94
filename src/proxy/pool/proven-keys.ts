/**
 * The newest keys that a client has proved for a role of an endpoint. A pooled client proves its password once and then
 * uses many server connections, one after the other. If the role's password changes meanwhile, the server refuses the
 * keys of that proof. The keys of a client that has logged in since then are as good, because both are the same role.
 */
import { CatnapError } from '../../lib/errors.ts';
import type { Identity } from '../client/authenticate.ts';

interface Proof {
  newest: Identity;
  /** How many pools use it. */
  users: number;
}

export class ProvenKeys {
  readonly #proofs = new Map<string, Proof>();

  /** A client has just proved this identity. It is remembered only while a pool may need it. */
  record(identity: Identity): void {
    const proof = this.#proofs.get(nameOf(identity));
    if (proof !== undefined) proof.newest = identity;
  }

  /** For a new pool: returns a `connect` that uses the keys which the server accepts. */
  use<T>(own: Identity, connect: (identity: Identity, signal: AbortSignal) => Promise<T>) {
    const name = nameOf(own);
    const proof = this.#proofs.get(name) ?? { newest: own, users: 0 };
    proof.users += 1;
    this.#proofs.set(name, proof);
    return {
      connect: async (signal: AbortSignal): Promise<T> => {
        const { newest } = proof;
        try {
          return await connect(newest, signal);
        } catch (thrown) {
          // A slow login may have recorded the keys of an older password last.
          if (!isPasswordWrong(thrown) || isSamePassword(newest, own)) throw thrown;
          const connected = await connect(own, signal);
          if (proof.newest === newest) proof.newest = own;
          return connected;
        }
      },
      release: () => {
        proof.users -= 1;
        if (proof.users === 0) this.#proofs.delete(name);
      },
    };
  }
}

function nameOf({ route, role }: Identity): string {
  return JSON.stringify([route.endpointId, role]);
}

function isPasswordWrong(thrown: unknown): boolean {
  return thrown instanceof CatnapError && thrown.kind === 'password_wrong';
}

function isSamePassword(one: Identity, other: Identity): boolean {
  return one.verifier.storedKey.equals(other.verifier.storedKey);
}
