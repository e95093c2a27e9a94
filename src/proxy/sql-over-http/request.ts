/**
 * Reads the headers and the body of a request for SQL over HTTP. Pure; a fault is a CatnapError that says which part is
 * wrong, in the words that published drivers know.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { CatnapError } from '../../lib/errors.ts';
import { asRoute, chooseRoute, type HostnameParts, parsePasswordForm, type Route } from '../client/route.ts';
import { parameterText, parseJson } from './parameters.ts';

export interface SqlTarget {
  /** Null for a caller that names no endpoint. */
  readonly route: Route | null;
  readonly role: string;
  /** A token counts, if there is one: its bearer may not get more than the token gives. */
  readonly credential: { readonly password: Buffer } | { readonly token: string };
  readonly database: string;
  /** Startup parameters other than user and database. */
  readonly parameters: ReadonlyMap<string, string>;
}

export interface SqlOptions {
  /** Return values as Postgres text, whatever their type. */
  readonly rawText: boolean;
  readonly arrayMode: boolean;
  readonly batch: BatchOptions;
}

export interface BatchOptions {
  readonly isolationLevel: string | null;
  readonly readOnly: boolean;
  readonly deferrable: boolean;
}

export interface SqlStatement {
  readonly query: string;
  readonly params: readonly (string | null)[];
  /** Null: as the header of the request says. */
  readonly arrayMode: boolean | null;
  /** The server stops after so many rows; 0 for all. */
  readonly maxRows: number;
  /** With the whole command tag, the notices, and whether there are more rows. */
  readonly details: boolean;
}

export type SqlBody =
  | { readonly kind: 'single'; readonly statement: SqlStatement }
  | { readonly kind: 'batch'; readonly statements: readonly SqlStatement[] };

/** Bind counts parameters in 16 bits. */
const paramsMax = 65_535;
/** By the value of the header: the level for BEGIN. */
const isolationLevels: ReadonlyMap<string, string> = new Map([
  ['ReadUncommitted', 'READ UNCOMMITTED'],
  ['ReadCommitted', 'READ COMMITTED'],
  ['RepeatableRead', 'REPEATABLE READ'],
  ['Serializable', 'SERIALIZABLE'],
]);

/**
 * `address` is the path and query of the request. The endpoint may be named there too, for drivers that pass on nothing
 * but user, password, host and database of a connection string.
 */
export function readTarget(address: string, headers: IncomingHttpHeaders, names: HostnameParts): SqlTarget {
  const url = connectionUrl(headers['neon-connection-string']);
  const role = decoded(url.username);
  const database = decoded(url.pathname.slice(1));
  if (url.hostname === '') throw fault('missing hostname');
  if (role === '') throw fault('missing username');
  if (database === '') throw fault('missing database name');
  const token = bearerToken(headers.authorization);
  const given = Buffer.from(decoded(url.password));
  if (given.length === 0 && token === null) throw fault('missing authentication credentials: required password');
  const options = url.searchParams.get('options') ?? undefined;
  const named = sameRoute(chooseRoute(url.hostname, options, names), addressedRoute(address));
  const form = named === null && token === null ? parsePasswordForm(given) : null;
  const route = named ?? form?.route ?? null;
  const parameters = new Map([['client_encoding', 'UTF8']]);
  const applicationName = url.searchParams.get('application_name');
  if (applicationName !== null) parameters.set('application_name', applicationName);
  if (options !== undefined) parameters.set('options', options);
  for (const text of [role, database, ...parameters.values()]) {
    if (text.includes('\0')) throw fault('invalid header: neon-connection-string');
  }
  const credential = token === null ? { password: form?.password ?? given } : { token };
  return { route, role, credential, database, parameters };
}

function bearerToken(header: string | undefined): string | null {
  return /^Bearer +(\S+) *$/i.exec(header ?? '')?.[1] ?? null;
}

function addressedRoute(address: string): Route | null {
  const [, search = ''] = address.split('?', 2);
  const endpoint = new URLSearchParams(search).get('endpoint');
  return endpoint === null ? null : asRoute(endpoint);
}

