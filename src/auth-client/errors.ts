/** How an auth provider fails, classified by what can be done about it. */
import { CatnapError, type ErrorKind } from '../lib/errors.ts';

export type ProviderFailure =
  /** It does not answer, or reports that it cannot at the moment. */
  | 'unreachable'
  /** It does not know the integration client, or the client's secret is wrong. */
  | 'credentials'
  /** The project's key was revoked, or the project is gone: its owner did that. */
  | 'locked_out'
  | 'exists'
  | 'missing'
  /** It refuses, and gives a reason. */
  | 'refused';

const kinds: Readonly<Record<ProviderFailure, ErrorKind>> = {
  unreachable: 'unavailable',
  credentials: 'provider_failed',
  locked_out: 'precondition_failed',
  exists: 'conflict',
  missing: 'not_found',
  refused: 'provider_failed',
};

export class ProviderError extends CatnapError {
  readonly failure: ProviderFailure;
  /** The provider's own error code. */
  readonly code: string | null;

  constructor(failure: ProviderFailure, message: string, cause?: unknown, code: string | null = null) {
    super(kinds[failure], message, { cause, ...(failure === 'unreachable' ? { retryAfterSeconds: 2 } : {}) });
    this.name = 'ProviderError';
    this.failure = failure;
    this.code = code;
  }
}

/** Deleting cannot be undone here, so a 404 from a reverse proxy, for example, must not be mistaken for it. */
export function isUserGone(thrown: unknown): boolean {
  return thrown instanceof ProviderError && thrown.failure === 'missing' && thrown.code === 'USER_NOT_FOUND';
}

export function isProviderFailure(thrown: unknown, ...failures: readonly ProviderFailure[]): boolean {
  return thrown instanceof ProviderError && failures.includes(thrown.failure);
}

interface Answer {
  readonly status: number;
  /** From the header if there is one, otherwise from the body. */
  readonly code: string | null;
  readonly text: string;
}

const lockedOutCodes: readonly string[] = [
  'INVALID_SUPER_SECRET_ADMIN_KEY',
  'ADMIN_AUTHENTICATION_REQUIRED',
  'CURRENT_PROJECT_NOT_FOUND',
];

/** Wrong credentials of an integration client are reported not as 401 but as a 400 that names the header. */
export function toProviderError({ status, code, text }: Answer): ProviderError {
  const cause = new Error(`the auth provider answered ${status} ${code ?? ''}: ${text.slice(0, 500)}`);
  if (status === 429 || status >= 500) {
    return new ProviderError('unreachable', 'the auth provider cannot do it at the moment; try again', cause);
  }
  if (code !== null && lockedOutCodes.includes(code)) {
    return new ProviderError(
      'locked_out',
      'the auth provider does not accept the key of this integration any more: its owner has revoked it or deleted ' +
        'the project there; delete the integration and create it anew',
      cause,
    );
  }
  if (code === 'SCHEMA_ERROR' && /client_id:client_secret|authorization/i.test(text)) {
    return new ProviderError(
      'credentials',
      'the auth provider refuses the client id and secret that this installation has for it',
      cause,
    );
  }
  if (code === 'USER_EMAIL_ALREADY_EXISTS') {
    return new ProviderError('exists', 'a user with this email already exists', cause);
  }
  if (status === 404) return new ProviderError('missing', 'the auth provider knows no such thing', cause, code);
  return new ProviderError('refused', `the auth provider refuses: ${reasonOf(text)}`, cause);
}

/** The provider's own message, bounded: plain text, or the message of a known error. */
function reasonOf(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null && 'error' in body) return String(body.error).slice(0, 300);
  } catch {
    // Plain text, as many of its refusals are.
  }
  return text.slice(0, 300);
}
