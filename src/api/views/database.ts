/** Databases: row to wire. */
import type { Static } from 'typebox';
import type { BranchDatabase } from '../../core/database.ts';
import type { DatabaseCreateBody, Database as DatabaseSchema, DatabaseUpdateBody } from '../schemas/database.ts';
import { time } from './common.ts';
import { branchAddress } from './params.ts';

export function databaseView(row: BranchDatabase): Static<typeof DatabaseSchema> {
  return {
    id: row.id,
    branch_id: row.branchId,
    name: row.name,
    owner_name: row.ownerName,
    created_at: time(row.createdAt),
    updated_at: time(row.updatedAt),
  };
}

export function databaseChange({ database }: Static<typeof DatabaseUpdateBody>) {
  return { name: database.name, ownerName: database.owner_name };
}

export function databaseInput(
  params: { project_id: string; branch_id: string },
  { database }: Static<typeof DatabaseCreateBody>,
) {
  return { ...branchAddress(params), name: database.name, ownerName: database.owner_name };
}
