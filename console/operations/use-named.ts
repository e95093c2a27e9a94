/** The names of a project's branches for its operations, also of deleted ones, whose pages offer them back. */
import { useQuery } from '@tanstack/react-query';
import { branchesQuery, deletedQuery, endpointsQuery } from '../api/queries.ts';
import type { Named } from './words.ts';

export function useNamed(projectId: string): Named {
  const branches = useQuery(branchesQuery(projectId)).data ?? [];
  const endpoints = useQuery(endpointsQuery(projectId)).data ?? [];
  const deleted = (useQuery(deletedQuery).data ?? []).flatMap(({ branch_id: id, project_id, name }) =>
    id !== undefined && project_id === projectId ? [{ id, name }] : [],
  );
  return { branches: [...branches, ...deleted], endpoints };
}
