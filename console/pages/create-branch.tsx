/** Makes a branch from the head of another. */
import { useNavigate } from '@tanstack/react-router';
import { api, at } from '../api/client.ts';
import type { Branch, CreateProjectBranchReply } from '../api/generated.ts';
import { useForm } from '../forms/use-form.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { CheckField, SelectField, TextField } from '../ui/field.tsx';

interface CreateBranchProps {
  readonly projectId: string;
  readonly branches: readonly Branch[];
  readonly parentId: string;
  readonly onClose: () => void;
}

const dayMs = 86_400_000;
export const expiryChoices = [
  { value: '', text: 'Never' },
  { value: '1', text: 'In 1 day' },
  { value: '7', text: 'In 7 days' },
  { value: '30', text: 'In 30 days' },
] as const;

/** A little less than asked for: the API takes 30 days at most, by its own clock. */
export const expiryOf = (days: string) => new Date(Date.now() + Number(days) * dayMs - 60_000).toISOString();

export function CreateBranch({ projectId, branches, parentId, onClose }: CreateBranchProps) {
  const navigate = useNavigate();
  const form = useForm({
    initial: { name: '', parent: parentId, days: '', withCompute: true, isSchemaOnly: false },
    send: (values) => {
      const name = values.name.trim();
      const branch = {
        parent_id: values.parent,
        ...(name === '' ? {} : { name }),
        ...(values.isSchemaOnly ? { init_source: 'schema-only' } : {}),
        ...(values.days === '' ? {} : { expires_at: expiryOf(values.days) }),
      };
      const body = { branch, ...(values.withCompute ? { endpoints: [{ type: 'read_write' }] } : {}) };
      return api<CreateProjectBranchReply>('POST', at`/projects/${projectId}/branches`, { body });
    },
    refresh: [['project', projectId]],
    onDone: ({ branch }) => {
      onClose();
      navigate({ to: '/projects/$projectId/branches/$branchId', params: { projectId, branchId: branch.id } });
    },
  });
  return (
    <FormDialog title="New branch" submit="Create branch" form={form} onClose={onClose}>
      <TextField label="Name" {...form.field('name')} maxLength={256} autoFocus placeholder="feature-x" />
      <SelectField
        label="From"
        hint="All its data as it is now. The parent goes on serving while the copy is made."
        {...form.field('parent')}
        choices={branches.map((branch) => ({ value: branch.id, text: branch.name }))}
      />
      <CheckField
        label="Schema only"
        hint="Tables without their rows; sequences start over."
        {...form.check('isSchemaOnly')}
      />
      <SelectField label="Expires" {...form.field('days')} choices={expiryChoices} />
      <CheckField label="Add a compute, so that clients can connect" {...form.check('withCompute')} />
    </FormDialog>
  );
}
