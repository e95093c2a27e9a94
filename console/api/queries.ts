/** Every question that pages ask, each with its key. What belongs to a project is under `['project', id]`. */
import { queryOptions } from '@tanstack/react-query';
import { api, at, send, withQuery } from './client.ts';
import type {
  Branch,
  ConsoleSession,
  GetBackupReply,
  GetConnectionURIReply,
  GetCurrentUserInfoReply,
  GetCurrentUserOrganizationsReply,
  GetProjectBranchHistoryReply,
  GetProjectReply,
  GetSnapshotScheduleReply,
  Installation,
  ListApiKeysReply,
  ListDeletedReply,
  ListNeonAuthIntegrationsReply,
  ListNeonAuthOauthProvidersReply,
  ListNeonAuthRedirectURIWhitelistDomainsReply,
  ListOrgApiKeysReply,
  ListOutboxReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchesReply,
  ListProjectBranchRolesReply,
  ListProjectEndpointsReply,
  ListProjectOperationsReply,
  ListProjectsReply,
  ListSnapshotsReply,
  WaitingLogin,
} from './generated.ts';
import { pollMs } from './live-state.ts';

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => send<ConsoleSession>('GET', '/console/session'),
  staleTime: 60_000,
});

const loginPollMs = 1_000;

/** A client that waits to be let in; asked again until it is known how that ended. */
export const waitingLoginQuery = (token: string) =>
  queryOptions({
    queryKey: ['login', token],
    queryFn: () => send<WaitingLogin>('POST', '/console/logins/show', { body: { token } }),
    refetchInterval: ({ state: { data, status } }) => {
      const isOver = status === 'error' || data?.state === 'connected' || data?.state === 'refused';
      return isOver ? false : loginPollMs;
    },
    retry: false,
  });

export const installationQuery = queryOptions({
  queryKey: ['installation'],
  queryFn: () => send<Installation>('GET', '/status.json'),
});

/** Only a personal key has a user; for other keys the API refuses the request. */
export const userQuery = (session: ConsoleSession | undefined) =>
  queryOptions({
    queryKey: ['user'],
    queryFn: () => api<GetCurrentUserInfoReply>('GET', '/users/me'),
    enabled: session?.key?.kind === 'personal',
    staleTime: 60_000,
  });

export const organizationsQuery = queryOptions({
  queryKey: ['organizations'],
  queryFn: async () => (await api<GetCurrentUserOrganizationsReply>('GET', '/users/me/organizations')).organizations,
  staleTime: 60_000,
});

export const personalKeysQuery = queryOptions({
  queryKey: ['keys', 'personal'],
  queryFn: () => api<ListApiKeysReply>('GET', '/api_keys'),
});

export const organizationKeysQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['keys', orgId],
    queryFn: () => api<ListOrgApiKeysReply>('GET', at`/organizations/${orgId}/api_keys`),
  });

/** As many as the API gives at once. */
export const projectsOfPage = 400;

export const projectsQuery = (orgId: string, search: string) =>
  queryOptions({
    queryKey: ['projects', orgId, search],
    queryFn: async () => {
      const query = { org_id: orgId, limit: projectsOfPage, search: search === '' ? undefined : search };
      return (await api<ListProjectsReply>('GET', withQuery('/projects', query))).projects;
    },
    refetchInterval: () => pollMs('slow'),
    placeholderData: (previous) => previous,
  });

export const deletedQuery = queryOptions({
  queryKey: ['deleted'],
  queryFn: async () => (await api<ListDeletedReply>('GET', '/deleted')).deleted,
  refetchInterval: () => pollMs('slow'),
});

export const projectQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'self'],
    queryFn: async () => (await api<GetProjectReply>('GET', at`/projects/${id}`)).project,
  });

const branchesOfPage = 1_000;

async function readAllBranches(id: string): Promise<readonly Branch[]> {
  const found: Branch[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { sort_by: 'created_at', sort_order: 'asc', limit: branchesOfPage, cursor };
    const page = await api<ListProjectBranchesReply>('GET', withQuery(at`/projects/${id}/branches`, query));
    found.push(...page.branches);
    if (page.pagination?.next === undefined) return found;
    cursor = page.pagination.next;
  }
}

export const branchesQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'branches'],
    queryFn: () => readAllBranches(id),
    refetchInterval: () => pollMs('slow'),
  });

