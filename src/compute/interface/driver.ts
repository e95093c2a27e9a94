/**
 * What Catnap asks of whatever runs its computes. Implemented by `local/` (processes of this machine), `kubernetes/`
 * (Clusters of CloudNativePG) and `fake/` (in memory, for tests); all pass `contract/`.
 *
 * Every call may be repeated: a call whose effect is already there succeeds and changes nothing. `generation` is a
 * fence: a start or stop with an older generation than the driver has seen for that endpoint is refused with
 * StaleGenerationError and touches nothing.
 */

import type { BranchId, EndpointId, ProjectId } from '../../lib/ids.ts';
import type {
  BranchHistory,
  ComputeAddress,
  ComputeLimits,
  ExtensionFacts,
  LogEntry,
  ReplicationSlot,
  ServerCatalog,
} from '../../lib/model.ts';
import type { Moment } from '../../lib/moments.ts';
import type { ChangesAfter, UsersTable } from '../../lib/users-sync.ts';
import type { Inabilities } from './abilities.ts';
import type { CatalogChange, ConfiguredCatalog } from './catalog-change.ts';
import type { ComputeSample, RoomObservation, ServerMeasures, WrittenLog } from './measures.ts';

export type * from './catalog-change.ts';
export { NoSuchMomentError, StaleGenerationError } from './driver-errors.ts';
export type { ComputeSample } from './measures.ts';

/** A project as the driver knows it; `tenantUid` is set when its computes run under a uid of their own. */
export interface TenantRef {
  readonly projectId: ProjectId;
  readonly tenantUid: number | null;
}

export interface BranchRef extends TenantRef {
  readonly branchId: BranchId;
}

export interface ComputeRef extends BranchRef {
  readonly endpointId: EndpointId;
}

export type BranchSource =
  | { readonly kind: 'template' }
  /**
   * The head of another branch, whether its server runs or not; a running one keeps serving. The operation queue makes
   * sure that the source is not started, stopped or removed while the copy is made.
   */
  | { readonly kind: 'branch'; readonly branchId: BranchId }
  /**
   * A moment in the history of a branch, which may be awake, asleep, or the very branch whose data a restore is about
   * to replace. Fails with NoSuchMomentError when the history cannot give that moment.
   */
  | {
      readonly kind: 'history';
      readonly branchId: BranchId;
      readonly moment: Moment;
      /** Password of Catnap's own login, to read from the recovered data what it holds. */
      readonly adminSecret: string;
    };

export interface BranchSpec extends BranchRef {
  readonly pgVersion: number;
  readonly source: BranchSource;
}

export interface EmptySpec extends BranchRef {
  readonly pgVersion: number;
  readonly adminSecret: string;
}

export type DetachSpec = EmptySpec;

/** Files that belong to a database, by its oid; null where the database was not read. */
export type KeptFiles = readonly { readonly database: number; readonly filenodes: readonly number[] | null }[];

export interface BranchReplacement {
  readonly stagingId: BranchId;
  readonly keepAs: BranchId | null;
}

/** How a branch's data was made; shown to people. */
export interface BranchReceipt {
  readonly method: 'reflink' | 'copy';
  readonly lsn: string | null;
  readonly durationMs: number;
  /** Total size of its files. */
  readonly bytes: number;
  /** How much of that shared its blocks with the source when it was made. */
  readonly bytesShared: number;
}

/** What the running server of the source reported while it was copied, or a server on the data of a past moment. */
export interface SourceState {
  readonly catalog: ServerCatalog;
  /** Size of its databases; null when it did not report one. */
  readonly bytes: number | null;
  /** The copy holds exactly this catalog: nothing was written to the server while it was read and copied. */
  readonly isExact: boolean;
}

export interface BranchCopy {
  readonly receipt: BranchReceipt;
  /** Null when no server ran, or the data already existed. */
  readonly source: SourceState | null;
}

/** How much of the past is kept. */
export interface HistoryPolicy {
  /** Moments older than this are given up; 0 keeps no history at all. */
  readonly retentionSeconds: number;
  /** The data is a snapshot's, which nothing changes: one base image of it is all of its history. */
  readonly isSnapshot?: boolean;
}

/**
 * `applied`: in force. `postponed`: more memory is in use than the new size has; the limit is as low as that allows,
 * and asking again later lowers it further. `not_enforced`: this compute runs without limits.
 */
export type ResizeOutcome = 'applied' | 'postponed' | 'not_enforced';

