/** Makes a branch from the head of another. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import type { Branch } from '../api/types.ts';
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
  const [name, setName] = useState('');
  const [parent, setParent] = useState(parentId);
  const [days, setDays] = useState('');
  const [withCompute, setWithCompute] = useState(true);
  const [isSchemaOnly, setSchemaOnly] = useState(false);
  const create = useAction(
    (body: object) => api<{ branch: Branch }>('POST', at`/projects/${projectId}/branches`, { body }),
    {
      refresh: [['project', projectId]],
      showsFailure: true,
      onDone: ({ branch }) => {
        onClose();
        navigate({ to: '/projects/$projectId/branches/$branchId', params: { projectId, branchId: branch.id } });
      },
    },
  );
  const submit = () =>
    create.mutate({
      branch: {
        parent_id: parent,
        ...(name.trim() === '' ? {} : { name: name.trim() }),
        ...(isSchemaOnly ? { init_source: 'schema-only' } : {}),
        ...(days === '' ? {} : { expires_at: expiryOf(days) }),
      },
      ...(withCompute ? { endpoints: [{ type: 'read_write' }] } : {}),
    });
  return (
    <FormDialog
      title="New branch"
      submit="Create branch"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={256} autoFocus placeholder="feature-x" />
      <SelectField
        label="From"
        hint="All its data as it is now. The parent goes on serving while the copy is made."
        value={parent}
        choices={branches.map((branch) => ({ value: branch.id, text: branch.name }))}
        onChange={setParent}
      />
      <CheckField
        label="Schema only"
        hint="Tables without their rows; sequences begin anew."
        checked={isSchemaOnly}
        onChange={setSchemaOnly}
      />
      <SelectField label="Deletes itself" value={days} choices={expiryChoices} onChange={setDays} />
      <CheckField label="With a compute, so that it can be used" checked={withCompute} onChange={setWithCompute} />
    </FormDialog>
  );
}
