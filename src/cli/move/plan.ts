/** What a move would take along, what stays behind, and what stands against it. Nothing is changed. */
import { databasesOf, type Place, passwordOf, projectPath, uriOf } from '../catalog/place.ts';
import { type Catalog, type CopiedDatabase, readRoles, readSecrets } from '../catalog/roles.ts';
import type { MoveFacts } from '../kit/copy-parts.ts';
import type {
  Branch,
  Endpoint,
  GetAuthDetailsReply,
  GetProjectReply,
  ListProjectBranchesReply,
  ListProjectEndpointsReply,
  Project,
} from '../kit/generated.ts';
import type { Session } from '../kit/session.ts';
import { writerOf } from '../kit/targets.ts';
import type { MoveState } from './state.ts';

export interface MoveOptions {
  readonly method: 'replication' | 'copy';
  readonly largeObjects: boolean;
  readonly enableReplication?: boolean;
}

/** Its name in the source is another one once it is closed. */
export interface PlannedDatabase extends MoveFacts, CopiedDatabase {}

export interface MovePlan extends Catalog {
  readonly source: Place;
  readonly project: Project;
  readonly branch: Branch;
  readonly endpoint: Endpoint;
  readonly databases: readonly PlannedDatabase[];
  /** Sentences without a full stop; nothing is moved while there is one. */
  readonly refused: readonly string[];
  readonly notMoved: readonly string[];
}

export async function makePlan(session: Session, state: MoveState, options: MoveOptions): Promise<MovePlan> {
  const { client, parts } = session;
  const path = projectPath(state.from);
  const { project } = await client.get<GetProjectReply>(path);
  const { branches } = await client.get<ListProjectBranchesReply>(`${path}/branches`, { limit: 10_000 });
  const { endpoints } = await client.get<ListProjectEndpointsReply>(`${path}/endpoints`);
  const branch = branches.find((one) => one.default);
  if (branch === undefined) throw new Error(`BUG: project ${project.id} has no default branch`);
  const endpoint = writerOf(branch, endpoints);
  const source = { client, project: project.id, branch: branch.id, endpoint: endpoint.id };
  const refused: string[] = [];
  const databases: PlannedDatabase[] = [];
  for (const { name: sourceName, owner_name: owner } of await databasesOf(source)) {
    if ((await passwordOf(source, owner)) === undefined) {
      refused.push(`database ${sourceName}: the password of its owner ${owner} is not stored; reset it over the API`);
      continue;
    }
    const facts = await parts.move.inspect(await uriOf(source, sourceName, owner));
    databases.push({ ...facts, sourceName, owner, name: nameBefore(state, sourceName) });
  }
  if (databases.length === 0) refused.push('the branch has no database that can be read');
  refused.push(...problemsOf(project, databases, options));
  return {
    source,
    project,
    branch,
    endpoint,
    databases,
    roles: await readRoles(session, source, databases),
    ...(await readSecrets(session, source)),
    refused,
    notMoved: [...(await leftBehind(session, path, branch, branches, endpoints)), ...unfollowed(databases)],
  };
}

function nameBefore({ closedAs = {} }: MoveState, sourceName: string): string {
  return Object.entries(closedAs).find(([, closed]) => closed === sourceName)?.[0] ?? sourceName;
}

function problemsOf(project: Project, databases: readonly PlannedDatabase[], options: MoveOptions): string[] {
  const isLogical = project.settings?.enable_logical_replication === true;
  const problems: string[] = [];
  if (options.method === 'replication' && !isLogical && !options.enableReplication) {
    problems.push(
      'the project has logical replication off: --enable-replication turns it on, which restarts its computes and ' +
        'stays, or --method copy closes the databases for as long as the copy takes',
    );
  }
  for (const { name, largeObjects, subscriptions, ...facts } of databases) {
    const why = isLogical ? facts.whyNotReplicated : facts.whyTablesNotReplicated;
    if (options.method === 'replication' && why !== null) {
      problems.push(`database ${name}: its changes cannot be followed, because ${why}; --method copy does without`);
    }
    if (largeObjects > 0 && options.largeObjects) {
      problems.push(`database ${name}: ${largeObjects} large objects are not copied; --no-large-objects leaves them`);
    }
    if (subscriptions.length > 0) {
      problems.push(
        `database ${name}: disable its subscriptions, which would go on writing: ${subscriptions.join(', ')}`,
      );
    }
  }
  return problems;
}

function unfollowed(databases: readonly PlannedDatabase[]): string[] {
  const named = (noun: string, names: readonly string[], database: string) =>
    names.length === 0 ? [] : [`${noun} of database ${database}: ${names.join(', ')}`];
  return databases.flatMap(({ name, publications, slots }) => [
    ...named('publications', publications, name),
    ...named('replication slots', slots, name),
  ]);
}

/** What a project has beside its databases, by the path of its list. */
const lists = [
  ['snapshots', 'snapshots', 'snapshots'],
  ['webhooks', 'webhooks', 'webhooks'],
  ['saved_queries', 'saved_queries', 'saved queries'],
  ['jwks', 'jwks', 'key sets for tokens'],
  ['auth/integrations', 'data', 'auth integrations'],
  ['permissions', 'project_permissions', 'permissions of people'],
] as const;

async function leftBehind(
  { client }: Session,
  path: string,
  branch: Branch,
  branches: readonly Branch[],
  endpoints: readonly Endpoint[],
): Promise<string[]> {
  const others = branches.filter(({ id }) => id !== branch.id).map(({ name }) => name);
  const replicas = endpoints.filter(({ type, branch_id: of }) => type === 'read_only' && of === branch.id);
  const found = [
    'the history of the branch: that of the new one begins with the move',
    ...(others.length === 0 ? [] : [`branches: ${others.join(', ')}`]),
    ...(replicas.length === 0 ? [] : [`read replicas: ${replicas.map(({ id }) => id).join(', ')}`]),
  ];
  const schedule = await client.find<{ schedule: readonly object[] }>(`${path}/branches/${branch.id}/backup_schedule`);
  if ((schedule?.schedule ?? []).length > 0) found.push('the schedule of snapshots');
  for (const [list, field, noun] of lists) {
    const reply = await client.find<Record<string, unknown>>(`${path}/${list}`);
    const items = reply?.[field];
    if (Array.isArray(items) && items.length > 0) found.push(`${noun}: ${items.length}`);
  }
  return [...found, 'API keys of the project'];
}

/** Why the target cannot take the project; null if nothing is known to stand against it. */
export async function whyNotTaken(target: Session['client'], project: Project): Promise<string | null> {
  const key = await target.get<GetAuthDetailsReply>('/auth');
  if (key.scope !== 'full' || key.project_id !== undefined) {
    return 'the key for the target must be one of scope full that is not limited to a project';
  }
  const majors = majorsOf(await target.getOpen<object>('/api/v2/openapi.json'));
  if (majors.length > 0 && !majors.includes(project.pg_version)) {
    return `the target has no Postgres ${project.pg_version}; it has ${majors.join(', ')}`;
  }
  return null;
}

function majorsOf(document: object): readonly number[] {
  const steps = ['paths', '/projects', 'post', 'requestBody', 'content', 'application/json', 'schema', 'properties'];
  let at: unknown = document;
  for (const step of [...steps, 'project', 'properties', 'pg_version', 'enum']) {
    at = typeof at === 'object' && at !== null ? Reflect.get(at, step) : undefined;
  }
  return Array.isArray(at) ? at.map(Number) : [];
}
