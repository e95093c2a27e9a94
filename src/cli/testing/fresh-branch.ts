/**
 * A branch of a database for the tests of an application: all data of its parent, and nobody else writes to it. It is
 * made in a moment and removed by the tests; should they be killed, it removes itself.
 */
import { randomBytes } from 'node:crypto';
import { resetOwnersPasswords } from '../kit/branch-passwords.ts';
import { type ApiClient, ApiRefusal, createClient } from '../kit/client.ts';
import type { CreateProjectBranchReply, DeleteProjectBranchReply, GetAuthDetailsReply } from '../kit/generated.ts';
import { readLink } from '../kit/link.ts';
import { untilDone } from '../kit/operations.ts';
import { readKeyFile } from '../kit/session.ts';
import { branchOf, connectionOf, findProject, linkedBranch, type Reach, writerOf } from '../kit/targets.ts';

export interface FreshBranchOptions {
  readonly project?: string;
  readonly parent?: string;
  readonly database?: string;
  readonly role?: string;
  readonly name?: string;
  readonly schemaOnly?: boolean;
  readonly pooled?: boolean;
  readonly expiresInMinutes?: number;
  readonly apiUrl?: string;
  readonly apiKey?: string;
}

/** What says all of a branch that is there. */
export interface MadeBranch {
  readonly id: string;
  readonly name: string;
  readonly projectId: string;
  readonly uri: string;
}

export interface FreshBranch extends MadeBranch {
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What options leave out: the Catnap of this machine, its first key, and the link of the folder. */
export interface Surroundings {
  readonly url: string;
  readonly home: string;
  readonly folder: string;
  readonly apiKey: string | undefined;
}

export const usualMinutes = 60;

/** The API says what is too long. */
function minutesOf({ expiresInMinutes: minutes = usualMinutes }: FreshBranchOptions): number {
  if (Number.isFinite(minutes) && minutes > 0) return minutes;
  throw new Error(`expiresInMinutes: ${minutes} is not valid; allowed: a number of minutes greater than 0`);
}

export async function makeFreshBranch(around: Surroundings, options: FreshBranchOptions): Promise<FreshBranch> {
  const client = clientOf(around, options);
  const reach: Reach = { client, link: readLink(around.folder) };
  const project = await findProject(reach, { project: options.project });
  const parent = options.parent ?? (reach.link?.project === project.id ? linkedBranch(reach) : undefined);
  const minutes = minutesOf(options);
  const made = await client.post<CreateProjectBranchReply>(`${project.path}/branches`, {
    branch: {
      name: options.name ?? `test-${randomBytes(6).toString('hex')}`,
      parent_id: parent === undefined ? undefined : (await branchOf(reach, project, parent)).branch.id,
      expires_at: new Date(Date.now() + minutes * 60_000).toISOString(),
      ...(options.schemaOnly && { init_source: 'schema-only' }),
    },
    endpoints: [{ type: 'read_write' }],
  });
  const path = `${project.path}/branches/${made.branch.id}`;
  const remove = () => removeBranch(client, path);
  try {
    await untilDone(client, made.operations);
    const uri = await uriOf(reach, path, made, options);
    const { id, name } = made.branch;
    return withRemoval({ id, name, projectId: project.id, uri }, remove);
  } catch (error) {
    await remove().catch(() => undefined);
    throw error;
  }
}

/** The second call, and any other, waits for the first. */
export function withRemoval(made: MadeBranch, work: () => Promise<void>): FreshBranch {
  const remove = once(work);
  return { ...made, remove, [Symbol.asyncDispose]: remove };
}

export function removeMade(around: Surroundings, options: FreshBranchOptions, made: MadeBranch): Promise<void> {
  return removeBranch(clientOf(around, options), `/projects/${made.projectId}/branches/${made.id}`);
}

function clientOf(around: Surroundings, options: FreshBranchOptions): ApiClient {
  const { apiKey = around.apiKey } = options;
  const url = options.apiUrl ?? around.url;
  return createClient({ url, apiKey: async () => apiKey ?? readKeyFile(around.home) });
}

async function uriOf(
  reach: Reach,
  path: string,
  made: CreateProjectBranchReply,
  { database, role, pooled = false }: FreshBranchOptions,
): Promise<string> {
  const isUsual = database === undefined && role === undefined && !pooled && reach.link === null;
  const given = made.connection_uris?.[0]?.connection_uri;
  if (isUsual && given !== undefined) return given;
  const { scope } = await reach.client.get<GetAuthDetailsReply>('/auth');
  if (scope === 'branches') await resetOwnersPasswords(reach.client, path);
  return connectionOf(reach, writerOf(made.branch, made.endpoints), { database, role, pooled });
}

/** For good, where the key may: nobody wants a week of tests back. */
async function removeBranch(client: ApiClient, path: string): Promise<void> {
  type Removed = Partial<DeleteProjectBranchReply>;
  const removed = await client
    .delete<Removed>(`${path}?hard_delete=true`)
    .catch((error): Promise<Removed> | Removed => {
      const status = error instanceof ApiRefusal ? error.status : 0;
      if (status === 403) return client.delete<Removed>(path);
      if (status === 404) return {};
      throw error;
    });
  await untilDone(client, removed.operations ?? []);
}

/** Calls that follow get what the first one gets. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => {
    begun ??= work();
    return begun;
  };
}
