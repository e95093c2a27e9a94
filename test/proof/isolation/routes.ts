/**
 * Every route as every caller, with what belongs to somebody else in every place. The reply holds nothing of the
 * victim's, and afterwards every row of the database, and everything at the auth provider, is as it was.
 */
import type { LightMyRequestResponse } from 'fastify';
import type { RouteFacts } from '../../../src/api/plugins/route-table.ts';
import { callersOf, type SweepCaller } from './callers.ts';
import type { Document } from './openapi.ts';
import { type PartReport, progressOf } from './report.ts';
import { type Attempt, attemptsOn, namesIn } from './route-attempts.ts';
import { personMark, projectMark, type Stage } from './stage.ts';

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface SweepOptions {
  /** A part of them, for a short run; all of them unless it is given. */
  readonly choose?: (attempts: readonly Attempt[], caller: SweepCaller) => readonly Attempt[];
}

interface Findings {
  readonly leaks: string[];
  readonly changes: string[];
}

export async function sweepRoutes(stage: Stage, { choose = (all) => all }: SweepOptions = {}): Promise<PartReport> {
  const { api } = stage.elsewhere;
  const document: Document = (await api.app.inject('/api/v2/openapi.json')).json();
  const routes = api.app.routeTable.filter((route) => !route.isPublic && !isStream(route));
  const cursors = await victimsCursors(stage, routes);
  const found: Findings = { leaks: [], changes: [] };
  const counts: [string, number, number][] = [];
  const say = progressOf('routes');
  let before = await world(stage);
  for (const caller of callersOf(stage)) {
    const sides = { document, own: caller.own, foreign: stage.victim, cursors, search: 'zq7' };
    const removed = { ...stage.victim, values: { ...stage.victim.values, ...stage.deleted } };
    const attempts = choose(
      routes.flatMap((route) => [
        ...attemptsOn(route, sides),
        ...(/(recover|purge)$/.test(route.url) ? attemptsOn(route, { ...sides, foreign: removed }) : []),
      ]),
      caller,
    );
    const statuses = new Map<number, number>();
    for (const [at, attempt] of attempts.entries()) {
      const reply = await send(stage, caller.headers, attempt);
      judge(stage, caller, attempt, reply, found);
      statuses.set(reply.statusCode, (statuses.get(reply.statusCode) ?? 0) + 1);
      say(at, attempts.length);
    }
    const after = await world(stage);
    const changed = [...after].filter(([name, digest]) => before.get(name) !== digest).map(([name]) => name);
    if (changed.length > 0) found.changes.push(`${caller.name} changed ${changed.join(', ')}`);
    before = after;
    counts.push([caller.name, attempts.length, statuses.get(404) ?? 0]);
  }
  return {
    part: 'routes',
    attempts: counts.reduce((sum, [, count]) => sum + count, 0),
    ...found,
    tables: [
      {
        title: `Requests by caller, on ${routes.length} routes`,
        columns: ['caller', 'requests', 'not found'],
        rows: counts,
      },
    ],
  };
}

/** It does not end by itself. */
export const isStream = ({ url }: RouteFacts) => url.endsWith('/events');

export function send(
  stage: Stage,
  headers: SweepCaller['headers'],
  { route, url, body }: Attempt,
): Promise<LightMyRequestResponse> {
  return stage.elsewhere.api.app.inject({
    method: route.method as Method,
    url,
    headers,
    ...(body === undefined ? {} : { payload: body }),
  });
}

function judge(
  stage: Stage,
  caller: SweepCaller,
  attempt: Attempt,
  reply: LightMyRequestResponse,
  { leaks, changes }: Findings,
): void {
  const what = `${caller.name}: ${attempt.route.method} ${attempt.url} (${attempt.place} ${attempt.foreign})`;
  const seen = leaked(stage, caller, attempt, reply);
  if (seen.length > 0) leaks.push(`${what} -> ${reply.statusCode} with ${seen.join(', ')}`);
  if (!isRefused(caller, attempt, reply.statusCode)) changes.push(`${what} -> ${reply.statusCode} ${reply.body}`);
}

