/**
 * The newest keys that anybody has proved for a role of an endpoint. A pooled client proves its password once and then
 * has many server connections, one after the other. When the role's password has changed meanwhile, the server refuses
 * the keys of that proof; those of a client that has logged in since are as good, because both are the same role.
 */
import { CatnapError } from '../../lib/errors.ts';
import type { Identity } from '../client/authenticate.ts';

interface Proof {
  newest: Identity;
  /** Pools that may ask for it. */
  users: number;
}

export class ProvenKeys {
  readonly #proofs = new Map<string, Proof>();

  /** Somebody has just proved this; it is kept only while a pool may need it. */
  note(identity: Identity): void {
    const proof = this.#proofs.get(nameOf(identity));
    if (proof !== undefined) proof.newest = identity;
  }

  /** For a new pool; what it gets back connects with whatever keys the server takes. */
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
          // A slow login may have brought keys of the password before this one.
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
