/** SQL over HTTP, the way that drivers use it: `POST /sql` with a connection string in a header. */
import { OfflineError } from './client.ts';
import { readRowLines } from './row-lines.ts';

export interface SqlField {
  readonly name: string;
  readonly dataTypeID: number;
  /** Its length or precision as Postgres stores them; -1 without any. */
  readonly dataTypeModifier?: number;
  /** The table that the column comes from; 0 for a computed one. */
  readonly tableID?: number;
}

export interface SqlResult {
  readonly command: string;
  readonly rowCount: number | null;
  readonly fields: readonly SqlField[];
  /** Values as Postgres writes them. */
  readonly rows: readonly (readonly (string | null)[])[];
  /** What Postgres says that it did, such as `CREATE TABLE` or `INSERT 0 2`; empty if it stopped after `maxRows`. */
  readonly tag?: string;
  readonly hasMore?: boolean;
  readonly notices?: readonly SqlNotice[];
}

export interface SqlNotice {
  readonly severity: string | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly detail: string | null;
  readonly hint: string | null;
}

/** What Postgres says about a statement that it refuses. */
export class SqlError extends Error {
  readonly code: string;
  readonly detail: string | null;
  readonly hint: string | null;
  /** Characters from the beginning of the statement, from 1; null where Postgres names none. */
  readonly position: number | null;
  /** Which statement of a batch it was; 0 for a statement alone. */
  readonly index: number;

  constructor(fields: Readonly<Record<string, string | null>>, index = 0) {
    super(fields.message ?? 'the statement failed');
    this.name = 'SqlError';
    this.code = fields.code ?? '';
    this.detail = fields.detail ?? null;
    this.hint = fields.hint ?? null;
    this.position = fields.position === null || fields.position === undefined ? null : Number(fields.position);
    this.index = index;
  }
}

/** The rows are more than one answer may hold. */
class TooManyRowsError extends SqlError {}

export interface SqlOptions {
  readonly params?: readonly string[];
  /** Postgres stops after so many rows; 0, as usual, for all of them. */
  readonly maxRows?: number;
  /** In a transaction that Postgres keeps from writing. */
  readonly readOnly?: boolean;
  readonly signal?: AbortSignal;
}

export async function runSql(uri: string, query: string, options: SqlOptions = {}): Promise<SqlResult> {
  const { params = [], maxRows = 0, readOnly = false, signal } = options;
  const statement = { query, params, maxRows, details: true };
  const reply = await post(uri, readOnly ? { queries: [statement] } : statement, readOnly, signal);
  if (!readOnly) return reply as SqlResult;
  const first = (reply as { results: SqlResult[] }).results[0];
  if (first === undefined) throw new Error('the server answered without a result');
  return first;
}

/** A script from its BEGIN to its COMMIT, in one session. A statement that fails ends it, and nothing stays open. */
export async function runScript(
  uri: string,
  queries: readonly string[],
  options: SqlOptions = {},
): Promise<SqlResult[]> {
  const { maxRows = 0, readOnly = false, signal } = options;
  const statements = queries.map((query) => ({ query, maxRows, details: true }));
  const reply = await post(uri, { queries: statements }, readOnly, signal);
  return (reply as { results: SqlResult[] }).results;
}

/**
 * All rows of a statement as a file. It comes as a stream, which the browser keeps on disk when it is large; `onBytes`
 * reports how much has come.
 */
export async function exportRows(
  uri: string,
  query: string,
  format: 'csv' | 'json',
  options: { readonly signal: AbortSignal; readonly onBytes: (count: number) => void },
): Promise<Blob> {
  const response = await reach(`/sql/export?format=${format}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'neon-connection-string': uri },
    body: JSON.stringify({ query }),
    signal: options.signal,
  });
  if (!response.ok || response.body === null) throw toSqlError(await failureOf(response));
  let received = 0;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, stream) {
      received += chunk.length;
      options.onBytes(received);
      stream.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counted)).blob();
}

/**
 * All rows of a statement that writes nothing, however many bytes they are. Beyond what a page should keep the rest is
 * left out, and `hasMore` says so.
 */
async function streamRows(uri: string, query: string, { maxRows = 0, signal }: SqlOptions): Promise<SqlResult> {
  const response = await reach('/sql/export?format=lines', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'neon-connection-string': uri },
    body: JSON.stringify({ query, maxRows }),
    ...(signal === undefined ? {} : { signal }),
  });
  if (!response.ok || response.body === null) throw toSqlError(await failureOf(response));
  const { head, rows, hasMore } = await readRowLines(response.body);
  return { command: 'SELECT', rowCount: hasMore ? null : rows.length, fields: head as SqlField[], rows, hasMore };
}

/**
 * As `runSql`. What is too much for one answer is read line by line, which repeats no write: a statement that has
 * written is refused there, and then the first error is the one to show.
 */
export async function runSqlOfAnySize(uri: string, query: string, options: SqlOptions): Promise<SqlResult> {
  try {
    return await runSql(uri, query, options);
  } catch (error) {
    if (!(error instanceof TooManyRowsError)) throw error;
    return await streamRows(uri, query, options).catch((second: unknown) => {
      throw isRefusedWrite(second) ? error : second;
    });
  }
}

async function post(uri: string, body: object, readOnly: boolean, signal: AbortSignal | undefined): Promise<unknown> {
  const response = await reach('/sql', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'neon-connection-string': uri,
      'neon-raw-text-output': 'true',
      'neon-array-mode': 'true',
      ...(readOnly ? { 'neon-batch-read-only': 'true' } : {}),
    },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.status === tooLarge) throw new TooManyRowsError(await failureOf(response));
  if (!response.ok) throw toSqlError(await failureOf(response));
  return response.json();
}

const tooLarge = 507;

const reach = (path: string, init: RequestInit) =>
  fetch(path, init).catch((error: unknown) => {
    throw error instanceof DOMException ? error : new OfflineError();
  });

const failureOf = (response: Response): Promise<Failure> =>
  response.json().catch(() => ({ message: `the server answered ${response.status}` }));

type Failure = Readonly<Record<string, string | null>> & { readonly queryIndex?: number };

const toSqlError = (failure: Failure) => new SqlError(failure, failure.queryIndex);

/** Inside a transaction that may not write, or a statement that no transaction may hold. */
const writeCodes: readonly string[] = ['25006', '25001'];

export const isRefusedWrite = (error: unknown) => error instanceof SqlError && writeCodes.includes(error.code);
