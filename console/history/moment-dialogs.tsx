/** What is made of a moment: a new branch, or the branch itself as it was. */
import { useNavigate } from '@tanstack/react-router';
import { api, at } from '../api/client.ts';
import type { Branch, CreateProjectBranchReply } from '../api/generated.ts';
import { useForm } from '../forms/use-form.ts';
import { momentOf } from '../target/moment.ts';
import { FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';

interface MomentDialogProps {
  readonly branch: Branch;
  /** The moment, as it was picked or typed. */
  readonly text: string;
  readonly onClose: () => void;
}

const pathOf = ({ project_id }: Branch) => at`/projects/${project_id}/branches`;

export function BranchAt({ branch, text, onClose }: MomentDialogProps) {
  const navigate = useNavigate();
  const form = useForm({
    initial: { name: '' },
    send: ({ name }) => {
      const { lsn, timestamp } = momentOf(text);
      const named = name.trim() === '' ? {} : { name: name.trim() };
      const made = { parent_id: branch.id, parent_lsn: lsn, parent_timestamp: timestamp, ...named };
      const body = { branch: made, endpoints: [{ type: 'read_write' }] };
      return api<CreateProjectBranchReply>('POST', pathOf(branch), { body });
    },
    refresh: [['project', branch.project_id]],
    onDone: ({ branch: made }) => {
      onClose();
      const params = { projectId: branch.project_id, branchId: made.id };
      navigate({ to: '/projects/$projectId/branches/$branchId', params });
    },
  });
  return (
    <FormDialog title={`Branch from ${branch.name} at ${text}`} submit="Create branch" form={form} onClose={onClose}>
      <p>The new branch begins with everything that was committed by then. {branch.name} goes on as it is.</p>
      <TextField label="Name" {...form.field('name')} maxLength={256} placeholder="before-the-mistake" autoFocus />
    </FormDialog>
  );
}

export function RestoreTo({ branch, text, onClose }: MomentDialogProps) {
  const form = useForm({
    initial: { name: '' },
    send: ({ name }) => {
      const { lsn, timestamp } = momentOf(text);
      const source = { source_branch_id: branch.id, source_lsn: lsn, source_timestamp: timestamp };
      const body = { ...source, preserve_under_name: name.trim() };
      return api<object>('POST', `${pathOf(branch)}/${encodeURIComponent(branch.id)}/restore`, { body });
    },
    refresh: [['project', branch.project_id]],
    done: `${branch.name} is being restored.`,
    onDone: onClose,
  });
  return (
    <FormDialog
      title={`Restore ${branch.name} to ${text}`}
      submit="Restore"
      tone="danger"
      form={form}
      disabled={form.values.name.trim() === ''}
      onClose={onClose}
    >
      <p>Its data, roles and databases go back to that moment. Host names stay; connections drop briefly.</p>
      <TextField
        label="Keep the present data as a branch named"
        hint="Needed: nothing of the present is lost."
        {...form.field('name')}
        maxLength={256}
        placeholder={`${branch.name}_old`}
        autoFocus
      />
    </FormDialog>
  );
}
