/** A project at a glance: the tree of its branches, the computes of each, and what is being done right now. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Branch, Project } from '../api/generated.ts';
import { branchesQuery, deletedQuery, endpointsQuery, operationsQuery, projectQuery } from '../api/queries.ts';
import { BranchTree } from '../branches/branch-tree.tsx';
import { OperationList } from '../operations/operation-list.tsx';
import { useNamed } from '../operations/use-named.ts';
import { Ago, Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icons.tsx';
import { Loaded } from '../ui/states.tsx';
import { ConnectDialog } from './connect-dialog.tsx';
import { CreateBranch } from './create-branch.tsx';
import { RecoverButton } from './deleted.tsx';
import { QuotaExceeded } from './quotas.tsx';

/** Enough to find what is under way; the list shows the first of them. */
const recentOperations = 60;
const listedOperations = 12;
const deletedShown = 3;

export function DashboardPage() {
  const { projectId } = useParams({ from: '/projects/$projectId/' });
  const project = useQuery(projectQuery(projectId));
  return (
    <>
      {project.error !== null && project.data === undefined && <PageHead title="Project" />}
      <Loaded query={project}>{(found) => <Dashboard project={found} />}</Loaded>
    </>
  );
}

function Dashboard({ project }: { readonly project: Project }) {
  const branches = useQuery(branchesQuery(project.id));
  const endpoints = useQuery(endpointsQuery(project.id));
  const operations = useQuery(operationsQuery(project.id, recentOperations));
  const named = useNamed(project.id);
  return (
    <>
      <title>{`${project.name} · Catnap`}</title>
      <PageHead
        title={project.name}
        lead={
          <span className="meta">
            <CopyableId id={project.id} label="the project id" />
            <span>Postgres {project.pg_version}</span>
            <span>{project.region_id}</span>
          </span>
        }
      >
        <Actions project={project} branches={branches.data ?? []} />
      </PageHead>
      <div className="stack">
        <QuotaExceeded project={project} linked />
        <div className="dashboard">
          <Loaded query={branches} lines={8}>
            {(found) => (
              <Loaded query={endpoints} lines={8}>
                {(computes) => <BranchTree branches={found} endpoints={computes} operations={operations.data ?? []} />}
              </Loaded>
            )}
          </Loaded>
          <div className="stack">
            <RecentlyDeleted projectId={project.id} />
            <Card title="Activity">
              <Loaded query={operations}>
                {(found) => (
                  <OperationList operations={found.slice(0, listedOperations)} projectId={project.id} named={named} />
                )}
              </Loaded>
            </Card>
          </div>
        </div>
      </div>
    </>
  );
}

/** Nothing while there is nothing to bring back. */
function RecentlyDeleted({ projectId }: { readonly projectId: string }) {
  const things = (useQuery(deletedQuery).data ?? []).filter((thing) => thing.project_id === projectId);
  const [latest] = things;
  if (latest === undefined) return null;
  return (
    <Card title="Recently deleted">
      <ul className="item-list">
        {things.slice(0, deletedShown).map((thing) => (
          <li key={thing.branch_id}>
            <span>
              {thing.name}
              <span className="hint">
                {' '}
                · <Ago at={thing.deleted_at} />
              </span>
            </span>
            <RecoverButton thing={thing} />
          </li>
        ))}
      </ul>
      <p className="activity-more">
        <Link to="/deleted" search={{ project: projectId }}>
          {things.length > deletedShown ? `All ${things.length} deleted branches` : 'Details'}
        </Link>
      </p>
    </Card>
  );
}

function Actions({ project, branches }: { readonly project: Project; readonly branches: readonly Branch[] }) {
  const search = useSearch({ from: '/projects/$projectId/' });
  const navigate = useNavigate({ from: '/projects/$projectId/' });
  const first = branches.find((branch) => branch.default) ?? branches[0];
  return (
    <>
      <Button disabled={first === undefined} onClick={() => navigate({ search: { create: true } })}>
        <Icon name="branch" /> New branch
      </Button>
      <Button
        tone="primary"
        disabled={first === undefined}
        onClick={() => navigate({ search: { connect: first?.id } })}
      >
        Connect
      </Button>
      {search.create === true && first !== undefined && (
        <CreateBranch
          projectId={project.id}
          branches={branches}
          parentId={first.id}
          onClose={() => navigate({ search: {} })}
        />
      )}
      {search.connect !== undefined && branches.length > 0 && (
        <ConnectDialog
          projectId={project.id}
          branches={branches}
          search={search}
          onChange={(next) => navigate({ search: next, replace: true })}
          onClose={() => navigate({ search: {} })}
        />
      )}
    </>
  );
}
