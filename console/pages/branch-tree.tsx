/** Branches as the tree that they are: each under the one it was made from, with its computes. */
import { Link } from '@tanstack/react-router';
import type { Branch, Endpoint, Operation } from '../api/generated.ts';
import { Ago, Badge } from '../ui/bits.tsx';
import { bytes } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { BranchComputes } from './branch-computes.tsx';

interface TreeProps {
  readonly branches: readonly Branch[];
  readonly endpoints: readonly Endpoint[];
  readonly operations: readonly Operation[];
}

export function BranchTree(props: TreeProps) {
  const ids = new Set(props.branches.map(({ id }) => id));
  // A parent that is not in the list (it was deleted) makes its children stand at the top.
  const roots = props.branches.filter(({ parent_id }) => parent_id === undefined || !ids.has(parent_id));
  return <Level {...props} level={roots} />;
}

function Level({ level, ...props }: TreeProps & { readonly level: readonly Branch[] }) {
  return (
    <ul className="tree">
      {level.map((branch) => {
        const children = props.branches.filter(({ parent_id }) => parent_id === branch.id);
        return (
          <li key={branch.id}>
            <BranchNode branch={branch} {...props} />
            {children.length > 0 && <Level {...props} level={children} />}
          </li>
        );
      })}
    </ul>
  );
}

function BranchNode(props: TreeProps & { readonly branch: Branch }) {
  const { branch } = props;
  return (
    <article className="branch" aria-label={`Branch ${branch.name}`}>
      <BranchComputes {...props}>
        <BranchName branch={branch} />
      </BranchComputes>
    </article>
  );
}

function BranchName({ branch }: { readonly branch: Branch }) {
  return (
    <div className="branch-name">
      <Icon name="branch" />
      <Link to="/projects/$projectId/branches/$branchId" params={{ projectId: branch.project_id, branchId: branch.id }}>
        {branch.name}
      </Link>
      {branch.default && <Badge tone="accent">default</Badge>}
      {branch.protected && (
        <Badge tone="warn">
          <Icon name="lock" /> protected
        </Badge>
      )}
      {branch.current_state !== 'ready' && <Badge tone="warn">{branch.current_state}</Badge>}
      {branch.expires_at !== undefined && (
        <Badge tone="bad">
          deleted <Ago at={branch.expires_at} />
        </Badge>
      )}
      {branch.logical_size !== undefined && <span className="hint">{bytes(branch.logical_size)}</span>}
    </div>
  );
}
