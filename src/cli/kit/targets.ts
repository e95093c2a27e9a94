/**
 * What a command is about: a project, a branch, a compute, by id or by name. What the command line leaves out comes
 * from the folder's link; without one, the only project and its default branch are meant.
 */
import { CliFailure, usageExitCode } from './failure.ts';
import type {
  Branch,
  Endpoint,
  GetConnectionURIReply,
  GetProjectEndpointReply,
  GetProjectReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchesReply,
  ListProjectBranchRolesReply,
  ListProjectEndpointsReply,
} from './generated.ts';
import { detachedName } from './link.ts';
import type { Session } from './session.ts';

/** What is needed to find things. */
export type Reach = Pick<Session, 'client' | 'link'>;

/** Options that say where. */
export interface InProject {
  readonly project?: string | undefined;
  /** What neonctl calls it. */
  readonly projectId?: string | undefined;
}

export interface OnBranch extends InProject {
  readonly branch?: string | undefined;
}

export interface AsRole extends OnBranch {
  readonly database?: string | undefined;
  readonly databaseName?: string | undefined;
  readonly role?: string | undefined;
  readonly roleName?: string | undefined;
  readonly pooled?: boolean;
}

export interface ProjectTarget {
  readonly id: string;
  /** Of the API. */
  readonly path: string;
}

export interface BranchTarget {
  readonly project: ProjectTarget;
  readonly branch: Branch;
  readonly path: string;
}

export async function findProject(session: Reach, options: InProject): Promise<ProjectTarget> {
  const given = options.project ?? options.projectId ?? session.link?.project;
  return targetOf(given === undefined ? await onlyProject(session) : await projectId(session, given));
}

const targetOf = (id: string): ProjectTarget => ({ id, path: `/projects/${encodeURIComponent(id)}` });

async function onlyProject({ client }: Reach): Promise<string> {
  const [only, ...others] = await client.listProjects();
  if (only !== undefined && others.length === 0) return only.id;
  const problem = only === undefined ? 'there is no project' : 'there are several projects';
  const advice = only === undefined ? 'make one with `catnap projects create`' : 'pass --project, or use `catnap link`';
  throw new CliFailure(`${problem}: ${advice}`, usageExitCode);
}

const mayBeId = /^[a-z0-9-]{1,60}$/;

/**
 * An id is taken at its word when the key may read that project: a key of one project lists nothing. A name that can be
 * no id, such as one with a space, would be refused in the place of one.
 */
async function projectId(session: Reach, given: string): Promise<string> {
  const byId = mayBeId.test(given) ? await session.client.find<GetProjectReply>(targetOf(given).path) : null;
  if (byId !== null) return byId.project.id;
  const named = (await session.client.listProjects()).filter(({ name }) => name === given);
  return single('project', given, named).id;
}

export async function findBranch(session: Reach, options: OnBranch): Promise<BranchTarget> {
  const project = await findProject(session, options);
  if (options.branch !== undefined || !isLinkedProject(session, project)) {
    return branchOf(session, project, options.branch);
  }
  return branchOf(session, project, linkedBranch(session));
}

/** Undefined for the default branch. */
export function linkedBranch({ link }: Pick<Reach, 'link'>): string | undefined {
  if (link?.followsGit !== true || link.branch !== detachedName) return link?.branch;
  throw new CliFailure('no git branch is checked out, and the link follows git: say which branch, or check one out');
}

/** Undefined for the default branch. */
export async function branchOf(session: Reach, project: ProjectTarget, given?: string): Promise<BranchTarget> {
  const query = given === undefined ? {} : { search: given };
  const { branches } = await session.client.get<ListProjectBranchesReply>(`${project.path}/branches`, query);
  const byId = branches.find(({ id, ...branch }) => (given === undefined ? branch.default : id === given));
  const branch = byId ?? single('branch', given ?? '(default)', named(branches, given));
  return { project, branch, path: `${project.path}/branches/${branch.id}` };
}

