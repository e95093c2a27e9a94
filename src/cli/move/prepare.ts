/**
 * The target project: made with the settings, roles, passwords and databases of the source. Everything can be repeated,
 * and a repeat makes nothing twice.
 */
import { type ApiClient, ApiRefusal } from '../kit/client.ts';
import type {
  CreateProjectBranchDatabaseReply,
  CreateProjectBranchRoleReply,
  CreateProjectReply,
  Endpoint,
  GetProjectReply,
  ListProjectEndpointsReply,
  Operation,
  Project,
  ResetProjectBranchRolePasswordReply,
  UpdateProjectEndpointReply,
} from '../kit/generated.ts';
import { untilDone, waitFor } from '../kit/operations.ts';
import type { Session } from '../kit/session.ts';
import {
  branchPath,
  type MovePlace,
  passwordOf,
  projectPath,
  rolePath,
  untilQuiet,
  uriOf,
  verifiersOf,
} from './place.ts';
import type { MovePlan } from './plan.ts';
import type { StateFile } from './state.ts';

export interface Preparation {
  readonly session: Session;
  readonly client: ApiClient;
  readonly plan: MovePlan;
  readonly state: StateFile;
  readonly organization: string | undefined;
  readonly replicates: boolean;
}

export interface Prepared {
  readonly target: MovePlace;
  readonly notes: readonly string[];
}

export async function prepareTarget(preparation: Preparation): Promise<Prepared> {
  const { session, plan } = preparation;
  const target = await makeProject(preparation);
  await untilQuiet(target);
  await takeEndpointOver(target, plan.endpoint);
  const made = plan.roles.roles.filter(({ isOfApi }) => isOfApi);
  for (const { name, canLogin } of made) {
    const role = { name, no_login: !canLogin };
    await unlessThere(
      target.client.post<CreateProjectBranchRoleReply>(`${branchPath(target)}/roles`, { role }),
      target,
    );
  }
  await givePasswords(session, target, plan);
  for (const { name, owner } of plan.databases) {
    const database = { name, owner_name: owner };
    const path = `${branchPath(target)}/databases`;
    await unlessThere(target.client.post<CreateProjectBranchDatabaseReply>(path, { database }), target);
  }
  const [first] = plan.databases;
  if (first === undefined) return { target, notes: [] };
  const { parts } = session;
  await parts.move.makeRoles(await uriOf(target, first.name, first.owner), {
    ...plan.roles,
    verifiers: plan.verifiers,
  });
  const notes = [...(await noteOnNetwork(target, plan)), ...(await takeSettingsOver(session, target, plan))];
  return { target, notes };
}

async function makeProject(preparation: Preparation): Promise<MovePlace> {
  const { client, plan, state, organization } = preparation;
  const { to, id } = state.read();
  const { project: known, branch, endpoint } = to;
  if (known !== undefined && branch !== undefined && endpoint !== undefined) {
    return { client, project: known, branch, endpoint };
  }
  // On disk before the request: with the same key a repeat of it, after a kill, gets the project that was made.
  await state.change({});
  const { project, endpoint: source, databases } = plan;
  const body = {
    name: project.name,
    pg_version: project.pg_version,
    store_passwords: project.store_passwords,
    history_retention_seconds: project.history_retention_seconds,
    settings: settingsOf(preparation),
    default_endpoint_settings: project.default_endpoint_settings,
    autoscaling_limit_min_cu: source.autoscaling_limit_min_cu,
    autoscaling_limit_max_cu: source.autoscaling_limit_max_cu,
    org_id: organization,
    branch: { name: plan.branch.name, database_name: databases[0]?.name, role_name: databases[0]?.owner },
  };
  const made = await client.post<CreateProjectReply>('/projects', { project: body }, {}, `catnap-move-${id}`);
  const place = { project: made.project.id, branch: made.branch.id, endpoint: made.endpoints[0]?.id ?? '' };
  await state.change({ to: { ...to, ...place } });
  await untilDone(client, made.operations);
  return { client, ...place };
}