function sameRoute(named: Route | null, addressed: Route | null): Route | null {
  if (named !== null && addressed !== null && named.endpointId !== addressed.endpointId) {
    throw fault('the address of /sql and the connection string name different endpoints');
  }
  return named ?? addressed;
}

/** Parsed with the scheme `http`: URL parses hostname and path as we need them only for schemes that it knows. */
function connectionUrl(header: string | string[] | undefined): URL {
  if (typeof header !== 'string' || header === '') throw fault('invalid header: neon-connection-string');
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):(\/\/.*)$/is.exec(header) ?? [];
  const url = scheme === undefined ? null : parseUrl(`http:${rest}`);
  if (scheme === undefined || url === null) throw fault('invalid header: neon-connection-string');
  if (!['postgres', 'postgresql'].includes(scheme.toLowerCase())) throw fault('incorrect scheme');
  return url;
}

function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw fault('invalid header: neon-connection-string');
  }
}

export function readOptions(headers: IncomingHttpHeaders): SqlOptions {
  const level = headers['neon-batch-isolation-level'];
  if (level !== undefined && (typeof level !== 'string' || !isolationLevels.has(level))) {
    throw fault(`invalid isolation level; allowed: ${[...isolationLevels.keys()].join(', ')}`);
  }
  return {
    rawText: headers['neon-raw-text-output'] === 'true',
    arrayMode: headers['neon-array-mode'] === 'true',
    batch: {
      isolationLevel: level ?? null,
      readOnly: headers['neon-batch-read-only'] === 'true',
      deferrable: headers['neon-batch-deferrable'] === 'true',
    },
  };
}

export function beginStatement(options: BatchOptions): string {
  return ['BEGIN', transactionModes(options)].join(' ').trim();
}

/** Makes the modes the default of every BEGIN in the session; null when there are none. */
export function transactionDefaults(options: BatchOptions): string | null {
  const modes = transactionModes(options);
  return modes === '' ? null : `SET SESSION CHARACTERISTICS AS TRANSACTION ${modes}`;
}

function transactionModes({ isolationLevel, readOnly, deferrable }: BatchOptions): string {
  const level = isolationLevel === null ? undefined : isolationLevels.get(isolationLevel);
  const modes = [
    ...(level === undefined ? [] : [`ISOLATION LEVEL ${level}`]),
    ...(readOnly ? ['READ ONLY'] : []),
    ...(deferrable ? ['DEFERRABLE'] : []),
  ];
  return modes.join(', ');
}

export function readBody(text: string): SqlBody {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new CatnapError('invalid_request', 'the body is not valid JSON', { cause });
  }
  if (!isObject(value)) throw fault('the body must be an object with `query` or `queries`');
  if (value.queries === undefined) return { kind: 'single', statement: readStatement(value, '') };
  if (!Array.isArray(value.queries)) throw fault('`queries` must be an array');
  return { kind: 'batch', statements: value.queries.map((each, at) => readStatement(each, `queries[${at}].`)) };
}

function readStatement(value: unknown, path: string): SqlStatement {
  if (!isObject(value) || typeof value.query !== 'string') throw fault(`\`${path}query\` must be a string`);
  if (value.query.includes('\0')) throw fault(`\`${path}query\` must not contain a zero byte`);
  const params = value.params ?? [];
  if (!Array.isArray(params)) throw fault(`\`${path}params\` must be an array`);
  if (params.length > paramsMax) throw fault(`\`${path}params\` must have at most ${paramsMax} values`);
  const { arrayMode } = value;
  if (arrayMode !== undefined && arrayMode !== null && typeof arrayMode !== 'boolean') {
    throw fault(`\`${path}arrayMode\` must be true or false`);
  }
  const { maxRows = 0, details = false } = value;
  if (!isCount(maxRows)) throw fault(`\`${path}maxRows\` must be a whole number from 0 to ${countMax}`);
  if (typeof details !== 'boolean') throw fault(`\`${path}details\` must be true or false`);
  return { query: value.query, params: params.map(parameterText), arrayMode: arrayMode ?? null, maxRows, details };
}

/** Execute counts rows in 32 bits, with a sign. */
const countMax = 2_147_483_647;

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= countMax;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fault(message: string): CatnapError {
  return new CatnapError('invalid_request', message);
}
