/** Saved queries: rows to the wire, and paths to the domain. */
import type { Static } from 'typebox';
import type { SavedQuery } from '../../core/saved-query.ts';
import { asSavedQueryId } from '../../lib/ids.ts';
import type { SavedQuery as SavedQuerySchema } from '../schemas/saved-query.ts';
import { time } from './common.ts';
import { projectAddress } from './params.ts';

export const savedQueryAddress = (params: { project_id: string; saved_query_id: string }) => ({
  ...projectAddress(params),
  savedQueryId: asSavedQueryId(params.saved_query_id),
});

export function savedQueryView(row: SavedQuery): Static<typeof SavedQuerySchema> {
  return {
    id: row.id,
    name: row.name,
    query: row.query,
    is_open: row.isOpen,
    revision: row.revision,
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
  };
}
