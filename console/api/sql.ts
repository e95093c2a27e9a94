/** SQL over HTTP, the way that drivers use it: `POST /sql` with a connection string in a header. */
import { OfflineError } from './client.ts';

export interface SqlField {
  readonly name: string;
  readonly dataTypeID: number;
}

export interface SqlResult {
  readonly command: string;
  readonly rowCount: number | null;
  readonly fields: readonly SqlField[];
  /** Values as Postgres writes them. */
  readonly rows: readonly (readonly (string | null)[])[];
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

export interface SqlOptions {
  readonly params?: readonly string[];
  /** In a transaction that Postgres keeps from writing. */
  readonly readOnly?: boolean;
  readonly signal?: AbortSignal;
}

export async function runSql(uri: string, query: string, options: SqlOptions = {}): Promise<SqlResult> {
  const { params = [], readOnly = false, signal } = options;
  const statement = { query, params };
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
  const { readOnly = false, signal } = options;
  const reply = await post(uri, { queries: queries.map((query) => ({ query })) }, readOnly, signal);
  return (reply as { results: SqlResult[] }).results;
}

async function post(uri: string, body: object, readOnly: boolean, signal: AbortSignal | undefined): Promise<unknown> {
  const response = await fetch('/sql', {
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
  }).catch((error: unknown) => {
    throw error instanceof DOMException ? error : new OfflineError();
  });
  const reply: unknown = await response.json().catch(() => ({ message: `the server answered ${response.status}` }));
  if (!response.ok) throw toSqlError(reply as Failure);
  return reply;
}

type Failure = Readonly<Record<string, string | null>> & { readonly queryIndex?: number };

const toSqlError = (failure: Failure) => new SqlError(failure, failure.queryIndex);

/** Inside a transaction that may not write, or a statement that no transaction may hold. */
const writeCodes: readonly string[] = ['25006', '25001'];

export const isRefusedWrite = (error: unknown) => error instanceof SqlError && writeCodes.includes(error.code);
