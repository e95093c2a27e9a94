/**
 * Which endpoint a client means: the first label of the TLS server name, a word in the `options` parameter, or a
 * prefix of the password. Pure; nothing here knows which endpoints exist, so nothing here can tell.
 */
import { CatnapError } from '../../lib/errors.ts';

export interface Route {
  readonly endpointId: string;
  /** Asked for by the `-pooler` host. */
  readonly pooled: boolean;
}

export interface HostNames {
  readonly domain: string;
  readonly region: string;
}

export const endpointMissing =
  'Endpoint ID is not specified. Either please upgrade the postgres client library (libpq) for SNI support or pass ' +
  'the endpoint ID (first part of the domain name) as a parameter: ' +
  "'?options=endpoint%3D<endpoint-id>'. See more at https://neon.tech/sni";

/** Null when neither the server name nor the options say anything. */
export function chooseRoute(serverName: string | null, options: string | undefined, names: HostNames): Route | null {
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

/** First label of a name below our domain; the names of the region and the domain themselves mean no endpoint. */
export function endpointOfServerName(serverName: string, names: HostNames): string | null {
  const name = serverName.toLowerCase().replace(/\.$/, '');
  const dot = name.indexOf('.');
  if (dot <= 0 || name === names.domain || name === `${names.region}.${names.domain}`) return null;
  const label = name.slice(0, dot);
  const rest = name.slice(dot + 1);
  if (rest !== names.domain && !rest.endsWith(`.${names.domain}`)) return null;
  // The hosts of SQL over HTTP.
  if (label === 'api' || label === 'apiauth') return null;
  return label;
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

/** `endpoint=ID;PASSWORD` or `endpoint=ID$PASSWORD`; the first `;` wins over any `$`. Null when it is no such text. */
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

/** What stays for the compute after the words meant for the proxy are out; null when nothing does. */
export function stripOptions(options: string): string | null {
  const kept: string[] = [];
  for (const word of splitWords(options)) {
    if (!proxyWord.test(withoutEscapes(word))) kept.push(word);
    // `-c endpoint=…` is two words; without its second half the first would swallow the next.
    else if (kept.at(-1) === '-c') kept.pop();
  }
  return kept.length > 0 ? kept.join(' ') : null;
}

/** `neon_lsn` and `neon_timestamp` ask for the past; serving the present instead would be a wrong answer. */
export function asksForPast(options: string): boolean {
  return splitWords(options).some((word) => /^(neon|catnap)_(lsn|timestamp)[:=]/.test(withoutEscapes(word)));
}

const endpointWord = /^(?:endpoint|project)=(.*)$/s;
const proxyWord = /^(?:(?:endpoint|project)=|(?:neon|catnap)_\w+[:=])/;

function asRoute(text: string): Route {
  if (!/^[a-zA-Z0-9-]+$/.test(text)) {
    throw refusal(`Project name ('${text}') must contain only alphanumeric characters and hyphen.`);
  }
  const endpointId = text.replace(/-(pooler|local-proxy)$/, '');
  return { endpointId, pooled: text.endsWith('-pooler') };
}

function refusal(message: string): CatnapError {
  return new CatnapError('unauthenticated', message);
}

/** Words as Postgres splits them: at white space, unless a backslash stands before it. Escapes are left in. */
function splitWords(options: string): string[] {
  return options.match(/(?:\\.|\\$|[^\\ \t\n\v\f\r])+/gs) ?? [];
}

function withoutEscapes(word: string): string {
  return word.replace(/\\(.?)/gs, '$1');
}
