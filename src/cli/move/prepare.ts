/**
 * The target project: made with the settings, roles, passwords and databases of the source. Everything can be repeated,
 * and a repeat makes nothing twice.
 */
import { type Place, projectPath, untilQuiet } from '../catalog/place.ts';
import { givePasswords, makeCatalog, projectLike } from '../catalog/roles.ts';
import type { ApiClient } from '../kit/client.ts';
import type {
  CreateProjectReply,
  Endpoint,
  GetProjectReply,
  ListProjectEndpointsReply,
  Project,
  UpdateProjectEndpointReply,
} from '../kit/generated.ts';
import { untilDone } from '../kit/operations.ts';
import type { Session } from '../kit/session.ts';
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
  readonly target: Place;
  readonly notes: readonly string[];
}

export async function prepareTarget(preparation: Preparation): Promise<Prepared> {
  const { session, plan } = preparation;
  const target = await makeProject(preparation);
  await untilQuiet(target);
  await takeEndpointOver(target, plan.endpoint);
  const notes = [...(await noteOnNetwork(target, plan)), ...(await makeCatalog(session, target, plan))];
  await givePasswords(target, plan);
  return { target, notes };
}

async function makeProject(preparation: Preparation): Promise<Place> {
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
    ...projectLike(project, plan.branch.name, databases),
    settings: settingsOf(preparation),
    autoscaling_limit_min_cu: source.autoscaling_limit_min_cu,
    autoscaling_limit_max_cu: source.autoscaling_limit_max_cu,
    org_id: organization,
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

async function noteOnNetwork(target: Place, { project }: MovePlan): Promise<readonly string[]> {
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

async function takeEndpointOver(target: Place, from: Endpoint): Promise<void> {
  const { endpoints } = await target.client.get<ListProjectEndpointsReply>(`${projectPath(target)}/endpoints`);
  const now = endpoints.find(({ id }) => id === target.endpoint);
  const differs = endpointFields.filter((field) => JSON.stringify(from[field]) !== JSON.stringify(now?.[field]));
  if (differs.length === 0) return;
  const endpoint = Object.fromEntries(differs.map((field) => [field, from[field]]));
  const path = `${projectPath(target)}/endpoints/${target.endpoint}`;
  const { operations } = await target.client.patch<UpdateProjectEndpointReply>(path, { endpoint });
  await untilDone(target.client, operations);
}
