/** A branch's computes under its heading, and the button that adds one. */
import { type ReactNode, useState } from 'react';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icons.tsx';
import { AddCompute } from './add-compute.tsx';
import { ComputeRow } from './compute-row.tsx';

interface BranchComputesProps {
  readonly branch: Branch;
  /** All of the project, as a compute can be moved between branches. */
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
  /** The heading. */
  readonly children: ReactNode;
}

export function BranchComputes({ branch, branches, endpoints, operations, children }: BranchComputesProps) {
  const [isAdding, setAdding] = useState(false);
  const own = endpoints.filter(({ branch_id }) => branch_id === branch.id).sort(primaryFirst);
  const hasPrimary = own.some(({ type }) => type === 'read_write');
  const isReady = branch.current_state === 'ready' && branch.pending_state === undefined;
  return (
    <>
      <header>
        {children}
        <Button tone="quiet" small disabled={!isReady} onClick={() => setAdding(true)}>
          <Icon name="plus" /> {hasPrimary ? 'Read replica' : 'Primary compute'}
        </Button>
      </header>
      {own.map((endpoint) => (
        <ComputeRow
          key={endpoint.id}
          endpoint={endpoint}
          branches={branches}
          endpoints={endpoints}
          operations={operations}
        />
      ))}
      {own.length === 0 && <p className="no-compute soft">No compute: nobody can connect until one is added.</p>}
      {isAdding && (
        <AddCompute branch={branch} type={hasPrimary ? 'read_only' : 'read_write'} onClose={() => setAdding(false)} />
      )}
    </>
  );
}

const primaryFirst = (a: Endpoint, b: Endpoint) =>
  Number(a.type === 'read_only') - Number(b.type === 'read_only') || a.created_at.localeCompare(b.created_at);
