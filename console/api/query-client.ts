/** The cache of replies. It notices two things for everybody: that the sign-in has ended, and that nobody answers. */
import { focusManager, MutationCache, type Query, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, isPassing, OfflineError } from './client.ts';
import { sessionQuery } from './queries.ts';
import { offline, sessionEnded } from './watched-flag.ts';

const retriesMax = 1;
const askAgainMs = 1_000;
let willAskAgain = false;

function noticeFailure(error: Error): void {
  if (error instanceof OfflineError) offline.set(true);
  if (error instanceof ApiError && error.status === 401) endSession();
  if (isPassing(error)) askAgainSoon();
}

/** What fails once more comes here once more. */
function askAgainSoon(): void {
  if (willAskAgain) return;
  willAskAgain = true;
  setTimeout(() => {
    willAskAgain = false;
    // A tab that is seen again asks by itself.
    if (focusManager.isFocused()) askAgain();
  }, askAgainMs);
}

/** What the page shows and could not be asked while the server was away, or not ready yet. */
export function askAgain(): void {
  void client.refetchQueries({ type: 'active', predicate: hasFailedForNow });
}

/** A question that is not to be repeated may wake a compute, which can have troubles of its own. */
function hasFailedForNow({ state: { error }, options: { retry } }: Query): boolean {
  return error instanceof OfflineError || (isPassing(error) && retry !== false);
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
