/** A project at one of the two Catnaps of a move: its default branch, that branch's compute, and connections to it. */
import { type ApiClient, ApiRefusal } from '../kit/client.ts';
import { CliFailure } from '../kit/failure.ts';
import type {
  GetConnectionURIReply,
  GetProjectBranchRolePasswordReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchRoleVerifiersReply,
  ListProjectOperationsReply,
  Operation,
} from '../kit/generated.ts';
import { untilDone } from '../kit/operations.ts';

export interface MovePlace {
  readonly client: ApiClient;
  readonly project: string;
  readonly branch: string;
  readonly endpoint: string;
}

export const projectPath = ({ project }: Pick<MovePlace, 'project'>) => `/projects/${encodeURIComponent(project)}`;
export const branchPath = (place: MovePlace) => `${projectPath(place)}/branches/${encodeURIComponent(place.branch)}`;
export const rolePath = (place: MovePlace, name: string) => `${branchPath(place)}/roles/${encodeURIComponent(name)}`;

/** Never through the pooler: a copy is one long session. */
export async function uriOf(place: MovePlace, database: string, role: string): Promise<string> {
  const { uri } = await place.client.get<GetConnectionURIReply>(`${projectPath(place)}/connection_uri`, {
    branch_id: place.branch,
    endpoint_id: place.endpoint,
    database_name: database,
    role_name: role,
  });
  return uri;
}

export async function databasesOf(place: MovePlace): Promise<ListProjectBranchDatabasesReply['databases']> {
  return (await place.client.get<ListProjectBranchDatabasesReply>(`${branchPath(place)}/databases`)).databases;
}

/** By name; undefined for roles that cannot log in. */
export async function verifiersOf(place: MovePlace): Promise<ReadonlyMap<string, string | undefined>> {
  const path = `${branchPath(place)}/role_verifiers`;
  const found = await place.client.find<ListProjectBranchRoleVerifiersReply>(path);
  if (found === null) throw new CliFailure(`the Catnap at ${place.client.url} is too old for a move: upgrade it first`);
  return new Map(found.roles.map(({ name, verifier }) => [name, verifier]));
}

/** Undefined where it is not stored. */
export async function passwordOf(place: MovePlace, role: string): Promise<string | undefined> {
  const path = `${rolePath(place, role)}/reveal_password`;
  return place.client
    .get<GetProjectBranchRolePasswordReply>(path)
    .then(({ password }) => password)
    .catch((error: unknown) => {
      // Not stored, or the role was made by SQL and the API does not know it yet.
      if (error instanceof ApiRefusal && [404, 412].includes(error.status)) return undefined;
      throw error;
    });
}

const final: readonly Operation['status'][] = ['finished', 'error', 'cancelled', 'skipped'];

/** Waits for what an earlier run, or anybody else, has queued. */
export async function untilQuiet(place: MovePlace): Promise<void> {
  const path = `${projectPath(place)}/operations`;
  const { operations } = await place.client.get<ListProjectOperationsReply>(path, { limit: 100 });
  const open = operations.filter(({ status }) => !final.includes(status));
  await untilDone(place.client, open);
}
