/**
 * What the parent process does for a driver, with the privileges that it was started with. The other half of the
 * driver, `ComputeDriver`, works in child processes that have dropped theirs, and calls this half over their channel.
 */
import type { EndpointId } from '../../lib/ids.ts';
import type { ComputeAddress } from '../../lib/model.ts';
import type { BranchReceipt } from './driver.ts';

/** `disk`: limits all sessions together, SQLSTATE 53100. `session`: limits each session by itself, 53400. */
export type TemporaryDiskEnforcement = 'disk' | 'session';

export type CloneMethod = BranchReceipt['method'];

/** Null when sizes are enforced, otherwise the reason why they are not. */
export type LimitsProblem = string | null;

/** What the machine allows, found out by trying; the API reports it. */
export interface HostFacts {
  /** The data of branches is on this machine, so workers of other machines have nothing to work on. */
  readonly dataIsHere: boolean;
  /** The build that a server would now start from, by major. */
  readonly releases: Readonly<Record<number, string>>;
  readonly temporaryDiskEnforcement: TemporaryDiskEnforcement;
  /** How branches are copied where the data is; null where that could not be tried. */
  readonly storageMethod: CloneMethod | null;
  readonly limitsProblem: LimitsProblem;
  /** Why SQL in servers reaches what the machine reaches; null where servers have networks of their own. */
  readonly networkProblem: string | null;
  /** Why a project cannot be given outbound connections; null where it can. */
  readonly outsideProblem: string | null;
  /** Where histories are kept as files that the child processes can read; null where there are none. */
  readonly historyDirectory: string | null;
}

/** A server that has just come to accept connections. */
export interface ReadyServer {
  readonly endpointId: EndpointId;
  readonly generation: number;
  readonly address: ComputeAddress;
}

/** Node's own channel: a child process seen from its parent, or `process` seen from the child. */
export interface DriverChannel {
  readonly connected?: boolean;
  send?(message: object, callback?: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
}

/** The calls that a child process may make: all, only those that check or read something and touch no compute, none. */
export type DriverAccess = 'all' | 'checks' | 'none';

export interface DriverHost {
  /**
   * Prepares what every start needs, reporting progress in plain words. Returns as soon as the first project can be
   * created; less common versions follow in the background. Call it before any child is served.
   */
  prepare(progress: (line: string) => void): Promise<void>;
  readFacts(): Promise<HostFacts>;
  /** Answers the calls of one child until it ends. */
  serve(child: DriverChannel, access: DriverAccess): void;
  /** Calls back with each server for which a worker expects clients, the moment it is ready. Returns how to end it. */
  follow(onReady: (server: ReadyServer) => void): () => void;
  /** Call it when Catnap ends. Computes keep running. */
  close(): Promise<void>;
}
