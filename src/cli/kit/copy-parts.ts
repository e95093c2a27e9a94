/** What `catnap import`, `move` and `upgrade major` need of servers, by SQL; failures are for people to read. */

export interface ImportRequest {
  /** Connection strings. */
  readonly source: string;
  readonly target: string;
  readonly withoutLargeObjects: boolean;
  /** `auto` follows the changes of the source where it permits that. */
  readonly method: 'auto' | 'replication' | 'copy';
  /** Called when the target has what the source has; changes are followed until it resolves. */
  readonly whenCaughtUp: () => Promise<void>;
  /** The target has all roles already. */
  readonly hasRoles?: boolean;
  /** A copy that fails is not taken up again, and leaves nothing in the source. */
  readonly isSingleTry?: boolean;
}

export interface ImportProgress {
  readonly phase: 'check' | 'structure' | 'rows' | 'indexes' | 'changes' | 'views' | 'rules' | 'finish';
  readonly name: string;
  readonly done: number;
  readonly of: number;
  readonly bytes?: number;
  readonly bytesOf?: number;
}

export interface ImportReport {
  readonly tables: number;
  readonly rows: number;
  readonly bytes: number;
  readonly method: 'replication' | 'copy';
  readonly isResumed: boolean;
  /** What did not come along, or differs, as sentences. */
  readonly notes: readonly string[];
}

/** One database of a project that is to be moved. */
export interface MoveFacts {
  readonly bytes: number;
  /** The end of a sentence; null if changes can be followed. */
  readonly whyNotReplicated: string | null;
  /** As if the server did permit it. */
  readonly whyTablesNotReplicated: string | null;
  readonly largeObjects: number;
  readonly subscriptions: readonly string[];
  readonly publications: readonly string[];
  readonly slots: readonly string[];
}

export interface ServerRole {
  readonly name: string;
  readonly canLogin: boolean;
  readonly inherits: boolean;
  readonly connectionLimit: number;
  readonly createsDatabases: boolean;
  readonly createsRoles: boolean;
  readonly replicates: boolean;
  /** Is made over the API: it has the rights that such roles have, or owns a database. */
  readonly isOfApi: boolean;
}

interface Membership {
  readonly role: string;
  readonly member: string;
  readonly isAdmin: boolean;
  readonly inherits: boolean;
  readonly canSet: boolean;
}

/** Of a database, of a role, or of a role in a database. */
export interface ServerSetting {
  readonly database: string | null;
  readonly role: string | null;
  readonly text: string;
}

export interface ServerRoles {
  readonly roles: readonly ServerRole[];
  readonly memberships: readonly Membership[];
  readonly settings: readonly ServerSetting[];
}

/** URLs are connection strings. */
export interface RoleParts {
  readonly isPasswordOf: (verifier: string, password: string) => Promise<boolean>;
  readonly read: (source: string, names: readonly string[]) => Promise<ServerRoles>;
  /** Makes those that the API does not make. Can be repeated. */
  readonly make: (
    target: string,
    roles: Pick<ServerRoles, 'roles' | 'memberships'> & { readonly verifiers: ReadonlyMap<string, string> },
  ) => Promise<void>;
  /** Returns sentences about those that could not be made. */
  readonly makeSettings: (target: string, settings: readonly ServerSetting[]) => Promise<readonly string[]>;
}

export interface MoveCopyRequest {
  readonly source: string;
  readonly target: string;
  /** The name of the source database before it was closed, if it is. */
  readonly knownAs?: string;
  readonly method: 'replication' | 'copy';
  readonly withoutLargeObjects: boolean;
  /** Called when the target has what the source has; the copy pauses when it resolves. Without it, it is finished. */
  readonly untilPause?: () => Promise<void>;
}

/** URLs are connection strings. */
export interface MoveParts {
  readonly inspect: (source: string) => Promise<MoveFacts>;
  /** Null where it has paused. A copy that is finished can be asked for again, until `forget`. */
  readonly copy: (request: MoveCopyRequest, report: (progress: ImportProgress) => void) => Promise<ImportReport | null>;
  readonly forget: (target: string) => Promise<void>;
  /** Removes from the source what a copy has made there. */
  readonly abandon: (source: string) => Promise<void>;
}