/** Logical replication may just have been turned on in the source; the way back needs it too. */
function settingsOf({ plan: { project }, replicates }: Preparation): object {
  const { allow_outbound_connections: isOutbound, ...others } = project.settings ?? {};
  return {
    ...others,
    ...(replicates && { enable_logical_replication: true }),
    // What is closed is closed there too, if that can be done there; where it cannot, asking for it is an error.
    ...(isOutbound === true && { allow_outbound_connections: true }),
  };
}

async function noteOnNetwork(target: MovePlace, { project }: MovePlan): Promise<readonly string[]> {
  const there = (await target.client.get<GetProjectReply>(projectPath(target))).project;
  const isOutbound = ({ settings }: Project) => settings?.allow_outbound_connections === true;
  if (isOutbound(project) || !isOutbound(there)) return [];
  return ['SQL in computes may open connections to the outside at the target, which cannot keep it from doing so'];
}

/** What a compute has beside its size. */
const endpointFields = [
  'suspend_timeout_seconds',
  'settings',
  'pooler_enabled',
  'passwordless_access',
  'name',
] as const;

async function takeEndpointOver(target: MovePlace, from: Endpoint): Promise<void> {
  const { endpoints } = await target.client.get<ListProjectEndpointsReply>(`${projectPath(target)}/endpoints`);
  const now = endpoints.find(({ id }) => id === target.endpoint);
  const differs = endpointFields.filter((field) => JSON.stringify(from[field]) !== JSON.stringify(now?.[field]));
  if (differs.length === 0) return;
  const endpoint = Object.fromEntries(differs.map((field) => [field, from[field]]));
  const path = `${projectPath(target)}/endpoints/${target.endpoint}`;
  const { operations } = await target.client.patch<UpdateProjectEndpointReply>(path, { endpoint });
  await untilDone(target.client, operations);
}

async function unlessThere(
  request: Promise<{ readonly operations: readonly Operation[] }>,
  { client }: MovePlace,
): Promise<void> {
  const made = await request.catch((error: unknown) => {
    if (error instanceof ApiRefusal && error.status === 409) return null;
    throw error;
  });
  if (made !== null) await untilDone(client, made.operations);
}

/** A reset logs the role out, so a password that is right already is left alone. */
export async function givePasswords(
  session: Session,
  target: MovePlace,
  plan: Pick<MovePlan, 'roles' | 'secrets'>,
): Promise<void> {
  const held = await verifiersOf(target);
  for (const { name, isOfApi } of plan.roles.roles) {
    const secret = plan.secrets.get(name);
    if (!isOfApi || secret === undefined) continue;
    if (held.get(name) === secret || (await passwordOf(target, name)) === secret) continue;
    const path = `${rolePath(target, name)}/reset_password`;
    const { operations } = await target.client.post<ResetProjectBranchRolePasswordReply>(path, { password: secret });
    await waitFor({ ...session, client: target.client }, operations);
  }
}

/** Those of a role are made as that role where its password is known, since no other one may. */
async function takeSettingsOver(session: Session, target: MovePlace, plan: MovePlan): Promise<readonly string[]> {
  const [first] = plan.databases;
  const nameNow = new Map(plan.databases.map(({ sourceName, name }) => [sourceName, name]));
  const notes: string[] = [];
  for (const setting of plan.roles.settings) {
    const database = setting.database === null ? null : nameNow.get(setting.database);
    if (first === undefined || database === undefined) continue;
    const owner = plan.databases.find(({ name }) => name === database)?.owner;
    const isOfApi = plan.roles.roles.some(({ name, isOfApi: is }) => is && name === setting.role);
    const login = isOfApi && setting.role !== null ? setting.role : (owner ?? first.owner);
    if ((await passwordOf(target, login)) === undefined) {
      notes.push(`the setting ${setting.text.split('=')[0]} of ${login} was left out: its password is not stored`);
      continue;
    }
    const uri = await uriOf(target, first.name, login);
    notes.push(...(await session.parts.move.makeSettings(uri, [{ ...setting, database }])));
  }
  return notes;
}
