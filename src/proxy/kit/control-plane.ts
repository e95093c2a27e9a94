/**
 * What the proxy asks of the rest of Catnap. The process that starts the proxy passes an implementation in; tests pass
 * a scripted one.
 */
import type { ComputeAddress, TransferReport } from '../../lib/model.ts';

export type DialAddress = ComputeAddress & {
  /** Sessions that the server takes from clients; not said means that nobody counts. */
  readonly sessions?: number;
  /** Which start of the compute it is: a server that has started since is another one, at the same address. */
  readonly generation?: number;
};

/** Which addresses may connect. */
export interface AccessRules {
  /** Single addresses, CIDR blocks or `a-b` ranges; an empty list allows every address. */
  readonly allowedIps: readonly string[];
  /** Only clients with a loopback or private address may connect; not said means that it is not so. */
  readonly publicBlocked?: boolean;
}

export interface LoginFacts extends AccessRules {
  /** The role's SCRAM verifier, as the server has it while awake. Null when the role has none or does not exist. */
  readonly verifier: string | null;
  /** When the role's password was last reset over the API, in milliseconds; null, or not said, for never. */
  readonly resetAt?: number | null;
  readonly disabled: boolean;
  /** False closes the pooled host; not said means that it is open. */
  readonly poolerEnabled?: boolean;
  /** The compute that a branch's name stands for; null for a branch without one, and not said for an endpoint. */
  readonly endpointId?: string | null;
}

/** A moment of the past that an authenticated client wants to see. */
export interface PastRequest {
  /** Id of an endpoint, or of a branch. */
  readonly name: string;
  readonly moment: { readonly lsn?: string; readonly timestamp?: string };
  readonly role: string;
  /** The one that the client has proved to know. */
  readonly verifier: string;
}

/** What a client says that wants to be let in by a person. */
export interface LinkRequest {
  readonly address: string;
  readonly role: string;
  readonly database: string;
  readonly applicationName: string;
}

export interface ShownLink {
  readonly link: string;
  /** How long the link is valid. */
  readonly seconds: number;
  /** Rejects with a CatnapError whose message is for the client, or with the signal's reason. */
  wait(signal: AbortSignal): Promise<LinkGrant>;
}

/** What a person has chosen for the client. */
export interface LinkGrant {
  readonly endpointId: string;
  readonly role: string;
  readonly database: string;
  readonly password: string;
}

export interface TokenGrant {
  readonly password: string;
  /** The claims of the token, as JSON. */
  readonly claims: string;
}

/** As Postgres has it in BackendKeyData. */
export interface CancelKey {
  readonly processId: number;
  readonly secret: number;
}

export interface ControlPlane {
  /**
   * `name` is the id of an endpoint or of a branch. Null when there is neither; the proxy then authenticates against a
   * mock verifier, and refuses.
   */
  findLogin(name: string, role: string): Promise<LoginFacts | null>;
  /**
   * Ids of endpoints where a role of this name has this password, two at most. Without it, a caller must name its
   * endpoint.
   */
  findByPassword?(role: string, password: string): Promise<readonly string[]>;
  /**
   * The address of a server that answers, waking it if needed. Rejects with a CatnapError whose message is for the
   * client. The proxy has one call per endpoint under way at a time, however many clients wait.
   */
  wake(endpointId: string): Promise<DialAddress>;
  /**
   * Calls back when a server has come up whose route is about to open: logins may begin there, and must not be used
   * before `wake` returns an address with the same generation. Without it, logins begin then.
   */
  onReady?(listener: (endpointId: string, address: DialAddress) => void): void;
  /**
   * The id of a compute that serves that moment, as soon as it does; `wake` and `findAddress` know it. Rejects with a
   * CatnapError whose message is for the client. Without it, the past is not offered.
   */
  openPast?(request: PastRequest): Promise<string>;
  /** The address if the compute is awake now, without waking anything. */
  findAddress(endpointId: string): Promise<DialAddress | null>;
  /**
   * Calls back when something about an endpoint has changed, perhaps its route; null means any endpoint. The call is
   * only a hint: the proxy then checks the route.
   */
  onChange?(listener: (endpointId: string | null) => void): void;
  /**
   * Calls back when a password of an endpoint's roles was reset; null means any endpoint. Only a hint: `findResets`
   * tells which. Without it, sessions outlive a reset.
   */
  onReset?(listener: (endpointId: string | null) => void): void;
  /** When each role of the endpoint was last reset, in milliseconds. */
  findResets?(endpointId: string): Promise<ReadonlyMap<string, number>>;
  /** Calls back when the access rules of something may have changed. Without it, sessions outlive such a change. */
  onAccessChange?(listener: () => void): void;
  /** The access rules of endpoints and branches, by their ids; what does not exist is left out. */
  findAccess?(names: readonly string[]): Promise<ReadonlyMap<string, AccessRules>>;
  /** Makes a link with which a person lets the client in; without it, logins without a password are not offered. */
  showLink?(request: LinkRequest): Promise<ShownLink>;
  /**
   * The password of the role, for a caller whose token a provider of the endpoint's project has signed. Rejects with a
   * CatnapError whose message is for the caller. Without it, tokens are not accepted.
   */
  verifyToken?(endpointId: string, role: string, token: string): Promise<TokenGrant>;
  /** Passes a cancel request on to all other Catnaps, whose key it may be. Without it, they get none. */
  passCancelOn?(key: CancelKey): Promise<void>;
  /** Calls back with each that another Catnap has passed on, and with those of this one. */
  onCancel?(listener: (key: CancelKey) => void): void;
  /** Activity seen since the last report, by endpoint; sent in batches. */
  reportActivity(lastActive: ReadonlyMap<string, Date>): Promise<void>;
  /** Bytes sent to clients since the last report. One that was recorded before, and is sent again, does nothing. */
  reportTransfer(report: TransferReport): Promise<void>;
}
