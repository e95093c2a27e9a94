/**
 * Two people who have nothing to do with each other, on one API: the victim, everything of whose carries a mark in its
 * name, and the attacker, who has one of each too. Beside them a second project of the victim's organization, whose key
 * must not reach the first.
 */
import { drain } from '../../helpers/drain.ts';
import { makeProviderElsewhere, type ProviderElsewhere } from '../../helpers/provider-elsewhere.ts';
import { insertDelivery } from '../../helpers/webhooks.ts';

/** In the name of whatever belongs to the victim's project; no reply to somebody else holds it. */
export const projectMark = 'zq7project';
/** In what belongs to the victim or to the victim's organization, which a key of another project there may see. */
export const personMark = 'zq7person';

const limitedScopes = ['read_only', 'branches', 'sql'];

export type Values = Readonly<Record<string, string>>;

/** Values of path parameters, and of fields of bodies and queries that name something. */
export interface Holdings {
  readonly values: Values;
  /** Nothing that was not sent by the caller may come back. */
  readonly secrets: readonly string[];
}

export interface Stage {
  readonly elsewhere: ProviderElsewhere;
  readonly victim: Holdings;
  /** The victim's deleted project and branch, which can be recovered. */
  readonly deleted: Values;
  readonly attacker: Holdings;
  /** The other project of the victim's organization. */
  readonly sibling: Holdings;
  readonly tokens: Tokens;
  /** Keys of the victim's own, by scope. */
  readonly limited: Values;
  close(): Promise<void>;
}

export interface Tokens {
  readonly victim: string;
  readonly victimRevoked: string;
  readonly victimExpired: string;
  readonly victimSession: string;
  readonly attacker: string;
  readonly attackerOrganization: string;
  readonly attackerProject: string;
  /** By scope. */
  readonly attackerLimited: Values;
  readonly attackerSession: string;
  readonly attackerEndedSession: string;
  readonly siblingProject: string;
  readonly victimRolePassword: string;
  readonly authAdminKey: string;
}

type Caller = Awaited<ReturnType<typeof callerWith>>;

export async function makeStage(): Promise<Stage> {
  const elsewhere = await makeProviderElsewhere();
  const { api, standIn, driver } = elsewhere;
  const { sql } = api.core.database;
  const victim = await callerWith(elsewhere, api.token);
  const attacker = await callerWith(elsewhere, api.strangerToken);
  await sql`update organizations set name = ${`${personMark} organization`} where id = ${victim.orgId}`;
  await sql`update users set name = ${personMark}, last_name = ${personMark}, email = ${`${personMark}@example.com`}
    where id = ${victim.userId}`;

  const revoked = await victim.post('/api_keys', { key_name: `${personMark} revoked` });
  await victim.remove(`/api_keys/${revoked.id}`);
  const held = await furnish(elsewhere, victim, projectMark);
  const own = await furnish(elsewhere, attacker, 'attacker');
  const sibling = await furnish(elsewhere, victim, 'sibling');
  const deleted = await makeDeleted(victim, held.values.project_id ?? '');
  await drain(api.core, driver);

  const keyOf = async (caller: Caller, body: object) =>
    (await caller.post(`/organizations/${caller.orgId}/api_keys`, body)).key as string;
  const limitedOf = async (caller: Caller): Promise<Values> => {
    const made = limitedScopes.map(async (scope) => [
      scope,
      (await caller.post('/api_keys', { key_name: scope, scope })).key,
    ]);
    return Object.fromEntries(await Promise.all(made));
  };
  const expired = await victim.post('/api_keys', { key_name: `${personMark} expired` });
  await sql`update api_keys set expires_at = now() - interval '1 second' where id = ${expired.id}`;
  const ended = await attacker.post('/api_keys', { key_name: 'ended' });
  const attackerEndedSession = await signIn(elsewhere, ended.key);
  await attacker.remove(`/api_keys/${ended.id}`);
  return {
    elsewhere,
    victim: held,
    deleted,
    attacker: own,
    sibling,
    tokens: {
      victim: api.token,
      victimRevoked: revoked.key,
      victimExpired: expired.key,
      victimSession: await signIn(elsewhere, api.token),
      attacker: api.strangerToken,
      attackerOrganization: await keyOf(attacker, { key_name: 'organization' }),
      attackerProject: await keyOf(attacker, { key_name: 'project', project_id: own.values.project_id }),
      attackerLimited: await limitedOf(attacker),
      attackerSession: await signIn(elsewhere, api.strangerToken),
      attackerEndedSession,
      siblingProject: await keyOf(victim, { key_name: 'sibling', project_id: sibling.values.project_id }),
      victimRolePassword: held.secrets[0] ?? '',
      authAdminKey: [...standIn.projects.values()][0]?.adminKey ?? '',
    },
    limited: await limitedOf(victim),
    close: elsewhere.close,
  };
}

