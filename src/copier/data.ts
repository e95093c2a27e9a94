/** The rows: table by table, as the text that COPY writes and reads, each table in a transaction of the target. */
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CopyFailure, wordsOf } from './failure.ts';
import type { Report } from './progress.ts';
import { markCopied, readTables, type TableRecord } from './record.ts';
import { type Place, reserve, type Sql } from './session.ts';
import type { Snapshot } from './snapshot.ts';

/** The source sends a message for each row; so many bytes of them go to the target at a time. */
const portionBytes = 64 * 1024;
/** How often progress is reported within a table. */
const reportBytes = 1024 * 1024;

export async function copyTables(snapshot: Snapshot, target: Sql, place: Place, report: Report): Promise<void> {
  const tables = await readTables(target);
  const bytesOf = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = tables.filter(({ isCopied }) => isCopied).length;
  let before = tables.reduce((sum, { copied }) => sum + copied, 0);
  const session = await reserve(target, place);
  try {
    for (const table of tables.filter(({ isCopied }) => !isCopied)) {
      const tell = (bytes: number) =>
        report({ phase: 'rows', name: table.name, done, of: tables.length, bytes: before + bytes, bytesOf });
      tell(0);
      before += await copyTable(snapshot, session, table, tell).catch((error) => {
        throw new CopyFailure(`${table.name} could not be copied: ${wordsOf(error)}`);
      });
      done += 1;
    }
  } finally {
    session.release();
  }
}

type Reserved = Awaited<ReturnType<typeof reserve>>;

async function copyTable(
  snapshot: Snapshot,
  target: Reserved,
  { id, name, columns }: TableRecord,
  tell: (bytes: number) => void,
): Promise<number> {
  const list = columns.length === 0 ? '' : `(${columns.join(', ')})`;
  const meter = new Meter(tell);
  await target.unsafe('BEGIN');
  try {
    const taking = target.unsafe(`COPY ${name} ${list} FROM STDIN`);
    const refusal = refusalOf(taking);
    const to = await taking.writable();
    const from = await snapshot.session.unsafe(`COPY ${name} ${list} TO STDOUT`).readable();
    await Promise.race([pipeline(from, meter, to), refusal]).finally(() => letGo(from));
    await markCopied(target, id, { rows: meter.rows, bytes: meter.bytes, at: snapshot.lsn });
    await target.unsafe('COMMIT');
  } catch (error) {
    await target.unsafe('ROLLBACK').catch(() => undefined);
    throw error;
  }
  return meter.bytes;
}

/**
 * Rejects when the server refuses the rows. The library tells its stream of that, but not any more when the last of
 * them is sent: the stream would then wait for ever for the answer that has come.
 */
function refusalOf(query: object): Promise<never> {
  const failing = query as { reject: (error: unknown) => void };
  const tellQuery = failing.reject;
  const refusal = new Promise<never>((_, reject) => {
    failing.reject = (error) => {
      tellQuery(error);
      reject(error);
    };
  });
  // Before the rows begin, the query itself fails, and nobody waits for this.
  refusal.catch(() => undefined);
  return refusal;
}

/**
 * The library pauses its socket when rows fill the stream, and only a read ends that. Once nobody reads any more, at
 * the end or after a failure, the session would never hear another answer: what is still to come is thrown away.
 */
function letGo(rows: Readable): void {
  rows.push = () => true;
  rows._read(0);
}

/** Counts, and joins the many small messages. */
class Meter extends Transform {
  rows = 0;
  bytes = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #told = 0;
  readonly #tell: (bytes: number) => void;

  constructor(tell: (bytes: number) => void) {
    super();
    this.#tell = tell;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    // A line break within a value is written as \n, so each of these ends a row.
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) this.rows += 1;
    this.bytes += chunk.length;
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= portionBytes) this.#pass();
    if (this.bytes - this.#told >= reportBytes) {
      this.#told = this.bytes;
      this.#tell(this.bytes);
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#waitingBytes > 0) this.#pass();
    done();
  }

  #pass(): void {
    this.push(Buffer.concat(this.#waiting));
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
