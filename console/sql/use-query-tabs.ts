/** The open queries of a project, as React sees them. */
import { useQuery } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { ApiError, api, at } from '../api/client.ts';
import type {
  CreateProjectSavedQueryReply,
  ListProjectSavedQueriesReply,
  SavedQuery,
  UpdateProjectSavedQueryReply,
} from '../api/generated.ts';
import { QueryTabs, type SavedQueries } from './query-tabs.ts';

export const listSavedQueries = async (projectId: string) =>
  (await api<ListProjectSavedQueriesReply>('GET', at`/projects/${projectId}/saved_queries`)).saved_queries;

/** Read once for the page: from then on the page itself is what is newest. */
export const useSavedQueries = (projectId: string) =>
  useQuery({
    queryKey: ['saved-queries', projectId],
    queryFn: () => listSavedQueries(projectId),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });

export function useQueryTabs(projectId: string, saved: readonly SavedQuery[]) {
  const [tabs] = useState(() => new QueryTabs(serverOf(projectId), sessionStorage, projectId, saved));
  const view = useSyncExternalStore(tabs.watch, tabs.view);
  return { tabs, view };
}

function serverOf(projectId: string): SavedQueries {
  return {
    create: async (query) => {
      const body = { saved_query: query };
      const path = at`/projects/${projectId}/saved_queries`;
      return (await api<CreateProjectSavedQueryReply>('POST', path, { body })).saved_query;
    },
    update: async (id, change) => {
      const body = { saved_query: change };
      const path = at`/projects/${projectId}/saved_queries/${id}`;
      try {
        return (await api<UpdateProjectSavedQueryReply>('PATCH', path, { body })).saved_query;
      } catch (error) {
        if (error instanceof ApiError && (error.status === 409 || error.status === 404)) return null;
        throw error;
      }
    },
    remove: (id) => api('DELETE', at`/projects/${projectId}/saved_queries/${id}`),
  };
}
