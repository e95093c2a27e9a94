/** What a compute did and does: graphs, sessions, statements, locks, its log, and the extensions of its databases. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import type { Branch, Endpoint } from '../api/generated.ts';
import { loadScript } from '../api/load-script.ts';
import { branchesQuery, endpointsQuery } from '../api/queries.ts';
import { Graphs } from '../monitoring/graphs.tsx';
import { OnDatabase } from '../monitoring/on-database.tsx';
import { ranges } from '../monitoring/samples.ts';
import { type MonitoringSearch, type MonitoringView, views } from '../monitoring/views.ts';
import { PageHead } from '../ui/bits.tsx';
import { SelectField } from '../ui/field.tsx';
import { Empty, Loaded, Loading } from '../ui/states.tsx';
import { Tabs } from '../ui/tabs.tsx';

/** Each is loaded when it is first looked at; the graphs are what the page opens with. */
const Extensions = lazy(async () => ({
  default: (await loadScript(() => import('../monitoring/extensions.tsx'))).Extensions,
}));
const Locks = lazy(async () => ({ default: (await loadScript(() => import('../monitoring/locks.tsx'))).Locks }));
const ServerLog = lazy(async () => ({
  default: (await loadScript(() => import('../monitoring/server-log.tsx'))).ServerLog,
}));
const Sessions = lazy(async () => ({
  default: (await loadScript(() => import('../monitoring/sessions.tsx'))).Sessions,
}));
const TopQueries = lazy(async () => ({
  default: (await loadScript(() => import('../monitoring/top-queries.tsx'))).TopQueries,
}));

export function MonitoringPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/monitoring' });
  const search = useSearch({ from: '/projects/$projectId/monitoring' });
  const navigate = useNavigate({ from: '/projects/$projectId/monitoring' });
  const endpoints = useQuery(endpointsQuery(projectId));
  const branches = useQuery(branchesQuery(projectId)).data ?? [];
  const change = (next: MonitoringSearch) => navigate({ search: (now) => ({ ...now, ...next }) });
  return (
    <>
      <title>Monitoring · Catnap</title>
      <PageHead title="Monitoring" />
      <Loaded query={endpoints}>
        {(found) => {
          const endpoint = found.find(({ id }) => id === search.endpoint) ?? firstOf(found, branches, search.branch);
          if (endpoint === undefined) return <Empty title="The project has no compute." />;
          const view = views.find(({ id }) => id === search.view)?.id ?? 'graphs';
          return (
            <>
              <div className="toolbar">
                <SelectField
                  label="Compute"
                  value={endpoint.id}
                  choices={found.map((one) => ({ value: one.id, text: nameOf(one, branches) }))}
                  onChange={(value) => change({ endpoint: value, branch: undefined, database: undefined })}
                />
              </div>
              <Tabs
                label="Views"
                tabs={views}
                chosen={view}
                onChoose={(id) => change({ view: id === 'graphs' ? undefined : (id as MonitoringView) })}
              >
                <Suspense fallback={<Loading lines={8} />}>
                  <View key={endpoint.id} view={view} endpoint={endpoint} search={search} onSearch={change}>
                    {found}
                  </View>
                </Suspense>
              </Tabs>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** The primary of the branch that the address names, else of the default branch. */
function firstOf(endpoints: readonly Endpoint[], branches: readonly Branch[], branchId: string | undefined) {
  const wanted = branchId ?? branches.find((branch) => branch.default)?.id;
  const own = endpoints.filter(({ branch_id }) => branch_id === wanted);
  return own.find(({ type }) => type === 'read_write') ?? own[0] ?? endpoints[0];
}

function nameOf({ id, type, branch_id }: Endpoint, branches: readonly Branch[]): string {
  const branch = branches.find((one) => one.id === branch_id)?.name ?? branch_id;
  return `${branch} · ${type === 'read_write' ? 'primary' : 'replica'} · ${id}`;
}

interface ViewProps {
  readonly view: MonitoringView;
  readonly endpoint: Endpoint;
  readonly search: MonitoringSearch;
  readonly onSearch: (next: MonitoringSearch) => void;
  /** All computes of the project. */
  readonly children: readonly Endpoint[];
}

function View({ view, endpoint, search, onSearch, children: endpoints }: ViewProps): ReactNode {
  const range = ranges.find(({ value }) => value === search.range) ?? ranges[0];
  const onDatabase = { endpoint, database: search.database, onDatabase: (database: string) => onSearch({ database }) };
  // What changes a database is run by the primary, whichever compute is looked at.
  const primary = endpoints.find(({ branch_id, type }) => branch_id === endpoint.branch_id && type === 'read_write');
  switch (view) {
    case 'sessions':
      return <Sessions endpoint={endpoint} />;
    case 'queries':
      return <OnDatabase {...onDatabase}>{(target) => <TopQueries {...target} onSearch={onSearch} />}</OnDatabase>;
    case 'locks':
      return <OnDatabase {...onDatabase}>{(target) => <Locks {...target} />}</OnDatabase>;
    case 'log':
      return <ServerLog endpoint={endpoint} />;
    case 'extensions':
      return primary === undefined ? (
        <Empty title="This branch has no primary compute: add one to see and install extensions." />
      ) : (
        <OnDatabase {...onDatabase} endpoint={primary}>
          {(target) => <Extensions {...target} />}
        </OnDatabase>
      );
    case 'graphs':
      return (
        <>
          <div className="view-bar">
            <SelectField
              label="Last"
              value={range.value}
              choices={ranges}
              onChange={(value) => onSearch({ range: value })}
            />
            <p className="hint">Shaded: the compute was suspended. This page does not wake it.</p>
          </div>
          <Graphs endpoint={endpoint} seconds={range.seconds} />
        </>
      );
  }
}
