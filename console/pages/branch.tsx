/** One branch: what it is, its computes, and what can be done to it. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { Branch } from '../api/generated.ts';
import { branchesQuery, deletedQuery, endpointsQuery, operationsQuery } from '../api/queries.ts';
import { BranchComputes } from '../computes/branch-computes.tsx';
import { BranchHistory } from '../history/branch-history.tsx';
import { Ago, Badge, Card, CopyableId, PageHead } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes, milliseconds } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { type BranchDialogName, BranchDialogs } from './branch-dialogs.tsx';
import { CreateBranch } from './create-branch.tsx';
import { RecoverButton } from './deleted.tsx';
import { ReplicationSlots } from './logical-replication.tsx';
import { SchemaDiff } from './schema-diff.tsx';
import { Snapshots } from './snapshots.tsx';

const recentOperations = 60;

export function BranchPage() {
  const { projectId, branchId } = useParams({ from: '/projects/$projectId/branches/$branchId' });
  const branches = useQuery(branchesQuery(projectId));
  return (
    <Loaded query={branches}>
      {(found) => {
        const branch = found.find(({ id }) => id === branchId);
        return branch === undefined ? (
          <>
            <PageHead title="Branch" />
            <Gone projectId={projectId} branchId={branchId} />
          </>
        ) : (
          <BranchView branch={branch} branches={found} />
        );
      }}
    </Loaded>
  );
}

/** One that was deleted can be brought back right here. */
function Gone({ projectId, branchId }: { readonly projectId: string; readonly branchId: string }) {
  const thing = useQuery(deletedQuery).data?.find(({ branch_id }) => branch_id === branchId);
  return (
    <Empty title="This branch is not there any more.">
      {thing !== undefined && (
        <div className="row">
          <span>
            {thing.name} was deleted <Ago at={thing.deleted_at} />, and is removed for good{' '}
            <Ago at={thing.recoverable_until} />.
          </span>
          <RecoverButton thing={thing} />
        </div>
      )}
      <Link to="/projects/$projectId" params={{ projectId }}>
        All branches
      </Link>
    </Empty>
  );
}

interface BranchViewProps {
  readonly branch: Branch;
  readonly branches: readonly Branch[];
}

function BranchView({ branch, branches }: BranchViewProps) {
  const [dialog, setDialog] = useState<BranchDialogName | null>(null);
  const [isBranching, setBranching] = useState(false);
  const navigate = useNavigate();
  const { project_id: projectId } = branch;
  const toDashboard = () => navigate({ to: '/projects/$projectId', params: { projectId } });
  return (
    <>
      <title>{`${branch.name} · Catnap`}</title>
      <PageHead title={branch.name} lead={<Lead branch={branch} />}>
        <Button onClick={() => setBranching(true)}>
          <Icon name="branch" /> Branch from here
        </Button>
        <Button
          tone="primary"
          onClick={() =>
            navigate({ to: '/projects/$projectId', params: { projectId }, search: { connect: branch.id } })
          }
        >
          Connect
        </Button>
      </PageHead>
      <div className="stack">
        <Computes branch={branch} branches={branches} />
        <div className="grid-two">
          <Facts branch={branch} branches={branches} />
          <Card title="Actions">
            <div className="row">
              <Button onClick={() => setDialog('rename')}>Rename</Button>
              {!branch.default && <Button onClick={() => setDialog('default')}>Make default</Button>}
              <Button onClick={() => setDialog('protect')}>{branch.protected ? 'Stop protecting' : 'Protect'}</Button>
              {!branch.default && <Button onClick={() => setDialog('expiry')}>Expiry</Button>}
              {branches.length > 1 && <Button onClick={() => setDialog('restore')}>Reset or restore</Button>}
              <Button onClick={() => setDialog('delete')} disabled={branch.default || branch.protected}>
                Delete
              </Button>
            </div>
            {(branch.default || branch.protected) && (
              <p className="hint">
                {branch.default ? 'The default branch cannot be deleted.' : 'A protected branch cannot be deleted.'}
              </p>
            )}
          </Card>
        </div>
        <BranchHistory key={`history of ${branch.id}`} branch={branch} branches={branches} />
        <Snapshots key={branch.id} branch={branch} branches={branches} />
        <ReplicationSlots branch={branch} />
        <SchemaDiff branch={branch} branches={branches} />
      </div>
      {dialog !== null && (
        <BranchDialogs
          name={dialog}
          branch={branch}
          branches={branches}
          onClose={() => setDialog(null)}
          onDeleted={toDashboard}
        />
      )}
      {isBranching && (
        <CreateBranch
          projectId={projectId}
          branches={branches}
          parentId={branch.id}
          onClose={() => setBranching(false)}
        />
      )}
    </>
  );
}

function Lead({ branch }: { readonly branch: Branch }) {
  return (
    <span className="meta">
      <CopyableId id={branch.id} label="the branch id" />
      {branch.default && <Badge tone="accent">default</Badge>}
      {branch.protected && <Badge tone="warn">protected</Badge>}
      <Badge tone={branch.current_state === 'ready' ? 'good' : 'warn'}>{branch.current_state}</Badge>
    </span>
  );
}

function Facts({ branch, branches }: BranchViewProps) {
  const parent = branches.find(({ id }) => id === branch.parent_id);
  return (
    <Card title="Details">
      <dl className="facts">
        {parent !== undefined && (
          <>
            <dt>Created from</dt>
            <dd>
              <Link
                to="/projects/$projectId/branches/$branchId"
                params={{ projectId: branch.project_id, branchId: parent.id }}
              >
                {parent.name}
              </Link>
              {branch.parent_lsn !== undefined && <span className="soft"> at {branch.parent_lsn}</span>}
            </dd>
          </>
        )}
        <dt>Created</dt>
        <dd>
          <Ago at={branch.created_at} />
        </dd>
        {branch.logical_size !== undefined && (
          <>
            <dt>Data</dt>
            <dd>{bytes(branch.logical_size)}</dd>
          </>
        )}
        {branch.receipt !== undefined && <Receipt receipt={branch.receipt} />}
        <dt>Expires</dt>
        <dd>{branch.expires_at === undefined ? 'never' : <Ago at={branch.expires_at} />}</dd>
        {branch.last_reset_at !== undefined && (
          <>
            <dt>Last restored</dt>
            <dd>
              <Ago at={branch.last_reset_at} />
            </dd>
          </>
        )}
      </dl>
    </Card>
  );
}

function Receipt({ receipt }: { readonly receipt: NonNullable<Branch['receipt']> }) {
  const how = receipt.method === 'reflink' ? 'Shares blocks with its source' : 'A full copy';
  return (
    <>
      <dt>Receipt</dt>
      <dd>
        {how}, created in {milliseconds(receipt.duration_ms)}: {bytes(receipt.bytes_shared)} shared,{' '}
        {bytes(receipt.bytes_copied)} written
      </dd>
    </>
  );
}

function Computes({ branch, branches }: BranchViewProps) {
  const endpoints = useQuery(endpointsQuery(branch.project_id));
  const operations = useQuery(operationsQuery(branch.project_id, recentOperations)).data ?? [];
  return (
    <Loaded query={endpoints}>
      {(found) => (
        <section className="branch" aria-label="Computes">
          <BranchComputes branch={branch} branches={branches} endpoints={found} operations={operations}>
            <h2>Computes</h2>
          </BranchComputes>
        </section>
      )}
    </Loaded>
  );
}
