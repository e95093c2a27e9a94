/** Adds a compute to a branch: its primary, or one more read replica. */
import { api, at } from '../api/client.ts';
import type { Branch, Endpoint } from '../api/generated.ts';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { initialSizing, SizingFields, sizingBody } from './sizing-fields.tsx';

interface AddComputeProps {
  readonly branch: Branch;
  readonly type: Endpoint['type'];
  readonly onClose: () => void;
}

export function AddCompute({ branch, type, onClose }: AddComputeProps) {
  const form = useForm({
    initial: { sizing: initialSizing },
    send: ({ sizing }) => {
      const endpoint = { branch_id: branch.id, type, ...sizingBody(sizing) };
      return api<object>('POST', at`/projects/${branch.project_id}/endpoints`, { body: { endpoint } });
    },
    refresh: [['project', branch.project_id]],
    onDone: onClose,
  });
  const isReplica = type === 'read_only';
  return (
    <FormDialog
      title={isReplica ? `Add a read replica to ${branch.name}` : `Add a primary compute to ${branch.name}`}
      submit="Add"
      form={form}
      onClose={onClose}
    >
      {isReplica && (
        <p>It has a hostname, a size and a suspend timeout of its own, and may be a moment behind the primary.</p>
      )}
      <SizingFields sizing={form.values.sizing} onChange={(sizing) => form.set({ sizing })} />
    </FormDialog>
  );
}
