/** Which address shows which page. Pages with heavy parts are loaded when they are first opened. */
import { createRootRoute, createRoute, createRouter, Link, lazyRouteComponent } from '@tanstack/react-router';
import { loadScript } from './api/load-script.ts';
import { type MonitoringSearch, views } from './monitoring/views.ts';
import { type AuthSearch, authViews } from './pages/auth-view.ts';
import type { ConnectSearch } from './pages/connect-dialog.tsx';
import { ProjectsPage } from './pages/projects.tsx';
import type { DiffSearch } from './pages/schema-diff.tsx';
import { Layout } from './shell/layout.tsx';
import type { TablesSearch } from './tables/search.ts';
import type { TargetSearch } from './target/target.tsx';
import { PageHead } from './ui/bits.tsx';
import { Empty, Failure } from './ui/states.tsx';

type Search = Record<string, unknown>;

/** A page that is loaded when it is first opened. */
const lazyPage: typeof lazyRouteComponent = (load, name) => lazyRouteComponent(() => loadScript(load), name);

/** Empty ones, and what is off, stay out of the address. */
const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
const laterPage = (value: unknown) => (Number.isSafeInteger(value) && Number(value) > 1 ? Number(value) : undefined);
const flag = (value: unknown) => (value === true ? true : undefined);

export interface ProjectsSearch {
  readonly q?: string | undefined;
  readonly org?: string | undefined;
  /** The dialog that makes one is open. */
  readonly create?: true | undefined;
}

const targetSearch = (search: Search): TargetSearch => ({
  branch: text(search.branch),
  database: text(search.database),
  at: text(search.at),
});

function PageFailure({ error }: { readonly error: unknown }) {
  const shown = error instanceof Error ? error : new Error(String(error));
  return <Failure error={shown} onRetry={() => location.reload()} />;
}

const root = createRootRoute({
  component: Layout,
  notFoundComponent: () => (
    <>
      <title>Not found · Catnap</title>
      <PageHead title="Not found" />
      <Empty title="There is no such page.">
        <Link to="/">All projects</Link>
      </Empty>
    </>
  ),
  errorComponent: PageFailure,
});

const projectSearch = (search: Search): ProjectsSearch => ({
  q: text(search.q),
  org: text(search.org),
  create: flag(search.create),
});
const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: ProjectsPage,
  validateSearch: projectSearch,
});
const keys = createRoute({
  getParentRoute: () => root,
  path: '/keys',
  component: lazyPage(() => import('./pages/keys.tsx'), 'KeysPage'),
});
const organization = createRoute({
  getParentRoute: () => root,
  path: '/organization',
  component: lazyPage(() => import('./pages/organization.tsx'), 'OrganizationPage'),
});
const deleted = createRoute({
  getParentRoute: () => root,
  path: '/deleted',
  component: lazyPage(() => import('./pages/deleted.tsx'), 'DeletedPage'),
  validateSearch: (search: Search): { project?: string | undefined } => ({ project: text(search.project) }),
});
const about = createRoute({
  getParentRoute: () => root,
  path: '/about',
  component: lazyPage(() => import('./pages/about.tsx'), 'AboutPage'),
});

const psqlLogin = createRoute({
  getParentRoute: () => root,
  path: '/psql',
  component: lazyPage(() => import('./pages/psql-login.tsx'), 'PsqlLoginPage'),
});

const project = createRoute({ getParentRoute: () => root, path: '/projects/$projectId' });
const dashboard = createRoute({
  getParentRoute: () => project,
  path: '/',
  component: lazyPage(() => import('./pages/dashboard.tsx'), 'DashboardPage'),
  validateSearch: (search: Search): ConnectSearch => ({
    create: flag(search.create),
    connect: text(search.connect),
    compute: text(search.compute),
    database: text(search.database),
    role: text(search.role),
    pooled: flag(search.pooled),
    client: text(search.client),
  }),
});
const branch = createRoute({
  getParentRoute: () => project,
  path: '/branches/$branchId',
  component: lazyPage(() => import('./pages/branch.tsx'), 'BranchPage'),
  validateSearch: (search: Search): DiffSearch => ({
    against: text(search.against),
    database: text(search.database),
    compared: flag(search.compared),
  }),
});
const data = createRoute({
  getParentRoute: () => project,
  path: '/data',
  component: lazyPage(() => import('./pages/data.tsx'), 'DataPage'),
  validateSearch: (search: Search): { branch?: string | undefined } => ({ branch: text(search.branch) }),
});
const operations = createRoute({
  getParentRoute: () => project,
  path: '/operations',
  component: lazyPage(() => import('./pages/operations.tsx'), 'OperationsPage'),
  validateSearch: (search: Search): { status?: 'open' | 'failed' | undefined } => ({
    status: search.status === 'open' || search.status === 'failed' ? search.status : undefined,
  }),
});
const sql = createRoute({
  getParentRoute: () => project,
  path: '/sql',
  component: lazyPage(() => import('./pages/sql.tsx'), 'SqlPage'),
  validateSearch: (search: Search): TargetSearch => targetSearch(search),
});
const tables = createRoute({
  getParentRoute: () => project,
  path: '/tables',
  component: lazyPage(() => import('./pages/tables.tsx'), 'TablesPage'),
  validateSearch: (search: Search): TargetSearch & TablesSearch => ({
    ...targetSearch(search),
    table: text(search.table),
    page: laterPage(search.page),
    sort: text(search.sort),
    desc: flag(search.desc),
    where: Array.isArray(search.where) && search.where.length > 0 ? search.where : undefined,
    view: search.view === 'structure' || search.view === 'diagram' ? search.view : undefined,
  }),
});
const monitoring = createRoute({
  getParentRoute: () => project,
  path: '/monitoring',
  component: lazyPage(() => import('./pages/monitoring.tsx'), 'MonitoringPage'),
  validateSearch: (search: Search): MonitoringSearch => ({
    endpoint: text(search.endpoint),
    branch: text(search.branch),
    view: views.find(({ id }) => id === search.view)?.id,
    range: text(search.range),
    database: text(search.database),
  }),
});
const auth = createRoute({
  getParentRoute: () => project,
  path: '/auth',
  component: lazyPage(() => import('./pages/auth.tsx'), 'AuthPage'),
  validateSearch: (search: Search): AuthSearch => ({
    q: text(search.q),
    page: laterPage(search.page),
    view: authViews.find((view) => view === search.view),
  }),
});
const settings = createRoute({
  getParentRoute: () => project,
  path: '/settings',
  component: lazyPage(() => import('./pages/settings.tsx'), 'SettingsPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    index,
    keys,
    organization,
    deleted,
    about,
    psqlLogin,
    project.addChildren([dashboard, branch, data, sql, tables, monitoring, auth, operations, settings]),
  ]),
  scrollRestoration: true,
  // For each page, so that the frame around it stays.
  defaultErrorComponent: PageFailure,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
