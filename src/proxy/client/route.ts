/**
 * Which endpoint a client means: the first label of the TLS server name, a word in the `options` parameter, or a
 * prefix of the password. Pure: nothing here knows which endpoints exist, so nothing here can reveal it.
 */
import { CatnapError } from '../../lib/errors.ts';

export interface Route {
  readonly endpointId: string;
  /** The name of the endpoint ended in `-pooler`. */
  readonly pooled: boolean;
}

/** Hostnames are `<endpoint>.<region>.<domain>`. */
export interface HostnameParts {
  readonly domain: string;
  readonly region: string;
}

export const endpointMissing =
  'Endpoint ID is not specified. Either please upgrade the postgres client library (libpq) for SNI support or pass ' +
  'the endpoint ID (first part of the domain name) as a parameter: ' +
  "'?options=endpoint%3D<endpoint-id>'. See more at https://neon.tech/sni";

/** Null when neither the server name nor the options name an endpoint. */
export function chooseRoute(
  serverName: string | null,
  options: string | undefined,
  names: HostnameParts,
): Route | null {
  const fromName = serverName === null ? null : endpointOfServerName(serverName, names);
  const fromOptions = endpointOfOptions(options ?? '');
  const byName = fromName === null ? null : asRoute(fromName);
  const byOptions = fromOptions === null ? null : asRoute(fromOptions);
  if (byName && byOptions && byName.endpointId !== byOptions.endpointId) {
    throw refusal(`Inconsistent project name inferred from SNI ('${fromName}') and project option ('${fromOptions}').`);
  }
  if (byName && byOptions) return { ...byName, pooled: byName.pooled || byOptions.pooled };
  return byName ?? byOptions;
}

/**
 * The first of the names that is an endpoint's own, for clients of the HTTP port. That port has names of its own below
 * the same domain, so here only a label that looks like the id of an endpoint or a branch counts.
 */
export function endpointHostname(candidates: readonly (string | null)[], names: HostnameParts): string | null {
  const isEndpoint = (name: string | null) =>
    name !== null && /^(ep|br)-/.test(endpointOfServerName(name, names) ?? '');
  return candidates.find(isEndpoint) ?? null;
}

/** First label of a name below our domain; the names of the region and of the domain itself are no endpoint's. */
export function endpointOfServerName(serverName: string, names: HostnameParts): string | null {
  const name = serverName.toLowerCase().replace(/\.$/, '');
  const dot = name.indexOf('.');
  if (dot <= 0 || name === names.domain || name === `${names.region}.${names.domain}`) return null;
  const label = name.slice(0, dot);
  const rest = name.slice(dot + 1);
  if (rest !== names.domain && !rest.endsWith(`.${names.domain}`)) return null;
  // The hostnames of SQL over HTTP, and of logins without a password.
  if (label === 'api' || label === 'apiauth' || label === linkLabel) return null;
  return label;
}

/** `pg.<domain>` and `pg.<region>.<domain>`, where every client that names no endpoint is shown a link. */
const linkLabel = 'pg';

/**
 * Whether a client that names no endpoint is shown a link instead of being asked for a password that names one. A
 * program would wait for a person who is not there, so on other hostnames only psql gets a link. Without a server name
 * the client is too old to send one, and the password is its only way to name an endpoint.
 */
export function asksForLink(
  serverName: string | null,
  applicationName: string | undefined,
  { domain }: HostnameParts,
): boolean {
  if (serverName === null) return false;
  const name = serverName.toLowerCase();
  return applicationName === 'psql' || (name.startsWith(`${linkLabel}.`) && name.endsWith(`.${domain}`));
}

/** The value of the one `endpoint=` or `project=` word; two of them count as none. */
export function endpointOfOptions(options: string): string | null {
  const ids = splitWords(options).flatMap((word) => endpointWord.exec(withoutEscapes(word))?.[1] ?? []);
  return ids.length === 1 ? (ids[0] ?? null) : null;
}

export interface PasswordRoute {
  readonly route: Route;
  readonly password: Buffer;
}

/** `endpoint=ID;PASSWORD` or `endpoint=ID$PASSWORD`; the first `;` wins over any `$`. Null for any other text. */
export function parsePasswordForm(bytes: Buffer): PasswordRoute | null {
  const prefix = ['endpoint=', 'project='].find((word) => bytes.subarray(0, word.length).equals(Buffer.from(word)));
  if (prefix === undefined) return null;
  const semicolon = bytes.indexOf(';');
  const end = semicolon === -1 ? bytes.indexOf('$') : semicolon;
  if (end === -1) return null;
  return {
    route: asRoute(bytes.toString('utf8', prefix.length, end)),
    password: bytes.subarray(end + 1),
  };
}

/** The options for the compute, without the words that are meant for the proxy; null when none are left. */
export function stripOptions(options: string): string | null {
  const kept: string[] = [];
  for (const word of splitWords(options)) {
    if (!proxyWord.test(withoutEscapes(word))) kept.push(word);
    // `-c endpoint=…` is two words; a `-c` that stayed would take the next word as its own.
    else if (kept.at(-1) === '-c') kept.pop();
  }
  return kept.length > 0 ? kept.join(' ') : null;
}

/** A moment of the past as a client has written it; nothing here knows whether it can be given. */
export interface WrittenMoment {
  readonly lsn?: string;
  readonly timestamp?: string;
}

/** What `neon_lsn:` and `neon_timestamp:` ask for; null without them. */
export function momentOfOptions(options: string): WrittenMoment | null {
  const moment: { lsn?: string; timestamp?: string } = {};
  for (const word of splitWords(options)) {
    const [, kind, value] = momentWord.exec(withoutEscapes(word)) ?? [];
    if (kind !== 'lsn' && kind !== 'timestamp') continue;
    if (moment[kind] !== undefined) throw new CatnapError('invalid_request', `neon_${kind} is given twice`);
    moment[kind] = value ?? '';
  }
  return Object.keys(moment).length > 0 ? moment : null;
}

/** The first label of a hostname may be a branch's id, where a moment of its past is asked for. */
export const isBranchName = (name: string) => name.startsWith('br-');

const momentWord = /^(?:neon|catnap)_(lsn|timestamp)[:=](.*)$/s;
const endpointWord = /^(?:endpoint|project)=(.*)$/s;
const proxyWord = /^(?:(?:endpoint|project)=|(?:neon|catnap)_\w+[:=])/;

/** An endpoint's name, with `-pooler` or without. */
export function asRoute(text: string): Route {
  if (!/^[a-zA-Z0-9-]+$/.test(text)) {
    throw refusal(`Project name ('${text}') must contain only alphanumeric characters and hyphen.`);
  }
  const endpointId = text.replace(/-(pooler|local-proxy)$/, '');
  return { endpointId, pooled: text.endsWith('-pooler') };
}

function refusal(message: string): CatnapError {
  return new CatnapError('unauthenticated', message);
}

/** Words as Postgres splits them: at white space, unless a backslash precedes it. Escapes are left in. */
function splitWords(options: string): string[] {
  return options.match(/(?:\\.|\\$|[^\\ \t\n\v\f\r])+/gs) ?? [];
}

function withoutEscapes(word: string): string {
  return word.replace(/\\(.?)/gs, '$1');
}
