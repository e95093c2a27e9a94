/** What a server counts about itself, what a compute has used, and what room the machine has. */

import type { EndpointId } from '../../lib/ids.ts';

/** Totals are since the server's start, or since they were last reset. */
export interface ServerMeasures {
  readonly connectionsActive: number;
  readonly connectionsIdle: number;
  readonly connectionsMax: number;
  readonly transactions: number;
  /** Blocks that were found in shared buffers, and those that were not. */
  readonly blocksHit: number;
  readonly blocksRead: number;
  /** Null for a replica, which writes none. */
  readonly wal: WrittenLog | null;
}

export interface WrittenLog {
  /** Bytes written to it; restarts from 0 after a crash. */
  readonly bytes: number;
  /** Where it ends. It continues from one start to the next, and sometimes skips the rest of a segment. */
  readonly position: number;
}

/**
 * `low`: what is left is for the servers to go on with, and tenants' writes are to be turned off. `critical`: half of
 * that is gone, too.
 */
export interface RoomObservation {
  readonly level: 'enough' | 'low' | 'critical';
  readonly freeBytes: number;
  /** Below this it is `low`. */
  readonly lowBytes: number;
}

/** What a running compute has used; totals are since its start, and restart with the next one. */
export interface ComputeSample {
  readonly endpointId: EndpointId;
  readonly isEnforced: boolean;
  readonly cpuSeconds: number;
  /** Scheduling periods in which it had work, and those of them in which it used up its quota. */
  readonly periods: number;
  readonly throttledPeriods: number;
  /** Memory that cannot be reclaimed by dropping cache. */
  readonly usedBytes: number;
  readonly cacheBytes: number;
  /** Cache that was used more than once. */
  readonly workingSetBytes: number;
  /** Read again after it had been dropped from the cache. */
  readonly refaultBytes: number;
  /** Processes that the kernel killed because memory ran out. */
  readonly oomKills: number;
  /** It is stalled at its memory limit until it gets more memory. */
  readonly isPaused: boolean;
  /** The limits in force; null where there is none. */
  readonly cpus: number | null;
  readonly memoryLimitBytes: number | null;
  /** Whether it would wait at that limit, instead of losing a process. */
  readonly waitsAtLimit: boolean;
}
