/** A project at a glance: the tree of its branches, the computes of each, and what is being done right now. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Branch, Endpoint, Operation, Project } from '../api/generated.ts';
import { branchesQuery, endpointsQuery, operationsQuery, projectQuery } from '../api/queries.ts';
import { Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { count } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Loaded } from '../ui/states.tsx';
import { BranchTree } from './branch-tree.tsx';
import { ConnectDialog } from './connect-dialog.tsx';
import { CreateBranch } from './create-branch.tsx';
import { OperationList } from './operation-list.tsx';
import { QuotaExceeded } from './quotas.tsx';

/** Enough to find what is under way; the list shows the first of them. */
const recentOperations = 60;
const listedOperations = 12;

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
                {(computes) => <Branches branches={found} endpoints={computes} operations={operations.data ?? []} />}
              </Loaded>
            )}
          </Loaded>
          <Card title="Activity">
            <Loaded query={operations}>
              {(found) => <OperationList operations={found.slice(0, listedOperations)} projectId={project.id} />}
            </Loaded>
          </Card>
        </div>
      </div>
    </>
  );
}

function Actions({ project, branches }: { readonly project: Project; readonly branches: readonly Branch[] }) {
  const search = useSearch({ from: '/projects/$projectId/' });
  const navigate = useNavigate({ from: '/projects/$projectId/' });
  const [isCreating, setCreating] = useState(false);
  const first = branches.find((branch) => branch.default) ?? branches[0];
  return (
    <>
      <Button disabled={first === undefined} onClick={() => setCreating(true)}>
        <Icon name="branch" /> New branch
      </Button>
      <Button
        tone="primary"
        disabled={first === undefined}
        onClick={() => navigate({ search: { connect: first?.id } })}
      >
        Connect
      </Button>
      {isCreating && first !== undefined && (
        <CreateBranch
          projectId={project.id}
          branches={branches}
          parentId={first.id}
          onClose={() => setCreating(false)}
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

interface BranchesProps {
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

function Branches({ branches, endpoints, operations }: BranchesProps) {
  const awake = endpoints.filter(({ current_state }) => current_state === 'active').length;
  return (
    <section aria-label="Branches">
      <p className="hint branch-count">
        {count(branches.length, 'branch').replace('branchs', 'branches')}, {count(endpoints.length, 'compute')}, {awake}{' '}
        awake
      </p>
      <BranchTree branches={branches} endpoints={endpoints} operations={operations} />
    </section>
  );
}