const named = <Thing extends { readonly name?: string }>(things: readonly Thing[], given: string | undefined) =>
  things.filter(({ name }) => name === given);

function isLinkedProject({ link }: Reach, project: ProjectTarget): boolean {
  return link !== null && link.project === project.id;
}

/**
 * By id or by name; `undefined`, or a branch, is the compute that takes writes there. An id is looked for in all
 * projects where none is named.
 */
export async function findCompute(session: Reach, given: string | undefined, options: OnBranch): Promise<Endpoint> {
  if (given?.startsWith('ep-') && options.project === undefined && options.projectId === undefined) {
    return findAnywhere(session, given);
  }
  const project = await findProject(session, options);
  const { endpoints } = await session.client.get<ListProjectEndpointsReply>(`${project.path}/endpoints`);
  const exact = endpoints.find(({ id }) => id === given);
  if (exact !== undefined) return exact;
  const byName = given === undefined ? [] : named(endpoints, given);
  if (byName.length > 0) return single('compute', given ?? '', byName);
  if (given?.startsWith('ep-')) throw new CliFailure(`there is no compute ${given} in project ${project.id}`);
  const { branch } = await findBranch(session, { ...options, branch: given ?? options.branch });
  return writerOf(branch, endpoints);
}

async function findAnywhere({ client }: Reach, id: string): Promise<Endpoint> {
  const projects = await client.listProjects();
  for (const project of projects) {
    const path = `${targetOf(project.id).path}/endpoints/${encodeURIComponent(id)}`;
    const found = await client.find<GetProjectEndpointReply>(path);
    if (found !== null) return found.endpoint;
  }
  throw new CliFailure(`there is no compute ${id} in the ${projects.length} projects that the key reaches`);
}

export function writerOf(branch: Branch, endpoints: readonly Endpoint[]): Endpoint {
  const found = endpoints.find(({ branch_id: of, type }) => of === branch.id && type === 'read_write');
  if (found !== undefined) return found;
  throw new CliFailure(`branch ${branch.name} has no compute: make one with \`catnap computes create\``);
}

/** A connection string of a compute, for the role that owns the database unless another one is asked for. */
export async function connectionOf(session: Reach, endpoint: Endpoint, options: AsRole): Promise<string> {
  const { client, link } = session;
  const project = targetOf(endpoint.project_id);
  const linked = isLinkedProject(session, project) ? link : null;
  const wanted = options.database ?? options.databaseName ?? linked?.database;
  const branch = `${project.path}/branches/${endpoint.branch_id}`;
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${branch}/databases`);
  const database = wanted === undefined ? databases[0] : databases.find(({ name }) => name === wanted);
  if (database === undefined) throw new CliFailure(missing('database', wanted, databases));
  const { roles } = await client.get<ListProjectBranchRolesReply>(`${branch}/roles`);
  const roleName = options.role ?? options.roleName ?? linked?.role ?? database.owner_name;
  const role = roles.find(({ name }) => name === roleName);
  if (role === undefined) throw new CliFailure(missing('role', roleName, roles));
  const { uri } = await client.get<GetConnectionURIReply>(`${project.path}/connection_uri`, {
    branch_id: endpoint.branch_id,
    endpoint_id: endpoint.id,
    database_name: database.name,
    role_name: role.name,
    ...(options.pooled && { pooled: 'true' }),
  });
  return uri;
}

function missing(noun: string, asked: string | undefined, present: readonly { readonly name: string }[]): string {
  if (present.length === 0) return `the branch has no ${noun}`;
  return `there is no ${noun} ${asked ?? ''}; there is: ${present.map(({ name }) => name).join(', ')}`;
}

export function single<Thing extends { readonly id: string }>(
  noun: string,
  given: string,
  found: readonly Thing[],
): Thing {
  const [only, ...others] = found;
  if (only === undefined) throw new CliFailure(`there is no ${noun} ${given}`);
  if (others.length === 0) return only;
  throw new CliFailure(
    `several ${noun}s are named ${given}: use one of the ids ${found.map(({ id }) => id).join(', ')}`,
  );
}
