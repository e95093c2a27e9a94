/**
 * What a caller can try on a route with something that belongs to somebody else: in each place of the path, alone and
 * together with the caller's own, in each field of the body and in each parameter of the query.
 */
import type { RouteFacts } from '../../../src/api/plugins/route-table.ts';
import { bodyOf, type Document, fieldsOf, operationOf, queriesOf, sample } from './openapi.ts';
import type { Holdings, Values } from './stage.ts';

export interface Attempt {
  readonly route: RouteFacts;
  readonly place: 'path' | 'body' | 'query' | 'nothing foreign';
  /** `branch_id`, or several. */
  readonly foreign: string;
  readonly url: string;
  readonly body?: object;
}

/** Of whom, where a field of this name is asked for: the name of the value among the holdings. */
const kinds: Values = {
  project_ids: 'project_id',
  branch_ids: 'branch_id',
  parent_id: 'branch_id',
  source_branch_id: 'branch_id',
  target_branch_id: 'branch_id',
  base_branch_id: 'branch_id',
  owner_name: 'role_name',
  db_name: 'database_name',
};
/** Names that everybody may use as they like say nothing of anybody. */
const nobodys = ['auth_provider', 'oauth_provider_id'];

const usual: Readonly<Record<string, unknown>> = {
  jwks_url: 'https://made.example.com/jwks.json',
  provider_name: 'made',
  name: 'made',
  url: 'https://made.example.com/hook',
  key_name: 'made',
  email: 'made@example.com',
  domain: 'https://made.example.com',
  id: 'google',
  type: 'read_only',
  from: '2026-01-01T00:00:00Z',
  to: '2026-01-02T00:00:00Z',
  weekdays: [1],
  start_time: '01:00',
  end_time: '02:00',
};

const kindOf = (field: string) => kinds[field] ?? field;
const valueIn = ({ values }: Holdings, field: string): unknown => values[kindOf(field)] ?? usual[field];
const isNamed = (holdings: Holdings, field: string) =>
  holdings.values[kindOf(field)] !== undefined && !nobodys.includes(field);

export interface Sides {
  readonly document: Document;
  readonly own: Holdings;
  readonly foreign: Holdings;
  /** What the victim's own lists have given out as the place to go on, by the route's template. */
  readonly cursors: Readonly<Record<string, string>>;
  readonly search: string;
}

export function attemptsOn(route: RouteFacts, sides: Sides): Attempt[] {
  return [...inPath(route, sides), ...inBody(route, sides), ...inQuery(route, sides), ...asItIs(route, sides)];
}

/** Everything of somebody else, each alone, and each alone of the caller. */
function inPath(route: RouteFacts, sides: Sides): Attempt[] {
  const { own, foreign } = sides;
  const names = namesIn(route).filter((name) => isNamed(foreign, name) && own.values[name] !== foreign.values[name]);
  if (names.length === 0) return [];
  const some = names.length === 1 ? [] : names.map((name) => [name]);
  const most = names.length < 3 ? [] : names.map((name) => names.filter((one) => one !== name));
  return [names, ...some, ...most].map((chosen) => {
    const mixed = Object.fromEntries(chosen.map((name) => [name, foreign.values[name] ?? '']));
    return {
      route,
      place: 'path',
      foreign: chosen.join(' + '),
      url: fill(route, { ...own.values, ...mixed }) + required(route, sides),
      ...withBody(route, sides, []),
    };
  });
}

function inBody(route: RouteFacts, sides: Sides): Attempt[] {
  const { document, own, foreign } = sides;
  const fields = fieldsOf(document, bodyOf(operationOf(document, route)));
  return fields.flatMap((place) => {
    const field = place.at(-1) ?? '';
    if (!isNamed(foreign, field) || valueIn(own, field) === valueIn(foreign, field)) return [];
    // A name in a new thing is the caller's to choose; the owner of one has to be there already.
    if (['role_name', 'database_name'].includes(field)) return [];
    const url = fill(route, own.values) + required(route, sides);
    return [{ route, place: 'body', foreign: place.join('.'), url, ...withBody(route, sides, place) }];
  });
}

function inQuery(route: RouteFacts, sides: Sides): Attempt[] {
  const { document, own, foreign, cursors, search } = sides;
  if (route.method !== 'GET') return [];
  return queriesOf(operationOf(document, route)).flatMap(({ name }) => {
    const value = name === 'cursor' ? cursors[route.url] : name === 'search' ? search : valueIn(foreign, name);
    const isForeign = name === 'cursor' || name === 'search' || isNamed(foreign, name);
    if (value === undefined || !isForeign) return [];
    const url = fill(route, own.values) + required(route, sides, { [name]: String(value) });
    return [{ route, place: 'query', foreign: name, url }];
  });
}

/** Lists, and what else is read without an id. */
function asItIs(route: RouteFacts, sides: Sides): Attempt[] {
  if (route.method !== 'GET') return [];
  const url = fill(route, sides.own.values) + required(route, sides);
  return [{ route, place: 'nothing foreign', foreign: '', url }];
}

export const namesIn = ({ url }: RouteFacts) => [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

function fill({ url, notOffered }: RouteFacts, values: Values): string {
  return url.replace(/:(\w+)/g, (_all, name: string) => {
    const value = values[name] ?? (notOffered === undefined ? undefined : 'any');
    if (value === undefined) throw new Error(`the sweep knows no value for :${name} of ${url}`);
    return encodeURIComponent(value);
  });
}

/** The query that a route cannot do without, with the caller's own values. */
function required(route: RouteFacts, { document, own }: Sides, more: Values = {}): string {
  const parameters = queriesOf(operationOf(document, route)).filter((one) => one.required);
  const asked = parameters.map(({ name, schema = {} }) => {
    const value = sample(document, schema, (field) => valueIn(own, field), [], name);
    return [name, String(value)] as const;
  });
  const text = new URLSearchParams({ ...Object.fromEntries(asked), ...more }).toString();
  return text === '' ? '' : `?${text}`;
}

function withBody(route: RouteFacts, { document, own, foreign }: Sides, place: readonly string[]): { body?: object } {
  const schema = bodyOf(operationOf(document, route));
  if (schema === undefined) return {};
  const target = place.at(-1);
  const valueFor = (field: string) => valueIn(field === target ? foreign : own, field);
  return { body: sample(document, schema, valueFor, place) as object };
}
