/** One branch on one line: its place in the tree, its compute, and one button and one menu for what can be done. */
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { AddCompute } from '../computes/add-compute.tsx';
import { type ComputeDialogName, ComputeDialogs } from '../computes/compute-dialogs.tsx';
import { ComputeState, computeItems, StartOrSuspend } from '../computes/compute-parts.tsx';
import { isOpen } from '../operations/words.ts';
import { Ago, Badge } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { bytes } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { MenuButton, type MenuItem } from '../ui/menu.tsx';
import { rangeText, shortRange } from '../ui/sizes.ts';
import type { TreeRow } from './tree-rows.ts';

interface BranchLineProps {
  readonly row: TreeRow;
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
  readonly onToggle: () => void;
}

type Open = { readonly dialog: ComputeDialogName; readonly endpoint: Endpoint } | 'add';

const indent = 18;

export function BranchLine({ row, branches, endpoints, operations, onToggle }: BranchLineProps) {
  const { branch, primary, replicas, depth } = row;
  const [open, setOpen] = useState<Open | null>(null);
  const pending = operations.findLast((one) => one.endpoint_id === primary?.id && primary !== undefined && isOpen(one));
  const isReady = branch.current_state === 'ready' && branch.pending_state === undefined;
  return (
    <article className="branch-line" aria-label={`Branch ${branch.name}`}>
      <div className="column-name" style={{ paddingLeft: depth * indent }}>
        <Fold row={row} onToggle={onToggle} />
        <BranchName row={row} />
      </div>
      <div className="column-state">
        {primary === undefined ? (
          <span className="soft">no compute</span>
        ) : (
          <ComputeState endpoint={primary} pending={pending} />
        )}
        {primary?.name !== undefined && <span className="hint">{primary.name}</span>}
        {replicas.length > 0 && (
          <Badge>
            {replicas.length} {replicas.length === 1 ? 'replica' : 'replicas'}
          </Badge>
        )}
      </div>
      <div className="column-size">{primary !== undefined && <Size endpoint={primary} />}</div>
      <div className="column-data">{branch.logical_size !== undefined && bytes(branch.logical_size)}</div>
      <div className="column-used">{primary?.last_active !== undefined && <Ago at={primary.last_active} />}</div>
      <div className="column-actions">
        {primary === undefined ? (
          <span className="add-compute">
            <Button small tone="quiet" disabled={!isReady} onClick={() => setOpen('add')}>
              Add compute
            </Button>
          </span>
        ) : (
          <StartOrSuspend endpoint={primary} isPending={pending !== undefined} />
        )}
        <LineMenu row={row} isReady={isReady} isPending={pending !== undefined} onOpen={setOpen} />
      </div>
      {open === 'add' && (
        <AddCompute
          branch={branch}
          type={primary === undefined ? 'read_write' : 'read_only'}
          onClose={() => setOpen(null)}
        />
      )}
      {open !== null && open !== 'add' && (
        <ComputeDialogs
          name={open.dialog}
          endpoint={open.endpoint}
          branches={branches}
          endpoints={endpoints}
          onClose={() => setOpen(null)}
        />
      )}
    </article>
  );
}

function Fold({
  row: { branch, childCount, isCollapsed, isFound },
  onToggle,
}: Pick<BranchLineProps, 'row' | 'onToggle'>) {
  if (childCount === 0 || isFound) return <span className="fold" />;
  return (
    <button
      type="button"
      className="fold"
      aria-expanded={!isCollapsed}
      aria-label={`${isCollapsed ? 'Expand' : 'Collapse'} ${branch.name}`}
      onClick={onToggle}
    >
      <Icon name="chevron" />
    </button>
  );
}

function BranchName({ row: { branch, childCount, isCollapsed, isFound, parentName } }: { readonly row: TreeRow }) {
  return (
    <>
      <Link
        to="/projects/$projectId/branches/$branchId"
        params={{ projectId: branch.project_id, branchId: branch.id }}
        title={branch.name}
      >
        {branch.name}
      </Link>
      {isCollapsed && !isFound && childCount > 0 && <span className="hint">+{childCount}</span>}
      {parentName !== undefined && (
        // The indent says so to those who see it.
        <span className={isFound ? 'hint' : 'visually-hidden'}>from {parentName}</span>
      )}
      {branch.default && <Badge tone="accent">default</Badge>}
      {branch.protected && (
        <Badge tone="warn">
          <Icon name="lock" /> <span className="badge-word">protected</span>
        </Badge>
      )}
      {branch.current_state !== 'ready' && <Badge tone="warn">{branch.current_state}</Badge>}
      {branch.expires_at !== undefined && (
        <span className="expiry" title="Expires">
          <Badge>
            <Icon name="clock" /> <span className="visually-hidden">expires </span>
            <Ago at={branch.expires_at} />
          </Badge>
        </span>
      )}
    </>
  );
}

function Size({ endpoint }: { readonly endpoint: Endpoint }) {
  const { autoscaling_limit_min_cu: min, autoscaling_limit_max_cu: max, current_cu: now } = endpoint;
  return (
    <span title={`${rangeText(min, max)}${now === undefined || min === max ? '' : `, now ${now} CU`}`}>
      {shortRange(min, max)}
    </span>
  );
}

interface LineMenuProps {
  readonly row: TreeRow;
  readonly isReady: boolean;
  readonly isPending: boolean;
  readonly onOpen: (open: Open) => void;
}

function LineMenu({ row: { branch, primary, replicas }, isReady, isPending, onOpen }: LineMenuProps) {
  const navigate = useNavigate();
  const params = { projectId: branch.project_id };
  const ofBranch = { branch: branch.id };
  const items: MenuItem[] = [
    {
      label: 'Connect',
      onSelect: () => navigate({ to: '/projects/$projectId', params, search: { connect: branch.id } }),
    },
    {
      label: 'SQL editor',
      onSelect: () => navigate({ to: '/projects/$projectId/sql', params, search: ofBranch }),
    },
    { label: 'Tables', onSelect: () => navigate({ to: '/projects/$projectId/tables', params, search: ofBranch }) },
    {
      label: 'Monitoring',
      onSelect: () => navigate({ to: '/projects/$projectId/monitoring', params, search: ofBranch }),
    },
    ...(primary === undefined
      ? [{ label: 'Add compute', isApart: true, isDisabled: !isReady, onSelect: () => onOpen('add') }]
      : [
          { label: 'Add read replica', isApart: true, isDisabled: !isReady, onSelect: () => onOpen('add') },
          ...computeItems(primary, isPending, (dialog) => onOpen({ dialog, endpoint: primary })),
        ]),
    ...replicas.map((replica) => ({
      label: `Delete replica ${replica.name ?? replica.id}`,
      isBad: true,
      isApart: primary === undefined,
      onSelect: () => onOpen({ dialog: 'delete' as const, endpoint: replica }),
    })),
  ];
  return (
    <MenuButton
      small
      tone="quiet"
      menu={`Branch ${branch.name}`}
      aria-label={`Actions of ${branch.name}`}
      items={items}
    >
      <Icon name="more" />
    </MenuButton>
  );
}
