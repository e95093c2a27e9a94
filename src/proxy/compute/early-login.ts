/**
 * A client that waits for a wake: its login begins the moment the server accepts connections, while the control plane
 * still records that it does. The session is used only if the route that opens leads to that very server.
 */
import type { DialAddress } from '../kit/control-plane.ts';
import type { ComputeLogin, LoginOutcome } from './login.ts';

export class EarlyLogin {
  readonly #logIn: (address: DialAddress) => Promise<LoginOutcome>;
  #begun: { readonly generation: number | undefined; readonly login: Promise<ComputeLogin | null> } | null = null;

  constructor(logIn: (address: DialAddress) => Promise<LoginOutcome>) {
    this.#logIn = logIn;
  }

  begin(address: DialAddress): void {
    this.discard();
    const login = this.#logIn(address).then(
      (outcome) => (outcome.kind === 'open' ? outcome : null),
      // Whatever went wrong, the login that follows the wake reports it.
      () => null,
    );
    this.#begun = { generation: address.generation, login };
  }

  /** The session, if it was begun with the server behind this address; null when the client still has to log in. */
  async take(address: DialAddress): Promise<ComputeLogin | null> {
    const begun = this.#begun;
    if (begun === null || address.generation === undefined || begun.generation !== address.generation) return null;
    const compute = await begun.login;
    if (compute === null || compute.socket.destroyed) return null;
    this.#begun = null;
    return { ...compute, address };
  }

  /** Ends a session that was not taken. */
  discard(): void {
    void this.#begun?.login.then((compute) => compute?.socket.destroy());
    this.#begun = null;
  }
}