function isRefused(
  { standing, isLimited = false }: SweepCaller,
  { route, place, foreign }: Attempt,
  status: number,
): boolean {
  if (status >= 500 && status !== 501) return false;
  if (standing === 'nobody') return status === 401;
  if (isLimited && status === 403) return true;
  switch (place) {
    case 'path':
      // What is not offered looks at whose project, branch or organization it is, and at nothing behind that.
      if (status === 501) return route.notOffered !== undefined && !/project_id|branch_id|org_id/.test(foreign);
      return status === 404 || (status === 403 && /org_id|key_id|member_id/.test(foreign));
    case 'body':
      return status >= 400;
    default:
      return true;
  }
}

/** Marks, secrets and ids of the victim in the reply that the request itself did not hold. */
function leaked(stage: Stage, { standing }: SweepCaller, attempt: Attempt, reply: LightMyRequestResponse): string[] {
  const { values, secrets } = stage.victim;
  const ofOrganization = ['org_id', 'source_org_id', 'member_id', 'key_id', ...namesOfNobody];
  const ids = Object.entries({ ...values, ...prefixed(stage.deleted) })
    .filter(([name, value]) => !ofOrganization.includes(name) && value.length > 6)
    .map(([, value]) => value);
  const own = standing === 'sibling' ? [] : [personMark, values.org_id ?? '', values.member_id ?? ''];
  const sent = decodeURIComponent(attempt.url) + JSON.stringify(attempt.body ?? {});
  const text = `${JSON.stringify(reply.headers)}${reply.body}`.toLowerCase();
  return [projectMark, ...own, ...ids, ...secrets].filter(
    (secret) => secret !== '' && text.includes(secret.toLowerCase()) && !sent.includes(secret),
  );
}

const namesOfNobody = ['auth_provider', 'oauth_provider_id'];
const prefixed = (values: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`deleted ${name}`, value]));

/** Where the victim's own lists go on. */
async function victimsCursors(stage: Stage, routes: readonly RouteFacts[]): Promise<Record<string, string>> {
  const { api } = stage.elsewhere;
  const found: Record<string, string> = {};
  for (const route of routes.filter(({ method, notOffered }) => method === 'GET' && notOffered === undefined)) {
    const path = route.url.replace(/:(\w+)/g, (_all, name: string) => stage.victim.values[name] ?? '');
    const reply = await api.app.inject({
      url: `${path}?limit=1`,
      headers: { authorization: `Bearer ${stage.tokens.victim}` },
    });
    if (reply.statusCode !== 200) continue;
    const { pagination = {} } = reply.json();
    const cursor = pagination.cursor ?? pagination.next;
    if (typeof cursor === 'string' && cursor !== '') found[route.url] = cursor;
  }
  return found;
}

/** How many routes show the victim a mark: what the sweep looks for can be seen where it may be. */
export async function routesThatShow(stage: Stage): Promise<number> {
  const { api } = stage.elsewhere;
  const routes = api.app.routeTable.filter(
    (route) => route.method === 'GET' && !route.isPublic && !isStream(route) && route.notOffered === undefined,
  );
  let shown = 0;
  for (const route of routes) {
    if (namesIn(route).some((name) => stage.victim.values[name] === undefined)) continue;
    const url = route.url.replace(/:(\w+)/g, (_all, name: string) =>
      encodeURIComponent(stage.victim.values[name] ?? ''),
    );
    const reply = await api.app.inject({ url, headers: { authorization: `Bearer ${stage.tokens.victim}` } });
    if (reply.body.includes(projectMark) || reply.body.includes(personMark)) shown += 1;
  }
  return shown;
}

/** A digest of each table, and of the auth provider elsewhere. */
export async function world({ elsewhere }: Stage): Promise<Map<string, string>> {
  const { sql } = elsewhere.api.core.database;
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = current_schema() order by 1`;
  const digestOf = (name: string) =>
    `select '${name}' as name, md5(coalesce(string_agg(t::text, '' order by t::text), '')) as digest from "${name}" t`;
  const all = tables.map(({ name }) => digestOf(name)).join(' union all ');
  const rows = await sql.unsafe<{ name: string; digest: string }[]>(all);
  const digests = rows.map(({ name, digest }) => [name, digest] as const);
  const provided = [...elsewhere.standIn.projects.values()].map(({ users, domains, oauth, ...rest }) => [
    rest,
    [...users],
    [...domains],
    [...oauth],
  ]);
  return new Map([...digests, ['the auth provider', JSON.stringify(provided)]]);
}
