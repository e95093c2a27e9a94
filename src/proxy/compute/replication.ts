/**
 * Replication connections. Logical replication is for every role that Postgres lets replicate; physical replication
 * would copy the whole server, with what belongs to Catnap, and is nobody's. `pg_hba.conf` refuses physical connections
 * too, but on a logical one Postgres takes the commands of both kinds, so the client's commands are read here.
 */
import { CatnapError } from '../../lib/errors.ts';
import type { ErrorReport } from '../protocol/messages.ts';

const noPhysical = 'physical replication is not offered: use logical replication, with replication=database';
/** What Postgres reads as false; the client then has an ordinary session. */
const falseValue = /^(?:f|fa|fal|fals|false|n|no|of|off|0)$/i;

/** Whether the client asked for logical replication; throws if it asked for the other kind. */
export function asksForReplication(parameters: ReadonlyMap<string, string>): boolean {
  const value = parameters.get('replication');
  if (value === undefined || falseValue.test(value)) return false;
  if (value !== 'database') throw new CatnapError('not_supported', noPhysical);
  return true;
}

/** A publication list may be long; nothing else in a replication command is. */
const queryBytesMax = 1024 * 1024;
const headerBytes = 5;
const query = 'Q'.charCodeAt(0);
const nothing = Buffer.alloc(0);

const space = '[ \\t\\n\\r\\f\\v]';
const slot = `(?:[A-Za-z_\\x80-\\xff][A-Za-z0-9_$\\x80-\\xff]*|"[^"]+")`;
const command = new RegExp(`^${space}*([A-Za-z_]+)`);
/** Commands that read or copy the server's files, or belong to physical slots. */
const refused: ReadonlySet<string> = new Set([
  'BASE_BACKUP',
  'UPLOAD_MANIFEST',
  'TIMELINE_HISTORY',
  'READ_REPLICATION_SLOT',
]);
/** Commands of both kinds, and how the logical kind begins. */
const logicalForms: ReadonlyMap<string, RegExp> = new Map([
  ['START_REPLICATION', new RegExp(`^${space}*START_REPLICATION${space}+SLOT${space}+${slot}${space}+LOGICAL${space}`)],
  [
    'CREATE_REPLICATION_SLOT',
    new RegExp(
      `^${space}*CREATE_REPLICATION_SLOT${space}+${slot}${space}+(?:TEMPORARY${space}+)?LOGICAL${space}+${slot}`,
    ),
  ],
]);

/** Everything that is no replication command is SQL, and Postgres checks the rights of its role. */
export function isAllowed(text: string): boolean {
  const word = command.exec(text)?.[1]?.toUpperCase() ?? '';
  return !refused.has(word) && (logicalForms.get(word)?.test(text) ?? true);
}

/**
 * Reads what a client sends on a replication connection, in chunks of any size, and passes on what is allowed. Commands
 * come only as simple queries there: Postgres refuses the extended protocol. A stream's own messages pass unread.
 */
export class ReplicationGuard {
  readonly #onRefused: (report: ErrorReport) => void;
  /** The beginning of a message that is read whole. */
  #held: Buffer = nothing;
  /** How much of the current message is still to pass unread. */
  #passing = 0;
  #isOver = false;

  constructor(onRefused: (report: ErrorReport) => void) {
    this.#onRefused = onRefused;
  }

  /** The bytes that may go on to the compute; none after a refusal. */
  admit(chunk: Buffer): Buffer {
    if (this.#isOver) return nothing;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const end = this.#read(bytes);
    // A copy, since the chunk is reused.
    this.#held = this.#isOver ? nothing : Buffer.from(bytes.subarray(end));
    return bytes.subarray(0, end);
  }

  /** Returns the end of what may go on. */
  #read(bytes: Buffer): number {
    for (let at = 0; ; ) {
      const passed = Math.min(this.#passing, bytes.length - at);
      at += passed;
      this.#passing -= passed;
      if (bytes.length - at < headerBytes) return at;
      const size = 1 + bytes.readUInt32BE(at + 1);
      if (size < headerBytes) return this.#refuse(at, '08P01', 'invalid message length');
      if (bytes[at] !== query) {
        this.#passing = size;
        continue;
      }
      if (size > queryBytesMax) return this.#refuse(at, '54000', 'the command is longer than 1 MB');
      if (bytes.length - at < size) return at;
      const [text = ''] = bytes.toString('latin1', at + headerBytes, at + size).split('\0', 1);
      if (!isAllowed(text)) return this.#refuse(at, '0A000', noPhysical);
      at += size;
    }
  }

  #refuse(at: number, sqlState: string, message: string): number {
    this.#isOver = true;
    this.#onRefused({ sqlState, message });
    return at;
  }
}
