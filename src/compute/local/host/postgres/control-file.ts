/** Reads the facts in `global/pg_control` that a copy needs: whether the server was shut down cleanly, and where. */
import { lstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lsnText } from '../../../../lib/moments.ts';

export interface ControlFacts {
  readonly shutDown: boolean;
  /** The same, and it was no standby. */
  readonly shutDownAsPrimary: boolean;
  /** Position of the last checkpoint, as Postgres prints it. */
  readonly checkpointLsn: string;
  /** Where in the WAL recovery from that checkpoint begins, and where the checkpoint's record is, in bytes. */
  readonly redo: bigint;
  readonly checkpoint: bigint;
  readonly timeline: number;
  /** When the file was last written, in whole seconds. */
  readonly writtenAt: Date;
}

/**
 * The start of ControlFileData has been the same since Postgres 11: system identifier (8 bytes), two versions (4 + 4),
 * state (4, then 4 of padding), time (8), checkpoint (8), redo (8), timeline (4). In the machine's byte order, which is
 * little-endian wherever the binaries run.
 */
export async function readControlFile(dataDirectory: string): Promise<ControlFacts> {
  const bytes = await readFile(join(dataDirectory, 'global', 'pg_control'));
  const state = bytes.readUInt32LE(16);
  const checkpoint = bytes.readBigUInt64LE(32);
  return {
    shutDown: state === 1 || state === 2, // DB_SHUTDOWNED, DB_SHUTDOWNED_IN_RECOVERY
    shutDownAsPrimary: state === 1,
    checkpoint,
    redo: bytes.readBigUInt64LE(40),
    timeline: bytes.readUInt32LE(48),
    writtenAt: new Date(Number(bytes.readBigInt64LE(24)) * 1_000),
    checkpointLsn: lsnText(checkpoint),
  };
}

const beforeRecovery = ['backup_label', 'recovery.signal', 'standby.signal'];

/** The next start recovers, whatever the control file says. */
export function isBeforeRecovery(dataDirectory: string): boolean {
  return beforeRecovery.some((name) => lstatSync(join(dataDirectory, name), { throwIfNoEntry: false }) !== undefined);
}
