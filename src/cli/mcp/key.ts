/** What the key of an MCP server may do: which tools are worth having with it, and a sentence about it. */
import { type ApiClient, ApiUnreachable } from '../kit/client.ts';
import type { GetAuthDetailsReply } from '../kit/generated.ts';

export type KeyFacts = Pick<GetAuthDetailsReply, 'scope' | 'project_id' | 'expires_at'>;

/** While Catnap does not answer nothing is known of the key; Catnap itself holds it to its scope all the same. */
export async function readKey(client: ApiClient): Promise<KeyFacts> {
  return client.get<GetAuthDetailsReply>('/auth').catch((error) => {
    if (error instanceof ApiUnreachable) return { scope: 'full' } as const;
    throw error;
  });
}

const meanings: Readonly<Record<KeyFacts['scope'], string>> = {
  full: 'may do everything that the tools offer',
  read_only: 'may read what Catnap knows of projects and branches, but neither change them nor run SQL',
  branches:
    'may make branches, and change and query those that are neither the default one nor protected; to read rows of ' +
    'those, make a branch of them',
  sql: 'may find databases and run SQL, and nothing else',
};

export function describeKey({ scope, project_id: project, expires_at: end }: KeyFacts): string {
  const reach = project === undefined ? '' : ` in project ${project}`;
  return `The key of this server ${meanings[scope]}${reach}${end === undefined ? '' : `, until ${end}`}.`;
}

export const mayRunSql = ({ scope }: KeyFacts) => scope !== 'read_only';
export const mayReadAll = ({ scope }: KeyFacts) => scope !== 'sql';
export const mayChangeBranches = ({ scope }: KeyFacts) => scope === 'full' || scope === 'branches';
