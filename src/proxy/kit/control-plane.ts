/**
 * The few questions the proxy may ask. `main.ts` hands it an object of this shape; in tests it is a scripted one.
 */
import type { ComputeAddress } from '../../lib/model.ts';

export type DialAddress = ComputeAddress & {
  /** Sessions that the server takes from clients; not said means that nobody counts. */
  readonly sessions?: number;
};

export interface LoginFacts {
  /** SCRAM verifier of the role, that of the server while it is awake; null when it has none or does not exist. */
  readonly verifier: string | null;
  readonly disabled: boolean;
  /** Single addresses, CIDR blocks or `a-b` ranges; empty means everybody. */
  readonly allowedIps: readonly string[];
}

export interface ControlPlane {
  /** Null when there is no such endpoint; the proxy then goes through the motions all the same. */
  findLogin(endpointId: string, role: string): Promise<LoginFacts | null>;
  /**
   * The address of a server that answers, waking it if need be. Rejects with a CatnapError whose message is for the
   * client. The proxy asks once per endpoint at a time, however many clients wait.
   */
  wake(endpointId: string): Promise<DialAddress>;
  /** The address if the compute is awake now, without waking anything. */
  findAddress(endpointId: string): Promise<DialAddress | null>;
  /**
   * Calls back when something has changed about an endpoint, its route perhaps; null means any of them. Cheap and
   * imprecise: the proxy then looks itself.
   */
  onChange?(listener: (endpointId: string | null) => void): void;
  /** Activity seen since the last report, by endpoint; sent in batches. */
  reportActivity(lastActive: ReadonlyMap<string, Date>): Promise<void>;
}
