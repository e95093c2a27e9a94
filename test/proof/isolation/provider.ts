/**
 * Every route of the embedded auth provider as every caller, with ids of the victim's project and users in every place.
 * No reply holds anything of the victim's, and every row of the victim's is afterwards as it was.
 */
import { makeAuthProvider, type ProviderReply, type TestAuthProvider } from '../../helpers/auth-provider.ts';
import {
  makeSide,
  type ProviderCaller,
  type ProviderSide,
  providerCallers,
  providerMark,
  userMark,
} from './provider-callers.ts';
import { type PartReport, progressOf } from './report.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
const methods: readonly string[] = ['GET', 'POST', 'PATCH', 'DELETE'];

interface ProviderAttempt {
  readonly method: Method;
  /** As the application has it. */
  readonly template: string;
  readonly url: string;
  readonly body?: object;
}

export interface ProviderOptions {
  readonly choose?: (attempts: readonly ProviderAttempt[], caller: ProviderCaller) => readonly ProviderAttempt[];
}

export async function sweepProvider({ choose = (all) => all }: ProviderOptions = {}): Promise<PartReport> {
  const provider = await makeAuthProvider();
  try {
    const victim = await makeSide(provider, providerMark, userMark);
    const found = { leaks: [] as string[], changes: [] as string[] };
    const counts: [string, number, number][] = [];
    const say = progressOf('provider');
    const callers = await providerCallers(provider, victim);
    const all = attemptsOn(provider, victim);
    let before = await rowsOf(provider, victim);
    for (const caller of callers) {
      const attempts = choose(all, caller);
      let refused = 0;
      for (const [at, attempt] of attempts.entries()) {
        const reply = await provider.call(attempt.method, attempt.url, caller.headers, attempt.body);
        if (reply.status >= 400) refused++;
        judge(victim, caller, attempt, reply, found);
        say(at, attempts.length);
      }
      const after = await rowsOf(provider, victim);
      const changed = [...after].filter(([name, digest]) => before.get(name) !== digest).map(([name]) => name);
      if (changed.length > 0) found.changes.push(`${caller.name} changed ${changed.join(', ')}`);
      before = after;
      counts.push([caller.name, attempts.length, refused]);
    }
    return {
      part: 'provider',
      attempts: counts.reduce((sum, [, count]) => sum + count, 0),
      ...found,
      tables: [{ title: 'Requests to the auth provider', columns: ['caller', 'requests', 'refused'], rows: counts }],
    };
  } finally {
    await provider.close();
  }
}

/** What ends the caller's own project, user or session comes last. */
function attemptsOn({ app }: TestAuthProvider, victim: ProviderSide): ProviderAttempt[] {
  const routes = app.routeTable.filter(({ url, method }) => url.startsWith('/stack/api/') && methods.includes(method));
  const attempts = routes.flatMap(({ url: template, method }): ProviderAttempt[] => {
    const path = fill(template, victim);
    const made = { method: method as Method, template };
    // The alias leads to the same handlers.
    if (template.startsWith('/stack/api/latest/')) return [{ ...made, url: path }];
    if (method === 'GET' || method === 'DELETE') {
      return ['', ...queries(victim)].map((query) => ({ ...made, url: `${path}${query}` }));
    }
    return bodies(victim).map((body) => ({ ...made, url: path, ...(body && { body }) }));
  });
  const isLast = ({ method, template }: ProviderAttempt) =>
    method === 'DELETE' && /(current|me)$/.test(template) ? 1 : 0;
  return attempts.sort((one, other) => isLast(one) - isLast(other));
}

function fill(template: string, { user, project, keySetId, domain }: ProviderSide): string {
  const values: Readonly<Record<string, string>> = {
    id: template.includes('api-keys') ? keySetId : user.user_id,
    user_id: user.user_id,
    project_id: project.id,
    domain,
  };
  return template.replace(/:(\w+)/g, (_all, name: string) => encodeURIComponent(values[name] ?? 'google'));
}

