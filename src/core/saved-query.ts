/**
 * Queries that people keep with a project. Everybody who may change the project may change them; two people who change
 * the same one do not overwrite each other, because a change names the revision that it was made to.
 */
import {
  countSavedQueries,
  deleteSavedQueryRow,
  insertSavedQuery,
  type SavedQueryRow,
  selectSavedQueries,
  selectSavedQuery,
  updateSavedQuery,
} from '../db/saved-queries.ts';
import { CatnapError, notFound, withDetails } from '../lib/errors.ts';
import { newSavedQueryId, type ProjectId, type SavedQueryId } from '../lib/ids.ts';
import { type Caller, requireProject, requireProjectLocked } from './access.ts';
import type { CommandScope, Scope } from './context.ts';

export type SavedQuery = SavedQueryRow;

/** The list is sent as a whole, so it stays short: with the longest texts it is 2 MB. */
const perProjectMax = 100;

export interface SavedQueryAddress {
  readonly projectId: ProjectId;
  readonly savedQueryId: SavedQueryId;
}

export async function listSavedQueries(scope: Scope, caller: Caller, projectId: ProjectId): Promise<SavedQuery[]> {
  await requireProject(scope, caller, projectId);
  return selectSavedQueries(scope.sql, projectId);
}

export async function createSavedQuery(
  scope: CommandScope,
  caller: Caller,
  projectId: ProjectId,
  input: Pick<SavedQuery, 'name' | 'query' | 'isOpen'>,
): Promise<SavedQuery> {
  await requireProjectLocked(scope, caller, projectId);
  if ((await countSavedQueries(scope.tx, projectId)) >= perProjectMax) {
    throw new CatnapError('unprocessable', withDetails('saved queries limit exceeded', { limit: perProjectMax }));
  }
  return insertSavedQuery(scope.tx, { ...input, id: newSavedQueryId(), projectId, createdAt: scope.clock.now() });
}

export interface SavedQueryInput {
  readonly name?: string | undefined;
  readonly query?: string | undefined;
  readonly isOpen?: boolean | undefined;
  /** The revision that the change was made to; left out, the change is made to whatever is there. */
  readonly revision?: number | undefined;
}

export async function changeSavedQuery(
  scope: CommandScope,
  caller: Caller,
  address: SavedQueryAddress,
  { revision, name, query, isOpen }: SavedQueryInput,
): Promise<SavedQuery> {
  await requireProjectLocked(scope, caller, address.projectId);
  const found = await requireSavedQuery(scope, address);
  if (revision !== undefined && revision !== found.revision) {
    const details = { revision: found.revision };
    throw new CatnapError('conflict', withDetails('the saved query was changed meanwhile', details));
  }
  return updateSavedQuery(scope.tx, found, {
    ...(name !== undefined && { name }),
    ...(query !== undefined && { query }),
    ...(isOpen !== undefined && { isOpen }),
  });
}

export async function deleteSavedQuery(
  scope: CommandScope,
  caller: Caller,
  address: SavedQueryAddress,
): Promise<SavedQuery> {
  await requireProjectLocked(scope, caller, address.projectId);
  const found = await requireSavedQuery(scope, address);
  await deleteSavedQueryRow(scope.tx, found.id);
  return found;
}

async function requireSavedQuery(scope: Scope, { projectId, savedQueryId }: SavedQueryAddress): Promise<SavedQuery> {
  const found = await selectSavedQuery(scope.sql, projectId, savedQueryId);
  if (found === undefined) throw notFound('saved query');
  return found;
}
