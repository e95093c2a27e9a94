/**
 * Keys of limited scope, on what belongs to their own person: every route, with what is there in every place. Keys that
 * may not change the default branch change nothing, and no reply has a secret that the scope does not allow.
 */
import type { RouteFacts } from '../../../src/api/plugins/route-table.ts';
import type { Document } from './openapi.ts';
import { type PartReport, progressOf } from './report.ts';
import { type Attempt, attemptsOn } from './route-attempts.ts';
import { isStream, send, world } from './routes.ts';
import type { Stage } from './stage.ts';

export interface ScopeSweepOptions {
  /** A part of them, for a short run; all of them unless it is given. */
  readonly choose?: (attempts: readonly Attempt[]) => readonly Attempt[];
}

/** A key that may make branches does so here; that is not what is looked for. */
const making = ['createProjectBranch'];
/** Gives out connection strings, to keys that may have them. */
const connecting = ['getConnectionURI', 'getProjectBranchRolePassword', 'revealProjectBranchRolePassword'];

export async function sweepScopes(stage: Stage, { choose = (all) => all }: ScopeSweepOptions = {}) {
  const { api } = stage.elsewhere;
  const document: Document = (await api.app.inject('/api/v2/openapi.json')).json();
  const routes = api.app.routeTable.filter((route) => !route.isPublic && !isStream(route) && !isMaking(route));
  const leaks: string[] = [];
  const changes: string[] = [];
  const counts: [string, number, number][] = [];
  const say = progressOf('scopes');
  let before = await world(stage);
  for (const [scope, token] of Object.entries(stage.limited)) {
    const sides = { document, own: stage.victim, foreign: stage.sibling, cursors: {}, search: 'zq7' };
    const attempts = choose(routes.flatMap((route) => attemptsOn(route, sides)));
    let refused = 0;
    for (const [at, attempt] of attempts.entries()) {
      const reply = await send(stage, { authorization: `Bearer ${token}` }, attempt);
      const what = `${scope}: ${attempt.route.method} ${attempt.url} -> ${reply.statusCode}`;
      const mayConnect = scope === 'sql' && connecting.includes(attempt.route.operationId ?? '');
      const secrets = mayConnect ? [] : [...stage.victim.secrets, ...stage.sibling.secrets];
      if (secrets.some((secret) => reply.body.includes(secret))) leaks.push(`${what} with a secret`);
      if (reply.statusCode >= 500) changes.push(what);
      if (reply.statusCode === 403) refused += 1;
      say(at, attempts.length);
    }
    const after = await world(stage);
    const changed = [...after].filter(([name, digest]) => before.get(name) !== digest).map(([name]) => name);
    if (changed.length > 0) changes.push(`a key of scope ${scope} changed ${changed.join(', ')}`);
    before = after;
    counts.push([scope, attempts.length, refused]);
  }
  const report: PartReport = {
    part: 'scopes',
    attempts: counts.reduce((sum, [, count]) => sum + count, 0),
    leaks,
    changes,
    tables: [{ title: 'Requests by scope of the key', columns: ['scope', 'requests', 'forbidden'], rows: counts }],
  };
  return report;
}

const isMaking = ({ operationId }: RouteFacts) => making.includes(operationId ?? '');
