/**
 * Announces a server that clients wait for at the moment it accepts connections. Proxies then begin the logins of these
 * clients while the worker still records that the server runs; nobody gets a session before that is recorded.
 */
import type { EndpointId } from '../../../../lib/ids.ts';
import type { ReadyServer } from '../../../interface/driver-host.ts';

export class ReadyServers {
  readonly #followers = new Set<(server: ReadyServer) => void>();
  /** The start of each endpoint that is to be announced; it stays here if that start fails. */
  readonly #expected = new Map<EndpointId, number>();

  expect(endpointId: EndpointId, generation: number): void {
    this.#expected.set(endpointId, generation);
  }

  note(server: ReadyServer): void {
    if (this.#expected.get(server.endpointId) !== server.generation) return;
    this.#expected.delete(server.endpointId);
    for (const tell of this.#followers) tell(server);
  }

  /** Returns how to end it. */
  follow(tell: (server: ReadyServer) => void): () => void {
    this.#followers.add(tell);
    return () => this.#followers.delete(tell);
  }
}
