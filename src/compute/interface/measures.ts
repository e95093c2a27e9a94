/** What a server counts about itself. */

/** Sums are since the server's start, or since somebody reset them. */
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
  /** Bytes that were written to it, until a crash, after which they begin anew. */
  readonly bytes: number;
  /** Where it ends. It goes on from one start to the next, and skips what is left of a segment now and then. */
  readonly position: number;
}