export interface ComputeSpec extends ComputeRef {
  readonly generation: number;
  readonly pgVersion: number;
  /** Server settings, already derived from size and the owner's settings; the driver adds its own, which win. */
  readonly settings: Readonly<Record<string, string>>;
  /** Space for its temporary files, for all sessions together where the driver can; never taken from the data's. */
  readonly tempDiskBytes: number;
  /** The limits from its first moment on; `resize` changes them. */
  readonly limits: ComputeLimits;
  /** Password of Catnap's own login in this project's servers. */
  readonly adminSecret: string;
  /** What SQL in the server may connect to, where the driver can keep it from more: nothing, or the internet. */
  readonly network?: 'none' | 'outside';
  /** A read replica of its branch: a hot standby with its own data, which `buildReplica` makes. */
  readonly readOnly?: boolean;
  /**
   * Serves the branch's own data as it is and refuses every write, whatever a session says. A branch that was served
   * so is only removed afterwards. The branch must have run with the same settings before, and have been shut down.
   */
  readonly frozen?: boolean;
}

/**
 * What a replica has to serve: its old data, from which it can continue; a new copy of its primary; or nothing, because
 * there is no running primary to copy from.
 */
export type ReplicaData = 'kept' | 'built' | 'needs_primary';

export interface ComputeObservation {
  readonly endpointId: EndpointId;
  readonly projectId: ProjectId;
  readonly state: 'absent' | 'starting' | 'running';
  /** Generation of the running process, 0 when there is none. */
  readonly generation: number;
  /** Tells this process from others that served the compute before it. A pid, where the driver sees processes. */
  readonly pid: number | null;
  /** Name of the Postgres build that runs. */
  readonly release: string | null;
  /** Whether the limits of its size are enforced. */
  readonly isEnforced: boolean;
  /** Set while `running`. */
  readonly address: ComputeAddress | null;
  /** The branch that the process serves, which a compute that moves has yet to leave; null when there is none. */
  readonly branchId: BranchId | null;
}

export interface ReplicaObservation {
  /** The primary no longer has the WAL that the replica needs to continue; the next start rebuilds the replica. */
  readonly lost: boolean;
  /** What it has not replayed yet; null while it is not following. */
  readonly lag: { readonly bytes: number; readonly seconds: number } | null;
}

export interface ServerWork {
  readonly kind: 'query' | 'transaction' | 'background_worker' | 'replication';
  /** For people. */
  readonly description: string;
  readonly pid: number;
  readonly role: string | null;
  readonly applicationName: string | null;
  /** Set for replication through a slot. */
  readonly slot: string | null;
  readonly since: Date;
}

export interface WorkObservation {
  /** Null when nothing keeps the server awake. */
  readonly work: ServerWork | null;
  /** When the open and idle sessions last had something to do. */
  readonly lastWorkAt: Date | null;
}

/** What a server held when it was about to be stopped. */
export interface SettledServer {
  /** The branch that it serves. */
  readonly branchId: BranchId;
  readonly catalog: ServerCatalog;
  /** Of all its databases, as Postgres counts them. */
  readonly bytes: number;
  /** What it has written; null when it could not be read. */
  readonly wal: WrittenLog | null;
  /** The driver's mark of that moment; null when it is already known that more will be written. */
  readonly position: string | null;
}

export interface ComputeDriver {
  /** What it refuses, and why; undefined for a driver that does everything. */
  readonly cannot?: Inabilities;
  createBranch(spec: BranchSpec): Promise<BranchCopy>;
  /**
   * Leaves nothing in a branch but its schema, roles and databases: no value of its source remains in any of its files.
   * Nothing may serve the branch yet.
   */
  emptyBranch(spec: EmptySpec): Promise<void>;
  removeBranch(ref: BranchRef): Promise<void>;
  /**
   * Cuts the subscriptions that a copy has inherited from their publishers, which only its source may use: they are
   * disabled and forget their slots. Nothing may serve the branch yet.
   */
  detachBranch(spec: DetachSpec): Promise<void>;
  /**
   * Replaces a branch's data with that of another branch, which no longer exists afterwards. Whatever serves the branch
   * is stopped, and its replicas lose their data: their next start copies the primary again. The old data is removed,
   * or becomes that of the branch `keepAs`.
   */
  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void>;

  /**
   * Brings the history of a branch up to now, awake or asleep: copies what is new of its log, makes a base image when
   * one is due, and gives up what is older than the policy keeps. Returns what the history can give afterwards; null
   * for a branch without data. Never makes a start or a stop wait.
   */
  keepHistory(ref: BranchRef, policy: HistoryPolicy): Promise<BranchHistory | null>;

