/** One of the two ends of a copy between projects: a branch, its compute, and connections to it. */
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

export interface BranchPlace {
  readonly client: ApiClient;
  readonly project: string;
  readonly branch: string;
}

export interface Place extends BranchPlace {
  readonly endpoint: string;
  /** Passwords that may not be stored, and any connection string of the compute, to put them into. */
  readonly known?: { readonly uri: string; readonly passwords: Map<string, string> };
}

export const projectPath = ({ project }: Pick<BranchPlace, 'project'>) => `/projects/${encodeURIComponent(project)}`;
export const branchPath = (place: BranchPlace) => `${projectPath(place)}/branches/${encodeURIComponent(place.branch)}`;
export const rolePath = (place: BranchPlace, name: string) => `${branchPath(place)}/roles/${encodeURIComponent(name)}`;

/** Never through the pooler: a copy is one long session. */
export async function uriOf(place: Place, database: string, role: string): Promise<string> {
  const password = place.known?.passwords.get(role);
  if (place.known !== undefined && password !== undefined) {
    return withLogin(place.known.uri, { database, role, password });
  }
  const { uri } = await place.client.get<GetConnectionURIReply>(`${projectPath(place)}/connection_uri`, {
    branch_id: place.branch,
    endpoint_id: place.endpoint,
    database_name: database,
    role_name: role,
  });
  return uri;
}

export function withLogin(
  uri: string,
  { database, role, password }: { readonly database: string; readonly role: string; readonly password: string },
): string {
  const url = new URL(uri);
  url.username = encodeURIComponent(role);
  url.password = encodeURIComponent(password);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}

export async function databasesOf(place: BranchPlace): Promise<ListProjectBranchDatabasesReply['databases']> {
  return (await place.client.get<ListProjectBranchDatabasesReply>(`${branchPath(place)}/databases`)).databases;
}

/** By name; undefined for roles that cannot log in. */
export async function verifiersOf(place: BranchPlace): Promise<ReadonlyMap<string, string | undefined>> {
  const path = `${branchPath(place)}/role_verifiers`;
  const found = await place.client.find<ListProjectBranchRoleVerifiersReply>(path);
  if (found === null) throw new CliFailure(`the Catnap at ${place.client.url} is too old for this: upgrade it first`);
  return new Map(found.roles.map(({ name, verifier }) => [name, verifier]));
}

/** Undefined where it is not stored. */
export async function passwordOf(place: BranchPlace, role: string): Promise<string | undefined> {
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
export async function untilQuiet(place: Place): Promise<void> {
  const path = `${projectPath(place)}/operations`;
  const { operations } = await place.client.get<ListProjectOperationsReply>(path, { limit: 100 });
  const open = operations.filter(({ status }) => !final.includes(status));
  await untilDone(place.client, open);
}
