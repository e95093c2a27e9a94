/**
 * What the driver asks of the host: the calls, what they take and what they return. Both ends of the channel are made
 * from it.
 */
import type { BranchId, EndpointId, ProjectId } from '../../../lib/ids.ts';
import type { ComputeLimits } from '../../../lib/model.ts';
import type {
  BranchReceipt,
  BranchRef,
  BranchReplacement,
  BranchSpec,
  ComputeRef,
  ComputeSample,
  ComputeSpec,
  KeptFiles,
  ResizeOutcome,
  TenantRef,
} from '../../interface/driver.ts';

export interface HostedProcess {
  readonly pid: number;
  readonly generation: number;
  readonly ready: boolean;
  /** Name of the build that it runs. */
  readonly release: string | null;
  /** It was started in a control group of its own. */
  readonly isEnforced: boolean;
}

/** What the driver needs to know of an endpoint, running or not. */
export interface HostedCompute {
  readonly endpointId: EndpointId;
  readonly projectId: ProjectId;
  readonly branchId: BranchId;
  /** The newest generation that the host has seen. */
  readonly seenGeneration: number;
  readonly process: HostedProcess | null;
  readonly socketPath: string;
  readonly adminSecret: string;
  /** Set until the branch's server has taken the project's secret in place of the template's. */
  readonly firstSecret: string | null;
  /** A read replica. */
  readonly readOnly: boolean;
}

/** The host knows by itself which branch an endpoint is on. */
export type EndpointRef = Omit<ComputeRef, 'branchId'>;

export interface LiveClone extends BranchRef {
  readonly pgVersion: number;
  /** The branch whose server runs. */
  readonly sourceId: BranchId;
  /** For a read replica of the branch, whose data is its endpoint's own; null for a new branch. */
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

export interface PrivateServer extends BranchRef {
  readonly pgVersion: number;
}

export interface HostCalls {
  /** Of the template, or of a branch that is asleep. */
  createBranch(spec: BranchSpec): Promise<BranchReceipt>;
  /** The server that runs on the source's data; null when none does, or when the branch is there already. */
  findSourceServer(spec: BranchSpec): Promise<HostedCompute | null>;
  /** Copies a running server's directory, whose backup the caller has begun; returns a name for the copy. */
  beginLiveClone(clone: LiveClone): Promise<string>;
  /** Makes the copy a branch, once the caller has ended the backup. */
  finishLiveClone(token: string, end: BackupEnd): Promise<BranchReceipt>;
  abandonLiveClone(token: string): Promise<void>;
  /** A server that only Catnap's login can reach: the path of its socket, or null for a branch that is still empty. */
  openPrivateServer(ref: PrivateServer): Promise<string | null>;
  /** Stops it, and removes files that may hold old contents; with a list, also the files that are not in it. */
  closePrivateServer(ref: BranchRef, kept: KeptFiles | null): Promise<void>;
  removeBranch(ref: BranchRef): Promise<void>;
  replaceBranch(ref: BranchRef, by: BranchReplacement): Promise<void>;
  /** The server that runs on the branch's data: its primary. */
  findServer(ref: BranchRef): Promise<HostedCompute | null>;
  /** Whether a replica has data of its own. */
  hasReplica(spec: ComputeSpec): Promise<boolean>;
  /** Makes way for a new copy, and remembers the replica: its removal then finds the slot that is made next. */
  claimReplica(spec: ComputeSpec): Promise<void>;
  /** Takes a replica's slot from a primary that sleeps. */
  removeSlot(ref: ComputeRef, slot: string): Promise<void>;
  /** What `inspect` returns, if the server says already that it takes connections; otherwise null. */
  start(spec: ComputeSpec): Promise<HostedCompute | null>;
  /** Null for an endpoint that was never started here. */
  inspect(ref: EndpointRef): Promise<HostedCompute | null>;
  /** Writes the configuration anew and has the server of that generation read it. */
  reload(spec: ComputeSpec): Promise<void>;
  /** Without a lock: a stop that is under way must not keep the other computes' sizes waiting. */
  resize(ref: EndpointRef, generation: number, limits: ComputeLimits): Promise<ResizeOutcome>;
  sample(refs: readonly EndpointRef[]): Promise<ComputeSample[]>;
  /** Null, or what Postgres says is wrong. */
  checkSettings(pgVersion: number, settings: Readonly<Record<string, string>>): Promise<string | null>;
  /** The server has the project's secret now: forget the template's. */
  forgetFirstSecret(ref: EndpointRef): Promise<void>;
  /** Returns where in its WAL the server recorded its shutdown; null when it did not run, or did not end cleanly. */
  stop(ref: EndpointRef, generation: number): Promise<string | null>;
  removeCompute(ref: EndpointRef): Promise<void>;
  removeProject(ref: TenantRef): Promise<void>;
  /** Every endpoint that has a process. */
  list(): Promise<HostedCompute[]>;
}

/**
 * The names of all calls, the only time that they are written as values: the stub is made from this list, and the
 * server answers nothing that is not in it. A name that is missing here does not compile in `remoteHost`.
 */
export const hostMethods = [
  'createBranch',
  'findSourceServer',
  'beginLiveClone',
  'finishLiveClone',
  'abandonLiveClone',
  'openPrivateServer',
  'closePrivateServer',
  'removeBranch',
  'replaceBranch',
  'findServer',
  'hasReplica',
  'claimReplica',
  'removeSlot',
  'start',
  'inspect',
  'reload',
  'resize',
  'sample',
  'checkSettings',
  'forgetFirstSecret',
  'stop',
  'removeCompute',
  'removeProject',
  'list',
] as const satisfies readonly (keyof HostCalls)[];

export type HostMethod = (typeof hostMethods)[number];
