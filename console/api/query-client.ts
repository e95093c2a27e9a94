/** The cache of replies. It notices two things for everybody: that the sign-in has ended, and that nobody answers. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, OfflineError } from './client.ts';
import { sessionQuery } from './queries.ts';
import { offline, sessionEnded } from './watched-flag.ts';

const retriesMax = 1;

function noticeFailure(error: Error): void {
  if (error instanceof OfflineError) offline.set(true);
  if (error instanceof ApiError && error.status === 401) endSession();
}

/** The server has refused a sign-in that the page believed in. */
export function endSession(): void {
  if (client.getQueryData(sessionQuery.queryKey)?.signed_in === true) sessionEnded.set(true);
  client.setQueryData(sessionQuery.queryKey, { signed_in: false });
}

export const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noticeFailure, onSuccess: () => offline.set(false) }),
  mutationCache: new MutationCache({ onError: noticeFailure, onSuccess: () => offline.set(false) }),
  defaultOptions: {
    queries: {
      // A refusal stays one; a server that restarts is back in a moment.
      retry: (failures, error) => error instanceof OfflineError && failures < retriesMax,
      staleTime: 2_000,
      // The server may well be on a machine that has no internet.
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});
