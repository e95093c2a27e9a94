/**
 * The calls that the driver makes to the host: their arguments and results. Both ends of the channel are built from
 * this list.
 */
import type { BranchId, EndpointId, ProjectId } from '../../../lib/ids.ts';
import type { BranchHistory, ComputeLimits, ExtensionFacts } from '../../../lib/model.ts';
import type { Moment } from '../../../lib/moments.ts';
import type {
  BranchReceipt,
  BranchRef,
  BranchReplacement,
  BranchSpec,
  ComputeRef,
  ComputeSample,
  ComputeSpec,
  HistoryPolicy,
  KeptFiles,
  ResizeOutcome,
  TenantRef,
} from '../../interface/driver.ts';
import type { RoomObservation } from '../../interface/measures.ts';

export interface HostedProcess {
  readonly pid: number;
  readonly generation: number;
  readonly ready: boolean;
  /** Name of the build that it runs. */
  readonly release: string | null;
  /** It was started in a control group of its own. */
  readonly isEnforced: boolean;
}

/** What the driver needs to know about an endpoint, running or not. */
export interface HostedCompute {
  readonly endpointId: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  /** The newest generation that the host has seen. */
  readonly seenGeneration: number;
  readonly process: HostedProcess | null;
  readonly socketPath: string;
  readonly adminSecret: string;
  /** Set until the branch's server has the project's secret instead of the template's. */
  readonly firstSecret: string | null;
  /** A read replica. */
  readonly readOnly: boolean;
}

/** The host itself knows which branch an endpoint is on. */
export type EndpointRef = Omit<ComputeRef, 'branchId'>;

export type LogRef = Pick<ComputeRef, 'projectId' | 'endpointId'>;

export interface LiveClone extends BranchRef {
  readonly pgVersion: number;
  /** The branch whose server runs. */
  readonly sourceId: BranchId;
  /** For a read replica of the branch, whose data belongs to its endpoint; null for a new branch. */
  readonly replica: { readonly endpointId: EndpointId; readonly generation: number } | null;
}

export interface BackupEnd {
  /** Text for `backup_label`, byte for byte. */
  readonly label: string;
  /** Names of the first and the last WAL segment that the copy needs. */
  readonly firstSegment: string;
  readonly lastSegment: string;
  readonly lsn: string;
}

/** A position that the log of a running server has reached on disk, and a time just before it was read. */
export interface LogEnd {
  readonly timeline: number;
  readonly lsn: string;
  readonly at: string;
}

/** The state of a history, and what only the server can help with: a flushed position, an open backup. */
export interface HistoryTurn {
  readonly history: BranchHistory;
  readonly wantsLog: boolean;
  readonly wantsBase: boolean;
  /** No history is kept, but the server may still keep log for one. */
  readonly keepsLog: boolean;
}

export interface RecoverySpec extends BranchRef {
  readonly pgVersion: number;
  /** The branch whose past it is. */
  readonly sourceId: BranchId;
  readonly moment: Moment;
}

/** A server that recovers the data of a new branch, reachable for Catnap's login only. */
export interface Recovery {
  readonly token: string;
  readonly socketPath: string;
  /** The template's secret, where the data may still have it. */
  readonly firstSecret: string | null;
}

export interface PrivateServer extends BranchRef {
  readonly pgVersion: number;
  /** Data that is emptied has no past before itself. */
  readonly purpose: 'empty' | 'detach';
}