function queries({ user, project, email }: ProviderSide): string[] {
  const asked = [
    { user_id: user.user_id },
    { project_id: project.id },
    { query: userMark },
    { email, include_restricted: 'true' },
  ];
  return asked.map((values) => `?${new URLSearchParams(values as Record<string, string>)}`);
}

function bodies({ user, project, email, domain, keySetId }: ProviderSide): (object | undefined)[] {
  return [
    undefined,
    {},
    { user_id: user.user_id },
    { project_id: project.id },
    { id: keySetId },
    { domain },
    { email, password: 'guessed horse battery' },
    { email, callback_url: domain },
    { user_id: user.user_id, value: email, type: 'email', used_for_auth: true },
    { code: user.user_id },
    { grant_type: 'refresh_token', client_id: project.id, refresh_token: user.user_id },
    { revoked: true },
  ];
}

/** These need no key: key sets are public, and the OAuth endpoints take their client as parameters. */
const isOpen = (template: string) => /well-known|\/auth\/oauth\//.test(template);
/** Removing a domain that is not there succeeds, and an OAuth provider has the same name in every project. */
const isOfEverybody = (template: string) => /domains\/:domain|oauth-providers\/:(id|provider)/.test(template);

function judge(
  victim: ProviderSide,
  caller: ProviderCaller,
  attempt: ProviderAttempt,
  reply: ProviderReply,
  { leaks, changes }: { readonly leaks: string[]; readonly changes: string[] },
): void {
  const { method, template, url, body } = attempt;
  const sent = `${decodeURIComponent(url)}${JSON.stringify(body ?? {})}`;
  const what = `${caller.name}: ${method} ${url} ${JSON.stringify(body ?? {})} -> ${reply.status}`;
  const text = JSON.stringify([reply.headers, reply.body]);
  const seen = secretsOf(victim, caller).filter((secret) => text.includes(secret) && !sent.includes(secret));
  if (seen.length > 0) leaks.push(`${what} with ${seen.join(', ')}`);
  if (!isRefused(caller, template, reply.status)) changes.push(what);
}

function isRefused({ standing }: ProviderCaller, template: string, status: number): boolean {
  if (status >= 500) return false;
  if (isOpen(template)) return true;
  if (standing === 'nobody') return status >= 400;
  const namesSomething = /:(id|user_id|project_id)\b/.test(template) && !isOfEverybody(template);
  return !namesSomething || status >= 400;
}

/** The publishable key is known to everybody, and with it the project's name, domains and id. */
function secretsOf({ project, user, email, keySetId }: ProviderSide, { standing }: ProviderCaller): string[] {
  const always = [userMark, user.user_id, user.access_token, user.refresh_token, keySetId];
  const keys = [project.adminKey, project.secretKey];
  const ofProject = standing === 'public' ? [] : [providerMark, project.publishableKey];
  return [...always, ...keys, ...ofProject, ...(standing === 'elsewhere' ? [] : [email])];
}

/** Digests of what names the victim's project or user. Anybody may have a code to reset a password mailed to a user. */
async function rowsOf({ core }: TestAuthProvider, { project, user }: ProviderSide): Promise<Map<string, string>> {
  const { sql } = core.database;
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables
    where schemaname = current_schema() and tablename like 'stack_%'
      and tablename not in ('stack_codes', 'stack_mails') order by 1`;
  const digestOf = (name: string) => `
    select '${name}' as name, md5(coalesce(string_agg(t::text, '' order by t::text), '')) as digest from "${name}" t
    where t::text like '%${project.id}%' or t::text like '%${user.user_id}%'`;
  const rows = await sql.unsafe<{ name: string; digest: string }[]>(
    tables.map(({ name }) => digestOf(name)).join(' union all '),
  );
  return new Map(rows.map(({ name, digest }) => [name, digest]));
}
