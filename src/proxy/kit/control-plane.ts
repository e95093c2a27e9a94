/**
 * What the proxy asks of the rest of Catnap. The process that starts the proxy passes an implementation in; tests pass
 * a scripted one.
 */
import type { ComputeAddress, TransferReport } from '../../lib/model.ts';

export type DialAddress = ComputeAddress & {
  /** Sessions that the server takes from clients; not said means that nobody counts. */
  readonly sessions?: number;
};

export interface LoginFacts {
  /** The role's SCRAM verifier, as the server has it while awake. Null when the role has none or does not exist. */
  readonly verifier: string | null;
  readonly disabled: boolean;
  /** Single addresses, CIDR blocks or `a-b` ranges; an empty list allows every address. */
  readonly allowedIps: readonly string[];
  /** Only clients with a loopback or private address may connect; not said means that it is not so. */
  readonly publicBlocked?: boolean;
  /** False closes the pooled host; not said means that it is open. */
  readonly poolerEnabled?: boolean;
}

export interface ControlPlane {
  /** Null when there is no such endpoint; the proxy then authenticates against a mock verifier, and refuses. */
  findLogin(endpointId: string, role: string): Promise<LoginFacts | null>;
  /**
   * The address of a server that answers, waking it if needed. Rejects with a CatnapError whose message is for the
   * client. The proxy has one call per endpoint under way at a time, however many clients wait.
   */
  wake(endpointId: string): Promise<DialAddress>;
  /** The address if the compute is awake now, without waking anything. */
  findAddress(endpointId: string): Promise<DialAddress | null>;
  /**
   * Calls back when something about an endpoint has changed, perhaps its route; null means any endpoint. The call is
   * only a hint: the proxy then checks the route.
   */
  onChange?(listener: (endpointId: string | null) => void): void;
  /** Activity seen since the last report, by endpoint; sent in batches. */
  reportActivity(lastActive: ReadonlyMap<string, Date>): Promise<void>;
  /** Bytes sent to clients since the last report. One that was recorded before, and is sent again, does nothing. */
  reportTransfer(report: TransferReport): Promise<void>;
}
