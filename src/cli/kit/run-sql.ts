/** Statements over HTTP, which need no Postgres client on this machine. */
import { type ApiClient, ApiRefusal } from './client.ts';
import { CliFailure } from './failure.ts';

export interface SqlStatement {
  readonly query: string;
  readonly params?: readonly unknown[];
  /** At most so many rows; 0 for all of them. */
  readonly maxRows?: number;
}

export interface SqlResult {
  readonly command: string;
  /** The whole command tag, such as `INSERT 0 1`. */
  readonly tag: string;
  readonly rowCount: number | null;
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
  readonly rows: readonly (readonly unknown[])[];
  readonly hasMore: boolean;
  readonly notices: readonly { readonly severity?: string; readonly message: string }[];
}

export interface SqlOptions {
  readonly isReadOnly?: boolean;
  /** Values as Postgres prints them, instead of numbers, booleans and JSON. */
  readonly asText?: boolean;
}

/** All of them in one transaction. */
export async function runSql(
  client: ApiClient,
  uri: string,
  statements: readonly SqlStatement[],
  { isReadOnly = false, asText = false }: SqlOptions = {},
): Promise<readonly SqlResult[]> {
  const headers = {
    'neon-array-mode': 'true',
    ...(asText && { 'neon-raw-text-output': 'true' }),
    ...(isReadOnly && { 'neon-batch-read-only': 'true' }),
  };
  const queries = statements.map((statement) => ({ params: [], ...statement, details: true }));
  try {
    return (await client.sql<{ readonly results: readonly SqlResult[] }>(uri, { queries }, headers)).results;
  } catch (error) {
    throw error instanceof ApiRefusal ? (postgresFailure(error) ?? error) : error;
  }
}

/** What Postgres said about a statement, as psql would print it; null if it is not Postgres that refused. */
function postgresFailure({ body }: ApiRefusal): CliFailure | null {
  const fields: Readonly<Record<string, unknown>> = { ...body };
  if (typeof fields.severity !== 'string' || typeof fields.code !== 'string') return null;
  const lines = [`${fields.severity}: ${String(fields.message)} (SQLSTATE ${fields.code})`];
  for (const name of ['detail', 'hint'] as const) {
    if (typeof fields[name] === 'string') lines.push(`${name.toUpperCase()}: ${fields[name]}`);
  }
  if (typeof fields.position === 'string') lines.push(`at character ${fields.position}`);
  return new CliFailure(lines.join('\n'));
}
