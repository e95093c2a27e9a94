/**
 * Every failure that Catnap shows to a caller: one class, one closed table. The public message is the `message`; the
 * private reason is `cause` and goes to the log only. `docs/errors.md` is generated from the table.
 */

export interface ErrorKindFacts {
  /** HTTP status of the API reply. */
  readonly status: number;
  /** `code` of the API reply; the wire contract leaves it empty for most errors. */
  readonly code: string;
  /** SQLSTATE the proxy sends for it. */
  readonly sqlState: string;
  /** Whether repeating the same request later can succeed. */
  readonly retryable: boolean;
  /** One sentence for docs/errors.md. */
  readonly meaning: string;
}

const kind = (status: number, code: string, sqlState: string, retryable: boolean, meaning: string): ErrorKindFacts => ({
  status,
  code,
  sqlState,
  retryable,
  meaning,
});

export const errorKinds = {
  invalid_request: kind(
    400,
    '',
    '22023',
    false,
    'A field of the request is missing, unknown or out of range; the message names it.',
  ),
  unauthenticated: kind(401, '', '28000', false, 'The bearer key is missing, wrong or revoked.'),
  password_wrong: kind(401, '', '28P01', false, 'The database password, role or endpoint is not right.'),
  forbidden: kind(403, '', '42501', false, 'The key is valid but may not do this.'),
  not_found: kind(404, '', '42704', false, 'There is no such thing, or the key may not see it.'),
  method_not_allowed: kind(405, '', '0A000', false, 'The path exists, the method does not.'),
  not_acceptable: kind(406, '', '22023', false, 'The period that is asked for cannot be given.'),
  conflict: kind(409, '', '42710', false, 'It exists already, or something else stands in the way.'),
  branch_exists: kind(409, 'BRANCH_ALREADY_EXISTS', '42710', false, 'The project has a branch of that name.'),
  precondition_failed: kind(412, '', '55000', false, 'The thing is not in the state that the request needs.'),
  too_large: kind(413, '', '54000', false, 'The request body or packet is larger than allowed.'),
  unsupported_media_type: kind(415, '', '0A000', false, 'Bodies are JSON: send content-type application/json.'),
  unprocessable: kind(422, '', '22023', false, 'The request is well formed but cannot be carried out as it stands.'),
  branches_limit: kind(422, 'BRANCHES_LIMIT_EXCEEDED', '54000', false, 'The plan allows no more branches.'),
  snapshots_limit: kind(422, 'SNAPSHOTS_LIMIT_EXCEEDED', '54000', false, 'The plan allows no more snapshots.'),
  projects_limit: kind(422, 'PROJECTS_LIMIT_EXCEEDED', '54000', false, 'The plan allows no more projects.'),
  active_time_quota: kind(
    422,
    'ACTIVE_TIME_QUOTA_EXCEEDED',
    '53400',
    false,
    'The project has used up `active_time_seconds` of its quota; the message says when the period ends.',
  ),
  compute_time_quota: kind(
    422,
    'COMPUTE_TIME_QUOTA_EXCEEDED',
    '53400',
    false,
    'The project has used up `compute_time_seconds` of its quota.',
  ),
  written_data_quota: kind(
    422,
    'WRITTEN_DATA_QUOTA_EXCEEDED',
    '53400',
    false,
    'The project has used up `written_data_bytes` of its quota.',
  ),
  data_transfer_quota: kind(
    422,
    'DATA_TRANSFER_QUOTA_EXCEEDED',
    '53400',
    false,
    'The project has used up `data_transfer_bytes` of its quota.',
  ),
  locked: kind(423, '', '55P03', true, 'Too many operations of the project are waiting; try again soon.'),
  rate_limited: kind(429, '', '53400', true, 'Too many requests; the Retry-After header says when to come back.'),
  internal: kind(500, '', 'XX000', true, 'A defect in Catnap; the log has the cause under the request id.'),
  provider_failed: kind(
    502,
    '',
    '58000',
    true,
    'The auth provider refuses or answers nonsense; the message says what. Nothing was changed here.',
  ),
  not_offered: kind(501, '', '0A000', false, 'The published API has this and Catnap does not; the message says why.'),
  not_supported: kind(501, '', '0A000', false, 'This installation cannot do that; the message says what is missing.'),
  unavailable: kind(
    503,
    '',
    '57P03',
    true,
    'Not ready at the moment; safe to repeat, unless the message says otherwise.',
  ),
  disk_full: kind(507, '', '53100', true, 'The machine has no room left for the data.'),
  too_many_connections: kind(503, '', '53300', true, 'The endpoint or the proxy has no room for another connection.'),
} as const satisfies Record<string, ErrorKindFacts>;

export type ErrorKind = keyof typeof errorKinds;

export class CatnapError extends Error {
  readonly kind: ErrorKind;
  /** Seconds for the Retry-After header, where the sender can know. */
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: ErrorKind, message: string, options: { cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CatnapError';
    this.kind = kind;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get facts(): ErrorKindFacts {
    return errorKinds[this.kind];
  }
}

/** The wire style of messages: lower case, then `; key:"value"` for each detail. */
export function withDetails(message: string, details: Record<string, string | number>): string {
  return [message, ...Object.entries(details).map(([key, value]) => `${key}:"${value}"`)].join('; ');
}

export function notFound(noun: string): CatnapError {
  return new CatnapError('not_found', `${noun} not found`);
}

export function invalid(message: string): CatnapError {
  return new CatnapError('invalid_request', message);
}

/** For the end of a `switch` over a closed union. */
export function assertNever(value: never): never {
  throw new Error(`BUG: unexpected value ${JSON.stringify(value)}`);
}

/** The text of anything thrown, for logs and for an operation's `error`. */
export function errorText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message;
}