async function callerWith({ api }: ProviderElsewhere, token: string) {
  const get = async (path: string) => (await api.call('GET', `/api/v2${path}`, { token })).json();
  const post = async (path: string, body: object = {}) => {
    const reply = await api.call('POST', `/api/v2${path}`, { token, body });
    if (reply.statusCode >= 300) throw new Error(`POST ${path} -> ${reply.statusCode}: ${reply.body}`);
    return reply.json();
  };
  const orgId: string = (await get('/users/me/organizations')).organizations[0].id;
  const userId: string = (await get('/users/me')).id;
  const remove = async (path: string) => {
    const reply = await api.call('DELETE', `/api/v2${path}`, { token });
    if (reply.statusCode >= 300) throw new Error(`DELETE ${path} -> ${reply.statusCode}: ${reply.body}`);
  };
  return { token, post, remove, orgId, userId };
}

/** One of each: a project with everything that a path, a query or a body can name. */
async function furnish(elsewhere: ProviderElsewhere, caller: Caller, mark: string): Promise<Holdings> {
  const { api, standIn, driver } = elsewhere;
  const { post } = caller;
  const keyMark = mark === projectMark ? personMark : mark;
  const made = await post('/projects', {
    project: { name: `${mark} project` },
  });
  const project = `/projects/${made.project.id}`;
  const branch = `${project}/branches/${made.branch.id}`;
  const child = await post(`${project}/branches`, { branch: { name: `${mark}-child` }, endpoints: [] });
  const role = await post(`${branch}/roles`, { role: { name: `${mark}_role` } });
  await post(`${branch}/databases`, { database: { name: `${mark}_db`, owner_name: `${mark}_role` } });
  await drain(api.core, driver);
  const taken = await post(`${branch}/snapshot?name=${mark}-snapshot`);
  const saved = await post(`${project}/saved_queries`, { saved_query: { name: `${mark} query`, query: `-- ${mark}` } });
  const hook = { url: `https://${mark}.example.com/hook`, events: ['operation.ended'] };
  const hooked = await post(`${project}/webhooks`, { webhook: hook });
  const deliveryId = await insertDelivery(api, hooked.webhook.id, `{"mark":"${mark}"}`);
  const keySet = await post(`${project}/jwks`, {
    jwks_url: `https://${mark}.example.com/jwks.json`,
    provider_name: `${mark} provider`,
    skip_role_creation: true,
  });
  const key = await post(`/organizations/${caller.orgId}/api_keys`, { key_name: `${keyMark} key` });
  const integration = await post('/projects/auth/create', {
    project_id: made.project.id,
    branch_id: made.branch.id,
    auth_provider: 'stack',
  });
  const provided = standIn.projects.get(integration.auth_provider_project_id);
  if (provided === undefined) throw new Error('the auth provider has no such project');
  const user = standIn.addUser(provided, `${mark}@example.com`);
  provided.domains.add(`https://${mark}.example.com`);
  await drain(api.core, driver);
  const password: string = role.role.password;
  return {
    values: {
      project_id: made.project.id,
      branch_id: made.branch.id,
      child_id: child.branch.id,
      endpoint_id: made.endpoints[0].id,
      operation_id: made.operations[0].id,
      database_name: `${mark}_db`,
      role_name: `${mark}_role`,
      snapshot_id: taken.snapshot.id,
      saved_query_id: saved.saved_query.id,
      session_id: '1.1',
      webhook_id: hooked.webhook.id,
      delivery_id: deliveryId,
      jwks_id: keySet.jwks.id,
      org_id: caller.orgId,
      source_org_id: caller.orgId,
      member_id: caller.userId,
      key_id: String(key.id),
      auth_provider: 'stack',
      auth_user_id: String(user.id),
      oauth_provider_id: 'google',
    },
    secrets: [password, key.key, hooked.secret, provided.adminKey].filter((secret) => secret !== undefined),
  };
}

async function makeDeleted(victim: Caller, projectId: string): Promise<Values> {
  const made = await victim.post('/projects', { project: { name: `${projectMark} deleted` } });
  const child = await victim.post(`/projects/${projectId}/branches`, { branch: { name: `${projectMark}-deleted` } });
  for (const path of [`/projects/${made.project.id}`, `/projects/${projectId}/branches/${child.branch.id}`]) {
    await victim.remove(path);
  }
  return { project_id: made.project.id, branch_id: child.branch.id };
}

/** The cookie's value. */
async function signIn({ api }: ProviderElsewhere, key: string): Promise<string> {
  const reply = await api.app.inject({
    method: 'POST',
    url: '/console/session',
    headers: { 'x-catnap-console': '1' },
    payload: { api_key: key },
  });
  const cookie = /^([^=]+=[^;]+)/.exec(String(reply.headers['set-cookie']))?.[1];
  if (cookie === undefined) throw new Error(`no sign-in: ${reply.statusCode} ${reply.body}`);
  return cookie;
}
