/** Where the person is: the project, branch and page of the address, and how to go to the same page of another one. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useRouterState, useSearch } from '@tanstack/react-router';
import type { Branch } from '../api/generated.ts';
import { branchesQuery, endpointsQuery } from '../api/queries.ts';

export const projectPages = [
  { page: '', to: '/projects/$projectId', text: 'Dashboard', icon: 'branch' },
  { page: 'sql', to: '/projects/$projectId/sql', text: 'SQL editor', icon: 'terminal' },
  { page: 'tables', to: '/projects/$projectId/tables', text: 'Tables', icon: 'table' },
  { page: 'monitoring', to: '/projects/$projectId/monitoring', text: 'Monitoring', icon: 'pulse' },
  { page: 'data', to: '/projects/$projectId/data', text: 'Roles and databases', icon: 'database' },
  { page: 'auth', to: '/projects/$projectId/auth', text: 'Auth', icon: 'shield' },
  { page: 'operations', to: '/projects/$projectId/operations', text: 'Operations', icon: 'list' },
  { page: 'settings', to: '/projects/$projectId/settings', text: 'Settings', icon: 'sliders' },
] as const;

export type ProjectPage = (typeof projectPages)[number]['page'];

/** Pages that show one branch at a time, by a search parameter. */
const branchPages: readonly string[] = ['sql', 'tables', 'monitoring', 'data'];

export interface Place {
  readonly projectId: string | undefined;
  /** Of the project, without its branches; undefined elsewhere. */
  readonly page: ProjectPage | undefined;
  readonly isBranchPage: boolean;
  readonly branches: readonly Branch[];
  /** The one that the page shows; undefined on pages about the whole project. */
  readonly branch: Branch | undefined;
}

export function usePlace(): Place {
  const { projectId, branchId } = useParams({ strict: false });
  const search = useSearch({ strict: false });
  const path = useRouterState({ select: (state) => state.location.pathname });
  const branches = useQuery({ ...branchesQuery(projectId ?? ''), enabled: projectId !== undefined }).data ?? [];
  // A page about a compute is about the branch that the compute serves.
  const ofCompute = projectId !== undefined && search.endpoint !== undefined;
  const endpoints = useQuery({ ...endpointsQuery(projectId ?? ''), enabled: ofCompute }).data ?? [];
  const compute = ofCompute ? endpoints.find(({ id }) => id === search.endpoint) : undefined;
  const part = path.split('/')[3] ?? '';
  const page = projectId === undefined ? undefined : projectPages.find((one) => one.page === part)?.page;
  const wanted =
    branchId ?? (branchPages.includes(part) ? (compute?.branch_id ?? search.branch ?? 'default') : undefined);
  const branch = branches.find(({ id, default: isDefault }) => (wanted === 'default' ? isDefault : id === wanted));
  return { projectId, page, isBranchPage: branchId !== undefined, branches, branch };
}

/** Ways to other places that keep the kind of page. */
export function useWays({ projectId = '', page }: Place) {
  const navigate = useNavigate();
  return {
    toOrganization: (org: string) => void navigate({ to: '/', search: { org } }),
    toPage: (of: string, kind: ProjectPage) => {
      const { to } = projectPages.find((one) => one.page === kind) ?? projectPages[0];
      void navigate({ to, params: { projectId: of }, search: {} });
    },
    toProject: (id: string) => {
      const { to } = projectPages.find((one) => one.page === page) ?? projectPages[0];
      void navigate({ to, params: { projectId: id }, search: {} });
    },
    toBranch: (branchId: string) => {
      const kind = projectPages.find((one) => one.page === page && branchPages.includes(one.page));
      if (kind === undefined) {
        void navigate({ to: '/projects/$projectId/branches/$branchId', params: { projectId, branchId } });
      } else void navigate({ to: kind.to, params: { projectId }, search: { branch: branchId } });
    },
  };
}
