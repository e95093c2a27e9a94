/** What a server counts about itself, and what room the machine has. */

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
