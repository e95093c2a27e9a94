/** Adds a compute to a branch: its primary, or one more read replica. */
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import type { Branch, Endpoint } from '../api/types.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { initialSizing, type Sizing, SizingFields, sizingBody } from './sizing-fields.tsx';

interface AddComputeProps {
  readonly branch: Branch;
  readonly type: Endpoint['type'];
  readonly onClose: () => void;
}

export function AddCompute({ branch, type, onClose }: AddComputeProps) {
  const [sizing, setSizing] = useState<Sizing>(initialSizing);
  const path = at`/projects/${branch.project_id}/endpoints`;
  const add = useAction((endpoint: object) => api<object>('POST', path, { body: { endpoint } }), {
    refresh: [['project', branch.project_id]],
    showsFailure: true,
    onDone: onClose,
  });
  const isReplica = type === 'read_only';
  return (
    <FormDialog
      title={isReplica ? `Add a read replica to ${branch.name}` : `Add a primary compute to ${branch.name}`}
      submit="Add"
      busy={add.isPending}
      error={add.error}
      onSubmit={() => add.mutate({ branch_id: branch.id, type, ...sizingBody(sizing) })}
      onClose={onClose}
    >
      {isReplica && <p>It has a host, a size and a sleep of its own, and may be a moment behind.</p>}
      <SizingFields sizing={sizing} onChange={setSizing} />
    </FormDialog>
  );
}
