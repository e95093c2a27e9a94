/** Types that several rooms share, so that none of them keeps a copy or imports another room for a type. */
import type { LogPosition } from './moments.ts';

/** Where a server takes connections. */
export type ComputeAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** The smallest and the largest size that a compute may have, in CU. */
export interface SizeRange {
  readonly minCu: number;
  readonly maxCu: number;
}

/** A size as the driver enforces it, where it can. */
export interface ComputeLimits {
  /** Cores, possibly a fraction. The start itself is not held to it. */
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly processes: number;
  /** It can still be made larger: when out of memory, it waits for growth instead of losing a process. */
  readonly mayGrow: boolean;
  /** Settings that follow the size while the server runs; the driver's own settings override them. */
  readonly settings: Readonly<Record<string, string>>;
}

/** When a compute that never sleeps takes an update; times are HH:MM in UTC, 1 is Monday and 7 is Sunday. */
export interface MaintenanceWindow {
  readonly weekdays: readonly number[];
  readonly start_time: string;
  readonly end_time: string;
}

/** A logical replication slot, as its server reports it. */
export interface ReplicationSlot {
  readonly name: string;
  readonly plugin: string;
  readonly database: string;
  /** A client streams from it. */
  readonly active: boolean;
  /** `reserved`, `extended`, `unreserved`; `lost` when the WAL that it needs is gone, or it was invalidated. */
  readonly walStatus: string;
  /** How much WAL is kept for it; null for a lost one. */
  readonly retainedBytes: number | null;
}

/** A session of a server, or a process that works for one, as the server itself reports it. */
export interface ServerSession {
  /** Tells it from an earlier session with the same pid. */
  readonly id: string;
  readonly pid: number;
  readonly role: string | null;
  readonly database: string | null;
  readonly applicationName: string | null;
  /** Such as `client backend`. */
  readonly kind: string;
  readonly state: string | null;
  readonly waitType: string | null;
  readonly waitEvent: string | null;
  readonly startedAt: Date;
  readonly transactionAt: Date | null;
  readonly queryAt: Date | null;
  readonly stateAt: Date | null;
  /** The statement that runs, or ran last. */
  readonly query: string | null;
  /** Of a parallel worker: the session that it works for. */
  readonly leaderPid: number | null;
  /** Who holds the lock that it waits for, or is before it in the queue; 0 for a prepared transaction. */
  readonly blockedBy: readonly number[];
  readonly lockType: string | null;
  readonly lockMode: string | null;
  readonly waitingAt: Date | null;
}

/** What of a branch's past can be given, and what it costs to keep. */
export interface BranchHistory {
  /** The first and the last moment that can be given; null while there is no base image. */
  readonly from: LogPosition | null;
  readonly until: LogPosition | null;
  /** Spans between the two that are lost: the log was written faster than it could be copied, or was damaged. */
  readonly gaps: readonly { readonly from: LogPosition; readonly until: LogPosition }[];
  readonly baseCount: number;
  /** What base images take beyond the blocks that they share with the branch, as far as the filesystem tells. */
  readonly baseBytes: number;
  readonly logBytes: number;
}

/** What a server holds, without Catnap's own roles and databases. */
export interface ServerCatalog {
  readonly roles: readonly { readonly name: string; readonly verifier: string | null }[];
  readonly databases: readonly { readonly name: string; readonly ownerName: string }[];
}

/** Bytes that one proxy has sent to clients since its last report. */
export interface TransferReport {
  /** Names the proxy process; a new process has a new name. */
  readonly reporter: string;
  /** Rises with each report. A report that failed is sent again under its old number. */
  readonly sequence: number;
  /** By endpoint. */
  readonly bytes: ReadonlyMap<string, number>;
}

/** One entry of a server's log. */
export interface LogEntry {
  /** ISO text; null where the line has no time. */
  readonly at: string | null;
  readonly pid: number | null;
  /**
   * `server`: a process that runs nothing of tenants. `session`: any other one, whose text a tenant may have chosen.
   * `catnap`: Catnap itself. `unknown`: a line that did not come through the server's log.
   */
  readonly source: 'server' | 'session' | 'catnap' | 'unknown';
  /** Kind of the process, as Postgres calls it. */
  readonly process: string | null;
  readonly level: string | null;
  readonly message: string;
}

/** An extension that a server has, or could have. */
export interface ExtensionFact {
  readonly name: string;
  readonly version: string | null;
  readonly comment: string;
  /** Where it comes from: Catnap's own copy of Postgres, or a folder of the machine. */
  readonly origin: string;
  /** An owner can create it. */
  readonly isOffered: boolean;
  /** Why it is not offered, in one sentence for people; null where it is. */
  readonly reason: string | null;
}

export interface ExtensionFacts {
  readonly extensions: readonly ExtensionFact[];
  /** Why there may be others; null where the list is complete. */
  readonly note: string | null;
}
