/** The command palette: one field that finds projects, branches, computes, tables, pages and what can be done. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useLayoutEffect, useRef } from 'react';
import { api, at } from '../api/client.ts';
import type { Endpoint } from '../api/generated.ts';
import {
  connectionUriQuery,
  databasesQuery,
  endpointsQuery,
  organizationsQuery,
  projectsQuery,
} from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { readTables } from '../sql/catalog.ts';
import { Icon } from '../ui/icons.tsx';
import { Picker, type PickerItem } from '../ui/picker.tsx';
import { applyTheme, themes } from '../ui/theme.ts';
import { type Place, projectPages, usePlace, useWays } from './place.ts';

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  const items = useItems();
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside it closes it; Escape does so too.
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Go to"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <Picker
        label="Find projects, branches, computes, tables and actions"
        items={items}
        groupMax={8}
        onDone={onClose}
      />
    </dialog>
  );
}

function useItems(): readonly PickerItem[] {
  const place = usePlace();
  const actions = useActionItems(place);
  const computes = useComputeItems(place);
  const tables = useTableItems(place);
  const projects = useProjectItems(place);
  const ways = useWays(place);
  const branches = place.branches.map(
    ({ id, name, default: isDefault }): PickerItem => ({
      id: `branch ${id}`,
      group: 'Branches',
      mark: <Icon name="branch" />,
      title: name,
      hint: isDefault ? 'default' : undefined,
      isCurrent: id === place.branch?.id,
      onSelect: () => ways.toBranch(id),
    }),
  );
  const pages = place.projectId === undefined ? [] : pageItems(place.projectId, ways.toPage);
  return [...pages, ...projects, ...branches, ...tables, ...computes, ...actions];
}

const pageItems = (projectId: string, toPage: ReturnType<typeof useWays>['toPage']): PickerItem[] =>
  projectPages.map(({ page, text }) => ({
    id: `page ${page}`,
    group: 'This project',
    title: text,
    onSelect: () => toPage(projectId, page),
  }));

function useProjectItems(place: Place): readonly PickerItem[] {
  const organizations = useQuery(organizationsQuery).data ?? [];
  const lists = useQueries({ queries: organizations.map(({ id }) => projectsQuery(id, '')) });
  const { toProject } = useWays({ ...place, page: place.page ?? '' });
  return lists.flatMap(({ data = [] }, index) =>
    data.map(({ id, name }) => ({
      id: `project ${id}`,
      group: 'Projects',
      title: name,
      hint: organizations.length > 1 ? `${organizations[index]?.name} · ${id}` : id,
      isCurrent: id === place.projectId,
      onSelect: () => toProject(id),
    })),
  );
}

function useComputeItems({ projectId, branches }: Place): readonly PickerItem[] {
  const navigate = useNavigate();
  const endpoints = useQuery({ ...endpointsQuery(projectId ?? ''), enabled: projectId !== undefined }).data ?? [];
  const run = useAction(
    ({ endpoint, verb }: { readonly endpoint: Endpoint; readonly verb: 'start' | 'suspend' }) =>
      api<object>('POST', `${at`/projects/${endpoint.project_id}/endpoints/${endpoint.id}`}/${verb}`),
    { refresh: [['project', projectId]] },
  );
  const names = new Map(branches.map(({ id, name }) => [id, name]));
  return endpoints.flatMap((endpoint): PickerItem[] => {
    const { id, branch_id, type, current_state, name } = endpoint;
    const of = `${names.get(branch_id) ?? branch_id}${type === 'read_only' ? ' replica' : ''}`;
    const verb = current_state === 'active' ? 'suspend' : 'start';
    return [
      {
        id: `compute ${id}`,
        group: 'Computes',
        mark: <span className={`dot ${current_state}`} />,
        title: name === undefined ? id : `${name} · ${id}`,
        hint: `compute of ${of}`,
        onSelect: () =>
          navigate({
            to: '/projects/$projectId/monitoring',
            params: { projectId: endpoint.project_id },
            search: { endpoint: id },
          }),
      },
      {
        id: `${verb} ${id}`,
        group: 'Actions',
        title: `${verb === 'start' ? 'Start' : 'Suspend'} the compute of ${of}`,
        hint: id,
        onSelect: () => run.mutate({ endpoint, verb }),
      },
    ];
  });
}

/** Only of a compute that is awake: finding one's way must wake nothing. */
function useTableItems({ projectId = '', branch, branches }: Place): readonly PickerItem[] {
  const navigate = useNavigate();
  const of = branch ?? branches.find((one) => one.default);
  const endpoints = useQuery({ ...endpointsQuery(projectId), enabled: projectId !== '' }).data ?? [];
  const primary = endpoints.find(({ branch_id, type }) => branch_id === of?.id && type === 'read_write');
  const isAwake = primary?.current_state === 'active';
  const branchId = of?.id ?? '';
  const [database] = useQuery({ ...databasesQuery(projectId, branchId), enabled: isAwake }).data ?? [];
  const uri = useQuery({
    ...connectionUriQuery(projectId, {
      branchId,
      endpointId: primary?.id ?? '',
      database: database?.name ?? '',
      role: database?.owner_name ?? '',
      pooled: false,
    }),
    enabled: isAwake && database !== undefined,
  }).data;
  const tables =
    useQuery({
      queryKey: ['tables', branchId, database?.name],
      queryFn: () => readTables(uri ?? ''),
      enabled: uri !== undefined,
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      retry: false,
    }).data ?? [];
  return tables.map(({ schema, name, kind }) => ({
    id: `table ${schema}.${name}`,
    group: `Tables of ${of?.name ?? ''}`,
    title: schema === 'public' ? name : `${schema}.${name}`,
    hint: kind === 'table' ? undefined : kind,
    onSelect: () =>
      navigate({
        to: '/projects/$projectId/tables',
        params: { projectId },
        search: { branch: branchId, table: `${schema}.${name}` },
      }),
  }));
}

const themeWords = { system: 'the system’s', light: 'light', dark: 'dark' } as const;

function useActionItems({ projectId, branch }: Place): readonly PickerItem[] {
  const navigate = useNavigate();
  const group = 'Actions';
  const params = { projectId: projectId ?? '' };
  const ofProject: PickerItem[] =
    projectId === undefined
      ? []
      : [
          {
            id: 'connect',
            group,
            title: 'Connect',
            hint: 'connection strings',
            onSelect: () =>
              navigate({ to: '/projects/$projectId', params, search: { connect: branch?.id ?? 'default' } }),
          },
          {
            id: 'new branch',
            group,
            title: 'New branch',
            onSelect: () => navigate({ to: '/projects/$projectId', params, search: { create: true } }),
          },
        ];
  return [
    ...ofProject,
    { id: 'new project', group, title: 'New project', onSelect: () => navigate({ to: '/', search: { create: true } }) },
    { id: 'keys', group, title: 'API keys', onSelect: () => navigate({ to: '/keys' }) },
    { id: 'deleted', group, title: 'Deleted projects and branches', onSelect: () => navigate({ to: '/deleted' }) },
    { id: 'about', group, title: 'About this installation', onSelect: () => navigate({ to: '/about' }) },
    ...themes.map(
      (theme): PickerItem => ({
        id: `theme ${theme}`,
        group,
        title: `Theme: ${themeWords[theme]}`,
        onSelect: () => applyTheme(theme),
      }),
    ),
  ];
}
