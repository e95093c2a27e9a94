/**
 * What an API server's refusal means for its caller. The bodies are `Status` objects; those that matter were recorded
 * from a real server. Some refusals look alike and are not: a write while the operator is down is a 500 that passes by
 * itself, and a resize beyond the node is a 403 that has nothing to do with rights.
 */
import type { Outage } from '../../interface/outage.ts';
import { ServerRefusalError } from '../../interface/refusal.ts';

/**
 * `retryable`: passes by itself. `conflict`: somebody else has written the object since it was read. `exists`,
 * `missing`: the object is there already, or is not. `expired`: that version of the list is forgotten, list again.
 * `refused`: the rights, or the room on the node, do not allow it.
 */
export type Verdict = 'retryable' | 'conflict' | 'exists' | 'missing' | 'expired' | 'refused';

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The part of a `Status` that is read. */
export interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly causes?: readonly StatusCause[]; readonly retryAfterSeconds?: number };
}

export class KubernetesError extends Error implements Outage {
  /** Of HTTP; 0 when there was no reply. */
  readonly status: number;
  readonly verdict: Verdict;
  readonly causes: readonly StatusCause[];
  /** How long the server asks to be left alone; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    facts: { status: number; verdict: Verdict; causes?: readonly StatusCause[]; retryAfterMs?: number | null },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'KubernetesError';
    this.status = facts.status;
    this.verdict = facts.verdict;
    this.causes = facts.causes ?? [];
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }

  get isOutage(): boolean {
    return this.verdict === 'retryable';
  }
}

/** The server, or the operator's webhook, finds the object wrong: the same object is as wrong the next time. */
export class InvalidObjectError extends ServerRefusalError {
  readonly causes: readonly StatusCause[];

  constructor(message: string, causes: readonly StatusCause[]) {
    super(message, '22023');
    this.name = 'InvalidObjectError';
    this.causes = causes;
  }
}

export const isVerdict = (error: unknown, verdict: Verdict): error is KubernetesError =>
  error instanceof KubernetesError && error.verdict === verdict;

/** Beyond what the node can ever give, as opposed to rights that are missing. */
export const isBeyondNode = (error: unknown): boolean =>
  error instanceof KubernetesError && error.causes.some(({ reason }) => reason === 'NodeCapacity');

/** `body` is a `Status`, or plain text for a path that the server does not know. */
export function errorOf(status: number, body: unknown, retryAfter?: string): KubernetesError | InvalidObjectError {
  const said: StatusBody = typeof body === 'object' && body !== null ? body : { message: String(body).trim() };
  const causes = said.details?.causes ?? [];
  const message = `the Kubernetes API answers ${status}: ${said.message ?? 'without a reason'}`;
  // A wrong type is a 400 of the webhook, without a reason.
  if (status === 400 || status === 422) return new InvalidObjectError(message, causes);
  const seconds = Number(retryAfter ?? said.details?.retryAfterSeconds);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : null;
  return new KubernetesError(message, { status, verdict: verdictOf(status, said), causes, retryAfterMs });
}

function verdictOf(status: number, { reason }: StatusBody): Verdict {
  if (status === 409) return reason === 'AlreadyExists' ? 'exists' : 'conflict';
  if (status === 404) return 'missing';
  if (status === 410) return 'expired';
  // Also a webhook that does not answer: the operator is down, or is being upgraded.
  if (status === 429 || status >= 500) return 'retryable';
  return 'refused';
}

/** Nothing came back. Not retryable is only what a certificate or its absence decides. */
export function unreachable(server: URL, cause: unknown): KubernetesError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const isTrust = /CERT|SIGNATURE|SELF_SIGNED|ISSUER|ERR_TLS|ERR_SSL/.test(code);
  const reason = cause instanceof Error ? cause.message || code : String(cause);
  const message = `the Kubernetes API at ${server.origin} cannot be reached: ${reason}`;
  return new KubernetesError(message, { status: 0, verdict: isTrust ? 'refused' : 'retryable' }, { cause });
}