export const snapshotsQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'snapshots'],
    queryFn: async () => (await api<ListSnapshotsReply>('GET', at`/projects/${id}/snapshots`)).snapshots,
    refetchInterval: () => pollMs('slow'),
  });

export const scheduleQuery = (id: string, branchId: string) =>
  queryOptions({
    queryKey: ['project', id, 'schedule', branchId],
    queryFn: () => api<GetSnapshotScheduleReply>('GET', at`/projects/${id}/branches/${branchId}/backup_schedule`),
  });

export const historyQuery = (id: string, branchId: string) =>
  queryOptions({
    queryKey: ['project', id, 'history', branchId],
    queryFn: async () =>
      (await api<GetProjectBranchHistoryReply>('GET', at`/projects/${id}/branches/${branchId}/history`)).history,
    refetchInterval: () => pollMs('slow'),
  });

export const endpointsQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'endpoints'],
    queryFn: async () => (await api<ListProjectEndpointsReply>('GET', at`/projects/${id}/endpoints`)).endpoints,
    refetchInterval: () => pollMs('quick'),
  });

export const operationsQuery = (id: string, limit: number) =>
  queryOptions({
    queryKey: ['project', id, 'operations', limit],
    queryFn: async () => {
      const path = withQuery(at`/projects/${id}/operations`, { limit });
      return (await api<ListProjectOperationsReply>('GET', path)).operations;
    },
    refetchInterval: () => pollMs('quick'),
  });

export const rolesQuery = (id: string, branchId: string) =>
  queryOptions({
    queryKey: ['project', id, 'roles', branchId],
    queryFn: async () =>
      (await api<ListProjectBranchRolesReply>('GET', at`/projects/${id}/branches/${branchId}/roles`)).roles,
  });

export const databasesQuery = (id: string, branchId: string) =>
  queryOptions({
    queryKey: ['project', id, 'databases', branchId],
    queryFn: async () =>
      (await api<ListProjectBranchDatabasesReply>('GET', at`/projects/${id}/branches/${branchId}/databases`)).databases,
  });

export const connectionUriQuery = (
  id: string,
  of: { branchId: string; endpointId: string; database: string; role: string; pooled: boolean },
) =>
  queryOptions({
    queryKey: ['project', id, 'uri', of],
    queryFn: async () => {
      const query = {
        branch_id: of.branchId,
        endpoint_id: of.endpointId,
        database_name: of.database,
        role_name: of.role,
        pooled: of.pooled,
      };
      return (await api<GetConnectionURIReply>('GET', withQuery(at`/projects/${id}/connection_uri`, query))).uri;
    },
    // It holds a password: dropped as soon as no page shows it.
    gcTime: 0,
  });

export const integrationsQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'auth'],
    queryFn: async () => (await api<ListNeonAuthIntegrationsReply>('GET', at`/projects/${id}/auth/integrations`)).data,
    refetchInterval: () => pollMs('quick'),
  });

export const authDomainsQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'auth', 'domains'],
    queryFn: async () =>
      (await api<ListNeonAuthRedirectURIWhitelistDomainsReply>('GET', at`/projects/${id}/auth/domains`)).domains,
  });

export type OauthProvider = ListNeonAuthOauthProvidersReply['providers'][number];

export const oauthProvidersQuery = (id: string) =>
  queryOptions({
    queryKey: ['project', id, 'auth', 'oauth'],
    queryFn: async () =>
      (await api<ListNeonAuthOauthProvidersReply>('GET', at`/projects/${id}/auth/oauth_providers`)).providers,
  });

export type Mail = ListOutboxReply['mails'][number];

const mailsShown = 100;

export const outboxQuery = queryOptions({
  queryKey: ['outbox'],
  queryFn: async () => (await api<ListOutboxReply>('GET', withQuery('/outbox', { limit: mailsShown }))).mails,
  refetchInterval: (query) => (query.state.status === 'error' ? false : pollMs('slow')),
});

/** Only for the operator: other keys get a refusal, and are not asked again. */
export const backupQuery = queryOptions({
  queryKey: ['backup'],
  queryFn: () => api<GetBackupReply>('GET', '/backup'),
  refetchInterval: (query) => (query.state.status === 'error' ? false : pollMs('slow')),
});
