/** One request for an operation: right, wrong in one place, or wild. */
import type { Random } from '../random.ts';
import { Living } from './living.ts';
import { mutateText, mutateValue, nastyTexts } from './nasty.ts';
import type { Operation } from './operations.ts';
import { makeValue, type Resolve } from './schema.ts';

export type Kind = 'valid' | 'body' | 'bytes' | 'query' | 'path' | 'header' | 'method' | 'wild';

export interface FuzzRequest {
  readonly kind: Kind;
  readonly operation: Operation;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer | undefined;
  /** Of living things that it names. */
  readonly values: Readonly<Record<string, string>>;
  /** The place that was changed, where it was one place of the body. */
  readonly changed: string | null;
}

interface Draft {
  path: string;
  query: [string, string][];
  headers: Record<string, string>;
  payload: Buffer | undefined;
  changed: string | null;
}

const kinds: readonly Kind[] = ['valid', 'valid', 'valid', 'body', 'body', 'body', 'bytes', 'query', 'path', 'header'];
const rare: readonly Kind[] = ['method', 'wild'];
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

export interface RequestMaking {
  readonly random: Random;
  readonly resolve: Resolve;
  readonly living: Living;
  /** Credentials for the operation. */
  readonly headersFor: (operation: Operation, random: Random) => Record<string, string>;
}

export function makeRequest(operation: Operation, making: RequestMaking): FuzzRequest {
  const { random, living, resolve } = making;
  const kind = random.chance(0.05) ? random.pick(rare) : random.pick(kinds);
  const values = living.choose(random);
  const suggest = (name: string) => (random.chance(0.9) ? Living.valueOf(values, name) : undefined);
  const parts = { random, resolve, suggest, density: random.pick([0, 0.1, 0.3, 0.6]) };
  const json = operation.body && makeValue(operation.body, parts);
  const draft: Draft = {
    path: fillPath(operation, values),
    query: makeQuery(operation, parts),
    headers: making.headersFor(operation, random),
    payload: json === undefined ? undefined : Buffer.from(JSON.stringify(json)),
    changed: null,
  };
  if (json !== undefined) draft.headers['content-type'] = 'application/json';
  if (operation.takesIdempotencyKey && random.chance(0.2)) draft.headers['idempotency-key'] = `k${random.below(500)}`;
  spoil(draft, kind, json, operation, random);
  const search = draft.query.map(([name, value]) => `${name}=${value}`).join('&');
  return {
    kind,
    operation,
    method: kind === 'method' || kind === 'wild' ? random.pick(methods) : operation.method,
    url: search === '' ? draft.path : `${draft.path}?${search}`,
    headers: draft.headers,
    payload: draft.payload,
    values,
    changed: draft.changed,
  };
}

function fillPath({ path, parameters }: Operation, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const isUuid = parameters[name]?.pattern?.includes('{12}') === true;
    const other = isUuid ? (values.auth_user_id ?? '11111111-2222-4333-8444-555555555555') : 'none';
    return encodeURIComponent(Living.valueOf(values, name) ?? other);
  });
}

function makeQuery({ query }: Operation, making: Parameters<typeof makeValue>[1]): [string, string][] {
  const made = query === undefined ? {} : (makeValue(query, making, '', 1) as Record<string, unknown>);
  return Object.entries(made).map(([name, value]) => [name, safely(String(value))]);
}

function spoil(draft: Draft, kind: Kind, json: unknown, operation: Operation, random: Random): void {
  if (kind === 'wild') {
    for (const one of kinds) if (random.chance(0.4)) spoil(draft, one, json, operation, random);
    return;
  }
  if ((kind === 'body' || kind === 'bytes') && json === undefined) {
    draft.payload = Buffer.from(random.pick(['', '{}', 'null', '{"a":1}', '[', 'x'.repeat(10_000)]));
    draft.headers['content-type'] = random.pick(contentTypes);
  } else if (kind === 'body') {
    const { value, path } = mutateValue(json, random);
    draft.payload = Buffer.from(JSON.stringify(value) ?? '');
    draft.changed = path;
  } else if (kind === 'bytes') {
    draft.payload = mutateText(JSON.stringify(json), random);
    if (random.chance(0.3)) draft.headers['content-type'] = random.pick(contentTypes);
  } else if (kind === 'query') spoilQuery(draft, operation, random);
  else if (kind === 'path') spoilPath(draft, random);
  else if (kind === 'header') spoilHeaders(draft, random);
}

