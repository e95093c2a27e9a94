/**
 * The messages that the proxy itself sends and reads on both sides: as a backend towards clients, as a frontend towards
 * computes. Once `splice.ts` has the connection, nothing is decoded any more.
 */
import { cstring, encodeMessage, FieldReader, int32, ProtocolError } from './wire.ts';

/** 3.0; the higher half is the major version. */
export const protocolVersion = 3 << 16;

export const requestCodes = { cancel: 80877102, ssl: 80877103, gssenc: 80877104 } as const;

/** What a client needs to cancel a query. */
export interface BackendKey {
  readonly processId: number;
  readonly secret: number;
}

export interface ErrorReport {
  readonly sqlState: string;
  readonly message: string;
}

// Towards clients.

export const authenticationOk = encodeMessage('R', int32(0));
export const authenticationCleartextPassword = encodeMessage('R', int32(3));

export function authenticationSasl(mechanisms: readonly string[]): Buffer {
  return encodeMessage('R', int32(10), ...mechanisms.map(cstring), Buffer.from([0]));
}

export function authenticationSaslContinue(data: string): Buffer {
  return encodeMessage('R', int32(11), Buffer.from(data));
}

export function authenticationSaslFinal(data: string): Buffer {
  return encodeMessage('R', int32(12), Buffer.from(data));
}

/** Announces version 3.0, and the `_pq_.` parameters that are not supported. */
export function negotiateProtocolVersion(unknownParameters: readonly string[]): Buffer {
  return encodeMessage('v', int32(protocolVersion), int32(unknownParameters.length), ...unknownParameters.map(cstring));
}

export function backendKeyData(key: BackendKey): Buffer {
  return encodeMessage('K', int32(key.processId), int32(key.secret));
}

/** Always FATAL: the proxy sends an error only to end a connection. */
export function errorResponse(report: ErrorReport): Buffer {
  const fields = ['SFATAL', 'VFATAL', `C${report.sqlState}`, `M${report.message.replaceAll('\0', ' ')}`];
  return encodeMessage('E', ...fields.map(cstring), Buffer.from([0]));
}

export function noticeResponse(message: string): Buffer {
  const fields = ['SNOTICE', 'VNOTICE', 'C00000', `M${message.replaceAll('\0', ' ')}`];
  return encodeMessage('N', ...fields.map(cstring), Buffer.from([0]));
}

// From clients.

export interface SaslInitialResponse {
  readonly mechanism: string;
  /** Null when the client waits for an empty challenge first. */
  readonly data: string | null;
}

export function parseSaslInitialResponse(body: Buffer): SaslInitialResponse {
  const reader = new FieldReader(body);
  const mechanism = reader.cstring();
  const length = reader.int32();
  const data = length === -1 ? null : reader.bytes(length).toString('utf8');
  if (reader.remaining > 0) throw new ProtocolError('malformed SASL response');
  return { mechanism, data };
}

/** The bytes of a PasswordMessage, without the closing zero. */
export function parsePassword(body: Buffer): Buffer {
  if (body.indexOf(0) !== body.length - 1) throw new ProtocolError('invalid password packet size');
  return body.subarray(0, -1);
}

// Towards computes.

export function startupMessage(parameters: Iterable<readonly [string, string]>): Buffer {
  const parts = [int32(protocolVersion)];
  for (const [name, value] of parameters) parts.push(cstring(name), cstring(value));
  return packet(...parts, Buffer.from([0]));
}

export function cancelRequest(key: BackendKey): Buffer {
  return packet(int32(requestCodes.cancel), int32(key.processId), int32(key.secret));
}

export function saslInitialResponse(mechanism: string, data: string): Buffer {
  const bytes = Buffer.from(data);
  return encodeMessage('p', cstring(mechanism), int32(bytes.length), bytes);
}

export function saslResponse(data: string): Buffer {
  return encodeMessage('p', Buffer.from(data));
}

function packet(...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([int32(body.length + 4), body]);
}

// From computes.

export type Authentication =
  | { readonly kind: 'ok' }
  | { readonly kind: 'sasl'; readonly mechanisms: readonly string[] }
  | { readonly kind: 'sasl_continue'; readonly data: string }
  | { readonly kind: 'sasl_final'; readonly data: string }
  | { readonly kind: 'other'; readonly code: number };

export function parseAuthentication(body: Buffer): Authentication {
  const reader = new FieldReader(body);
  const code = reader.int32();
  switch (code) {
    case 0:
      return { kind: 'ok' };
    case 10: {
      const mechanisms: string[] = [];
      for (let name = reader.cstring(); name !== ''; name = reader.cstring()) mechanisms.push(name);
      return { kind: 'sasl', mechanisms };
    }
    case 11:
      return { kind: 'sasl_continue', data: reader.rest().toString('utf8') };
    case 12:
      return { kind: 'sasl_final', data: reader.rest().toString('utf8') };
    default:
      return { kind: 'other', code };
  }
}

export function parseBackendKeyData(body: Buffer): BackendKey {
  const reader = new FieldReader(body);
  const key = { processId: reader.int32(), secret: reader.int32() };
  if (reader.remaining > 0) throw new ProtocolError('cancel key is longer than protocol 3.0 allows');
  return key;
}

export function parseErrorResponse(body: Buffer): ErrorReport {
  const reader = new FieldReader(body);
  const report = { sqlState: 'XX000', message: '' };
  for (let field = reader.byte(); field !== 0; field = reader.byte()) {
    // The text may be in any encoding; only the code is compared.
    const value = reader.cstringBytes().toString('utf8');
    if (field === 0x43) report.sqlState = value;
    if (field === 0x4d) report.message = value;
  }
  return report;
}
