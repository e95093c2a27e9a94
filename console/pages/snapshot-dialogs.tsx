/** What is done with snapshots: taken, restored to a branch, put in the place of another branch, deleted. */
import { useNavigate } from '@tanstack/react-router';
import { api, at, withQuery } from '../api/client.ts';
import type { Branch, RestoreSnapshotReply, Snapshot } from '../api/generated.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { momentOf } from '../target/moment.ts';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { CheckField, SelectField, TextField } from '../ui/field.tsx';
import { expiryChoices, expiryOf } from './create-branch.tsx';

interface DialogProps {
  readonly branch: Branch;
  readonly onClose: () => void;
}

const branchPath = ({ project_id, id }: Branch) => at`/projects/${project_id}/branches/${id}`;
const snapshotPath = ({ project_id }: Branch, { id }: Snapshot) => at`/projects/${project_id}/snapshots/${id}`;
const refreshOf = ({ project_id }: Branch) => [['project', project_id]];

export function TakeSnapshot({ branch, onClose }: DialogProps) {
  const form = useForm({
    initial: { name: '', moment: '', days: '' },
    send: ({ name, moment, days }) => {
      const query = {
        name: name.trim() || undefined,
        ...(moment.trim() === '' ? {} : momentOf(moment)),
        expires_at: days === '' ? undefined : expiryOf(days),
      };
      return api<object>('POST', withQuery(`${branchPath(branch)}/snapshot`, query));
    },
    refresh: refreshOf(branch),
    done: 'The snapshot is being taken.',
    onDone: onClose,
  });
  return (
    <FormDialog title={`Snapshot of ${branch.name}`} submit="Take snapshot" form={form} onClose={onClose}>
      <p>It keeps the data, roles and databases, also after the branch is deleted. Nobody is disconnected.</p>
      <TextField label="Name" {...form.field('name')} maxLength={256} placeholder="before the migration" autoFocus />
      <TextField
        label="At"
        hint="A time in your time zone, such as 2026-01-31 12:00:00, or an LSN, within the history of the branch. Empty: now."
        {...form.field('moment')}
        maxLength={64}
      />
      <SelectField label="Expires" {...form.field('days')} choices={expiryChoices} />
    </FormDialog>
  );
}

interface RestoreProps extends DialogProps {
  readonly snapshot: Snapshot;
  readonly branches: readonly Branch[];
}

export function RestoreSnapshot({ branch, branches, snapshot, onClose }: RestoreProps) {
  const navigate = useNavigate();
  const source = branches.find(({ id }) => id === snapshot.source_branch_id);
  const form = useForm({
    initial: { name: '', target: source?.id ?? branch.id, isFinal: false },
    send: ({ name, target, isFinal }) => {
      const body = {
        ...(name.trim() !== '' && { name: name.trim() }),
        target_branch_id: target,
        finalize_restore: isFinal,
      };
      return api<RestoreSnapshotReply>('POST', `${snapshotPath(branch, snapshot)}/restore`, { body });
    },
    refresh: refreshOf(branch),
    done: `${snapshot.name} is being restored.`,
    onDone: (restored) => {
      onClose();
      const params = { projectId: branch.project_id, branchId: restored.branch.id };
      navigate({ to: '/projects/$projectId/branches/$branchId', params });
    },
  });
  const { isFinal } = form.values;
  return (
    <FormDialog
      title={`Restore ${snapshot.name}`}
      submit="Restore"
      tone={isFinal ? 'danger' : 'primary'}
      form={form}
      onClose={onClose}
    >
      <p>The snapshot becomes a new branch. It can be looked at before it takes the place of another one.</p>
      {!isFinal && <TextField label="Name of the new branch" {...form.field('name')} maxLength={256} autoFocus />}
      <SelectField
        label="To replace"
        {...form.field('target')}
        choices={branches.map(({ id, name }) => ({ value: id, text: name }))}
      />
      <CheckField
        label="Replace it at once"
        hint="Its computes and its name move to the restored data; connections drop briefly. It stays under another name."
        {...form.check('isFinal')}
      />
    </FormDialog>
  );
}

export function FinalizeRestore({ branch, branches, onClose }: Omit<RestoreProps, 'snapshot'>) {
  const target = branches.find(({ id }) => id === branch.restored_as);
  const form = useForm({
    initial: { name: '' },
    send: ({ name }) => {
      const body = name.trim() === '' ? {} : { name: name.trim() };
      return api<object>('POST', `${branchPath(branch)}/finalize_restore`, { body });
    },
    refresh: refreshOf(branch),
    done: `${branch.name} takes the place of ${target?.name ?? 'the other branch'}.`,
    onDone: onClose,
  });
  return (
    <FormDialog title={`Replace ${target?.name ?? ''}`} submit="Replace" tone="danger" form={form} onClose={onClose}>
      <p>Its computes, host names and name move to this branch; connections drop briefly. It keeps its data.</p>
      <TextField
        label="New name of the branch that is replaced"
        hint="Empty: its name and the time."
        {...form.field('name')}
        maxLength={256}
        autoFocus
      />
    </FormDialog>
  );
}

export function DeleteSnapshot({ branch, snapshot, onClose }: DialogProps & { readonly snapshot: Snapshot }) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', snapshotPath(branch, snapshot)),
    refresh: refreshOf(branch),
    done: `Snapshot ${snapshot.name} is deleted.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Delete snapshot" submit="Delete snapshot" form={remove} onClose={onClose}>
      <p>{snapshot.name} is deleted and cannot be brought back. Branches that were restored from it stay.</p>
    </ConfirmDialog>
  );
}
