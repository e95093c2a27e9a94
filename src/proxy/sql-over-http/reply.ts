/** Replies of SQL over HTTP: the body of a failure, and the headers that let pages of any origin read a reply. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { CatnapError } from '../../lib/errors.ts';
import { ComputeRefusal } from '../compute/session.ts';
import { ResponseTooLarge, readErrorFields, StatementFailed, UnfitStatement } from './execute.ts';
import type { BatchOptions } from './request.ts';

export interface HttpFailure {
  readonly status: number;
  readonly body: string;
  readonly sqlState: string;
  /** Caused by a defect, or by a part of Catnap that is not working. */
  readonly isOurs: boolean;
}

export class RequestTooLarge extends Error {
  constructor(max: number) {
    super(`request is too large (max is ${max} bytes)`);
    this.name = 'RequestTooLarge';
  }
}

/** The names that drivers use, and the letters that Postgres uses. */
const errorFields: Readonly<Record<string, string>> = {
  message: 'M',
  code: 'C',
  detail: 'D',
  hint: 'H',
  position: 'P',
  internalPosition: 'p',
  internalQuery: 'q',
  severity: 'S',
  where: 'W',
  table: 't',
  column: 'c',
  schema: 's',
  dataType: 'd',
  constraint: 'n',
  file: 'F',
  line: 'L',
  routine: 'R',
};

export function describeFailure(thrown: unknown): HttpFailure {
  if (thrown instanceof StatementFailed) return postgresFailure(thrown.fields, thrown.at);
  if (thrown instanceof ComputeRefusal) return postgresFailure(readErrorFields(thrown.response.subarray(5)));
  if (thrown instanceof UnfitStatement) return failure(400, '0A000', thrown.message);
  if (thrown instanceof RequestTooLarge) return failure(413, '54000', thrown.message);
  if (thrown instanceof ResponseTooLarge) return failure(507, '54000', thrown.message);
  if (thrown instanceof CatnapError) {
    const { sqlState, status } = thrown.facts;
    const isBusy = thrown.kind === 'rate_limited' || thrown.kind === 'too_many_connections';
    // Drivers read the reason only from a 400; so every error that the caller can correct is a 400.
    return failure(isBusy ? 429 : status < 500 || status === 501 ? 400 : 500, sqlState, thrown.message);
  }
  return failure(500, 'XX000', 'internal error');
}

/** `queryIndex` is an addition of ours, and only there for a statement of a batch. */
function postgresFailure(fields: ReadonlyMap<string, string>, at: number | null = null): HttpFailure {
  const named = Object.entries(errorFields).map(([name, letter]) => [name, fields.get(letter) ?? null]);
  const body = { ...Object.fromEntries(named), ...(at === null ? {} : { queryIndex: at }) };
  return { status: 400, body: JSON.stringify(body), sqlState: fields.get('C') ?? 'XX000', isOurs: false };
}

function failure(status: number, sqlState: string, message: string): HttpFailure {
  const fields = new Map([
    ['M', message],
    ['C', sqlState],
    ['S', 'ERROR'],
  ]);
  return { ...postgresFailure(fields), status, isOurs: status === 500 };
}

export function setCommonHeaders(response: ServerResponse): void {
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('neon-request-id', randomUUID());
}

/** A browser sends a preflight request before the request with our headers. */
export function sendPreflight(response: ServerResponse): void {
  response.setHeader('allow', 'OPTIONS, POST');
  response.setHeader('access-control-allow-methods', 'OPTIONS, POST');
  response.setHeader('access-control-allow-headers', allowedHeaders.join(', '));
  response.setHeader('access-control-expose-headers', 'Neon-Request-Id, Neon-Batch-Isolation-Level');
  response.setHeader('access-control-max-age', '86400');
  response.writeHead(200, { 'content-length': 0 }).end();
}

const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Neon-Connection-String',
  'Neon-Raw-Text-Output',
  'Neon-Array-Mode',
  'Neon-Pool-Opt-In',
  'Neon-Batch-Read-Only',
  'Neon-Batch-Deferrable',
  'Neon-Batch-Isolation-Level',
];

export function echoBatchHeaders(response: ServerResponse, batch: BatchOptions): void {
  if (batch.readOnly) response.setHeader('Neon-Batch-Read-Only', 'true');
  if (batch.deferrable) response.setHeader('Neon-Batch-Deferrable', 'true');
  if (batch.isolationLevel !== null) response.setHeader('Neon-Batch-Isolation-Level', batch.isolationLevel);
}

/** Returns the length of the body, or 0 if nothing can be sent any more. */
export function sendJson(response: ServerResponse, status: number, body: string): number {
  if (response.destroyed || response.headersSent) return 0;
  const length = Buffer.byteLength(body);
  // As text, because Node then writes head and body in one piece.
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length }).end(body);
  return length;
}