export interface HostCalls {
  /** Copies the template, or a branch that is asleep. */
  createBranch(spec: BranchSpec): Promise<BranchReceipt>;
  /** The server that runs on the source's data; null when none does, or when the branch already exists. */
  findSourceServer(spec: BranchSpec): Promise<HostedCompute | null>;
  /** Copies a running server's directory while the caller holds a backup open; returns a token for the copy. */
  beginLiveClone(clone: LiveClone): Promise<string>;
  /** Turns the copy into a branch, after the caller has ended the backup. */
  finishLiveClone(token: string, end: BackupEnd): Promise<BranchReceipt>;
  abandonLiveClone(token: string): Promise<void>;
  /** Starts a server for Catnap's login only; returns its socket path, or null for a branch that is still empty. */
  openPrivateServer(ref: PrivateServer): Promise<string | null>;
  /** Stops it, and empties what may hold old contents; with a list, also removes the files that are not in it. */
  closePrivateServer(ref: PrivateServer, kept: KeptFiles | null): Promise<void>;
  /** The branch whose log has to be copied before this one's history can begin; null for none. */
  historyWaitsFor(ref: BranchRef): Promise<BranchId | null>;
  /** Does for a history what needs no server; null for a branch without data. */
  turnHistory(ref: BranchRef, policy: HistoryPolicy): Promise<HistoryTurn | null>;
  /** Copies a piece of the log and returns the position up to which it is copied; null if there is nothing to copy. */
  copyLog(ref: BranchRef, end: LogEnd): Promise<string | null>;
  /** Copies a running server's directory as a base image, while the caller holds a backup open. */
  beginBase(ref: BranchRef): Promise<string>;
  finishBase(ref: BranchRef, token: string, end: BackupEnd & LogEnd): Promise<void>;
  abandonBase(ref: BranchRef, token: string): Promise<void>;
  /** Begins to recover a new branch; null when the branch already exists. */
  beginRecovery(spec: RecoverySpec): Promise<Recovery | null>;
  /** The last words of a server that has ended; null while it runs. */
  whyRecoveryEnded(token: string): Promise<string | null>;
  /** Starts it again, to replay all of the log that there is. */
  recoverToEnd(token: string): Promise<void>;
  /** Stops the server and turns its data into the branch. */
  finishRecovery(token: string, reached: { lsn: string | null; hasFirstSecret: boolean }): Promise<BranchReceipt>;
  abandonRecovery(token: string): Promise<void>;
  removeBranch(ref: BranchRef): Promise<void>;
  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void>;
  /** The server that runs on the branch's data: its primary. */
  findServer(ref: BranchRef): Promise<HostedCompute | null>;
  /** Whether a replica has data of its own. */
  hasReplica(spec: ComputeSpec): Promise<boolean>;
  /** Makes room for a new copy, and records the replica, so that removing it finds the slot created next. */
  claimReplica(spec: ComputeSpec): Promise<void>;
  /** Drops a replica's slot from a primary that is asleep. */
  removeSlot(ref: ComputeRef, slot: string): Promise<void>;
  /** Returns what `inspect` does if the server already reports that it accepts connections; otherwise null. */
  start(spec: ComputeSpec): Promise<HostedCompute | null>;
  /** The server of that generation is announced as soon as it is ready. */
  expectClients(ref: EndpointRef, generation: number): Promise<void>;
  /** Null for an endpoint that never started here. */
  inspect(ref: EndpointRef): Promise<HostedCompute | null>;
  /** Rewrites the configuration and makes the server of that generation reload it. */
  reload(spec: ComputeSpec): Promise<void>;
  /** Takes no lock: a stop in progress must not delay the resizing of other computes. */
  resize(ref: EndpointRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome>;
  sample(refs: readonly EndpointRef[]): Promise<ComputeSample[]>;
  observeRoom(): Promise<RoomObservation>;
  /** The end of its log, in whole lines. */
  readLog(ref: LogRef): Promise<string>;
  /** Null, or Postgres's error message. */
  checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null>;
  listExtensions(pgVersion: number): Promise<ExtensionFacts>;
  /** Call it when the server has the project's secret: the template's is forgotten. */
  forgetFirstSecret(ref: EndpointRef): Promise<void>;
  /** Returns the WAL position of the server's shutdown record; null when it did not run, or did not end cleanly. */
  stop(ref: EndpointRef, generation: number): Promise<string | null>;
  removeCompute(ref: EndpointRef): Promise<void>;
  removeProject(ref: TenantRef): Promise<void>;
  /** Every endpoint that has a process. */
  list(): Promise<HostedCompute[]>;
}

/**
 * The names of all calls, the only list of them as values: the stub is built from it, and the server answers nothing
 * that is not in it. A name that is missing here does not compile in `remoteHost`.
 */
export const hostMethods = [
  'createBranch',
  'findSourceServer',
  'beginLiveClone',
  'finishLiveClone',
  'abandonLiveClone',
  'openPrivateServer',
  'closePrivateServer',
  'historyWaitsFor',
  'turnHistory',
  'copyLog',
  'beginBase',
  'finishBase',
  'abandonBase',
  'beginRecovery',
  'whyRecoveryEnded',
  'recoverToEnd',
  'finishRecovery',
  'abandonRecovery',
  'removeBranch',
  'replaceBranch',
  'findServer',
  'hasReplica',
  'claimReplica',
  'removeSlot',
  'start',
  'expectClients',
  'inspect',
  'reload',
  'resize',
  'sample',
  'observeRoom',
  'readLog',
  'checkSettings',
  'listExtensions',
  'forgetFirstSecret',
  'stop',
  'removeCompute',
  'removeProject',
  'list',
] as const satisfies readonly (keyof HostCalls)[];

export type HostMethod = (typeof hostMethods)[number];