  /**
   * Call it before each start of a replica: makes sure that it has data. Without a running primary it keeps its old
   * data, and serves that, but never data of another branch than the one it is asked for. `anew` means that the old
   * data does not start any more.
   */
  buildReplica(spec: ComputeSpec, anew?: boolean): Promise<ReplicaData>;
  /** How a replica keeps up, as its running primary sees it; null when the primary is not running. */
  observeReplica(ref: ComputeRef): Promise<ReplicaObservation | null>;
  /**
   * Returns when the server process exists: what `observe` would return if the server already accepts logins, so that
   * callers need not ask again, and null if it does not yet.
   */
  start(spec: ComputeSpec): Promise<ComputeObservation | null>;
  /**
   * Clients wait for this start, and the server needs nothing more before they may use it: their logins may begin the
   * moment it is ready. Call it while the server starts. Only makes a wake faster.
   */
  expectClients(ref: ComputeRef, generation: number): Promise<void>;
  /** `running` means that the server accepts logins. */
  observe(ref: ComputeRef): Promise<ComputeObservation>;
  /**
   * Gives a running server of this generation new settings without a restart, and returns the names of those that need
   * a restart to take effect.
   */
  reload(spec: ComputeSpec): Promise<readonly string[]>;
  /** Changes the limits of a running server of this generation; it keeps its connections, and is not restarted. */
  resize(ref: ComputeRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome>;
  /** What running computes have used; others are left out. Wakes none, and counts as no work of a server's. */
  sample(refs: readonly ComputeRef[]): Promise<ComputeSample[]>;
  /**
   * Writes everything out while the server goes on serving, and returns what it holds, so that its stop has little left
   * to do. Null when none runs, and for a replica.
   */
  settle(ref: ComputeRef): Promise<SettledServer | null>;
  /**
   * Writes everything out, shuts down, and returns when the process is gone: what the server held at its end if that is
   * certain. It is not when something was written after the reading, nor for a replica. A server that was settled just
   * before is not read again.
   */
  suspend(ref: ComputeRef, generation: number, settled?: SettledServer): Promise<ServerCatalog | null>;
  /** Stops the process if one runs, and removes what belongs to the endpoint alone. */
  removeCompute(ref: ComputeRef): Promise<void>;
  /** Removes whatever is left of a project: processes, sockets, directories, cgroups. */
  removeProject(ref: TenantRef): Promise<void>;

  /** What a running server holds. Fails when none runs, and for a replica, which holds what its primary does. */
  readCatalog(ref: ComputeRef): Promise<ServerCatalog>;
  /**
   * Applies the change on a running server, and returns what it holds afterwards; fails as `readCatalog` does. Tenants'
   * transactions that are in its way are ended.
   */
  configure(ref: ComputeRef, change: CatalogChange): Promise<ConfiguredCatalog>;

  /**
   * Brings the table of users of a running server up to the end of the changes, creating it where it is missing, and
   * returns the position reached; null when the server is not running. The position is in the database itself.
   */
  syncUsers(ref: ComputeRef, table: UsersTable, changesAfter: ChangesAfter): Promise<number | null>;
  /** Drops the schema of users; false when the server is not running. */
  dropUsers(ref: ComputeRef, database: string): Promise<boolean>;

  /**
   * What a running server is busy with: a query, an open transaction, background work, a client's own replication.
   * Open idle sessions, and Catnap's own, do not count.
   */
  observeWork(ref: ComputeRef): Promise<WorkObservation>;

  /** The logical replication slots of a running primary, without temporary ones; null when none runs. */
  observeSlots(ref: ComputeRef): Promise<readonly ReplicationSlot[] | null>;

  /** What a running server counts about itself; null when none runs. */
  measure(ref: ComputeRef): Promise<ServerMeasures | null>;

  /** Bytes of all databases of a running server, as Postgres counts them; null when none runs. */
  observeSize(ref: ComputeRef): Promise<number | null>;

  /**
   * Ends the sessions of a running server that are in the middle of writing anything but a deletion, and returns how
   * many there were. Catnap's own do not count.
   */
  endWriters(ref: ComputeRef): Promise<number>;

  /** The last entries of a compute's log, the newest at the end, whether it runs or not. */
  readLog(ref: Pick<ComputeRef, 'projectId' | 'endpointId'>, limit: number): Promise<readonly LogEntry[]>;

  /** How much room there is for the data of all tenants; null where each branch has room of its own. */
  observeRoom(): Promise<RoomObservation | null>;

  /**
   * Asks Postgres itself whether a server could start with these settings: null, or its error message. Touches no
   * compute.
   */
  checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null>;

  /** Which extensions owners can create in servers of this major, and which not and why. Touches no compute. */
  listExtensions(pgVersion: number): Promise<ExtensionFacts>;

  /** Every compute that has a process, for the reconcilers. */
  list(): Promise<ComputeObservation[]>;
}

/** What an API asks of a driver itself. None of it touches a compute, or whatever runs computes. */
export type DriverAdvice = Pick<ComputeDriver, 'cannot' | 'checkSettings' | 'listExtensions' | 'readLog'>;