const contentTypes = [
  'application/json',
  'application/json; charset=utf-16',
  'application/json;charset=',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'application/octet-stream',
  'application/JSON',
  ';',
  '',
];

function spoilQuery(draft: Draft, operation: Operation, random: Random): void {
  const names = Object.keys(operation.query?.properties ?? {});
  const name = names.length === 0 ? 'unknown' : random.pick(names);
  const value = safely(random.pick(nastyTexts).slice(0, 3_000));
  switch (random.below(6)) {
    case 0:
      draft.query.push([name, value], [name, '1']);
      break;
    case 1:
      draft.query.push([`${name}[]`, value], [`${name}[a]`, value]);
      break;
    case 2:
      draft.query.push([name, random.pick(['%', '%ZZ', '%00', '%C0%80', '%ED%A0%80', '+', '%2', '&&=&'])]);
      break;
    case 3:
      draft.query.push([safely(random.pick(nastyTexts).slice(0, 300)), value]);
      break;
    default:
      draft.query = [...draft.query.filter(([one]) => one !== name), [name, value]];
  }
}

function spoilPath(draft: Draft, random: Random): void {
  const segments = draft.path.split('/');
  const at = random.between(1, segments.length - 1);
  switch (random.below(5)) {
    case 0:
      segments[at] = random.pick([
        '',
        '.',
        '..',
        '%2e%2e',
        '%',
        '%ZZ',
        '%00',
        '%2F',
        '%C0%AE',
        '*',
        ':id',
        '{}',
        ';a=b',
      ]);
      break;
    case 1:
      segments.splice(at, 0, random.pick(['x', '', '%20']));
      break;
    case 2:
      segments[at] = (segments[at] ?? '').toUpperCase();
      break;
    default:
      // Ids come late in a path.
      segments[random.between(Math.min(4, segments.length - 1), segments.length - 1)] = safely(
        random.pick(nastyTexts).slice(0, 2_000),
      );
  }
  draft.path = segments.join('/');
  if (!draft.path.startsWith('/')) draft.path = `/${draft.path}`;
}

const oddHeaders: readonly (readonly [string, string])[] = [
  ['idempotency-key', ''],
  ['idempotency-key', ' '],
  ['idempotency-key', 'x'.repeat(256)],
  ['idempotency-key', 'ä\xff'],
  ['idempotency-key', 'same'],
  ['authorization', 'Bearer'],
  ['authorization', 'Bearer '],
  ['authorization', 'Bearer \xff\xfe'],
  ['authorization', 'Basic Og=='],
  ['authorization', `Bearer ${'x'.repeat(8_000)}`],
  ['authorization', 'Bearer napi_'],
  ['cookie', 'catnap_session=; a=b;;;=;'],
  ['cookie', `catnap_session=${'%'.repeat(200)}`],
  ['accept', 'text/html'],
  ['accept', '*/*;q=nothing'],
  ['accept-encoding', 'gzip;q=9, br'],
  ['content-type', 'text/xml'],
  ['content-length', '3'],
  ['x-request-id', 'x'.repeat(5_000)],
  ['x-request-id', '\x7f\xff'],
  ['host', 'evil.example'],
  ['host', ''],
  ['origin', 'null'],
  ['x-forwarded-for', '1.2.3.4, ::1, nonsense'],
  ['if-none-match', '*'],
  ['range', 'bytes=-1'],
  ['x-http-method-override', 'DELETE'],
  ['sec-fetch-site', 'cross-site'],
  ['x-stack-access-type', 'nonsense'],
  ['x-stack-project-id', "'"],
  ['x-stack-access-token', 'a.b.c'],
  ['x-stack-refresh-token', '\xff'],
  ['x-stack-project-id', 'x'.repeat(3_000)],
];

function spoilHeaders(draft: Draft, random: Random): void {
  const [name, value] = random.pick(oddHeaders);
  draft.headers[name] = value;
}

/** A lone surrogate cannot be percent-encoded. */
function safely(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
}
