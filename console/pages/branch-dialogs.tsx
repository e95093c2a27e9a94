/** What is done to a branch with a question first. */
import { useState } from 'react';
import { useAction } from '../api/action.ts';
import { api, at } from '../api/client.ts';
import type { Branch } from '../api/types.ts';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { expiryChoices, expiryOf } from './create-branch.tsx';

export type BranchDialogName = 'rename' | 'default' | 'protect' | 'expiry' | 'restore' | 'delete';

interface BranchDialogProps {
  readonly branch: Branch;
  readonly branches: readonly Branch[];
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function BranchDialogs({ name, ...props }: BranchDialogProps & { readonly name: BranchDialogName }) {
  switch (name) {
    case 'rename':
      return <Rename {...props} />;
    case 'default':
      return <MakeDefault {...props} />;
    case 'protect':
      return <Protect {...props} />;
    case 'expiry':
      return <Expiry {...props} />;
    case 'restore':
      return <Restore {...props} />;
    case 'delete':
      return <Delete {...props} />;
  }
}

const pathOf = ({ project_id, id }: Branch) => at`/projects/${project_id}/branches/${id}`;
const refreshOf = ({ project_id }: Branch) => [['project', project_id]];

function useUpdate(branch: Branch, onDone: () => void) {
  return useAction((change: object) => api<object>('PATCH', pathOf(branch), { body: { branch: change } }), {
    refresh: refreshOf(branch),
    showsFailure: true,
    onDone,
  });
}

function Rename({ branch, onClose }: BranchDialogProps) {
  const [name, setName] = useState(branch.name);
  const update = useUpdate(branch, onClose);
  return (
    <FormDialog
      title="Rename branch"
      submit="Rename"
      busy={update.isPending}
      disabled={name.trim() === ''}
      error={update.error}
      onSubmit={() => update.mutate({ name: name.trim() })}
      onClose={onClose}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={256} autoFocus />
    </FormDialog>
  );
}

function MakeDefault({ branch, onClose }: BranchDialogProps) {
  const update = useAction(() => api<object>('POST', `${pathOf(branch)}/set_as_default`), {
    refresh: refreshOf(branch),
    showsFailure: true,
    onDone: onClose,
  });
  return (
    <FormDialog
      title="Make default"
      submit="Make default"
      busy={update.isPending}
      error={update.error}
      onSubmit={() => update.mutate()}
      onClose={onClose}
    >
      <p>{branch.name} becomes the branch that is meant when none is named. Connections are not touched.</p>
    </FormDialog>
  );
}

function Protect({ branch, onClose }: BranchDialogProps) {
  const update = useUpdate(branch, onClose);
  const next = !branch.protected;
  return (
    <FormDialog
      title={next ? 'Protect branch' : 'Stop protecting branch'}
      submit={next ? 'Protect' : 'Stop protecting'}
      busy={update.isPending}
      error={update.error}
      onSubmit={() => update.mutate({ protected: next })}
      onClose={onClose}
    >
      <p>
        {next
          ? `${branch.name} cannot be deleted while it is protected, and the SQL editor asks before it writes.`
          : `${branch.name} can be deleted again.`}
      </p>
    </FormDialog>
  );
}

function Expiry({ branch, onClose }: BranchDialogProps) {
  const [days, setDays] = useState('');
  const update = useUpdate(branch, onClose);
  return (
    <FormDialog
      title="Expiry"
      submit="Save"
      busy={update.isPending}
      error={update.error}
      onSubmit={() => update.mutate({ expires_at: days === '' ? null : expiryOf(days) })}
      onClose={onClose}
    >
      <SelectField
        label="Deletes itself"
        hint="With its data and its computes."
        value={days}
        choices={expiryChoices}
        onChange={setDays}
      />
    </FormDialog>
  );
}

/** From its parent this is what people call a reset. */
function Restore({ branch, branches, onClose }: BranchDialogProps) {
  const others = branches.filter(({ id }) => id !== branch.id);
  const hasChildren = branches.some(({ parent_id }) => parent_id === branch.id);
  const [source, setSource] = useState(others.find(({ id }) => id === branch.parent_id)?.id ?? others[0]?.id ?? '');
  const [keptName, setKeptName] = useState('');
  const restore = useAction((body: object) => api<object>('POST', `${pathOf(branch)}/restore`, { body }), {
    refresh: refreshOf(branch),
    done: `${branch.name} is being restored.`,
    showsFailure: true,
    onDone: onClose,
  });
  const submit = () =>
    restore.mutate({
      source_branch_id: source,
      ...(keptName.trim() === '' ? {} : { preserve_under_name: keptName.trim() }),
    });
  return (
    <FormDialog
      title={`Restore ${branch.name}`}
      submit="Restore"
      tone="danger"
      busy={restore.isPending}
      disabled={source === '' || (hasChildren && keptName.trim() === '')}
      error={restore.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <p>Its data, roles and databases become those of the other branch. Host names stay; connections drop briefly.</p>
      <SelectField
        label="To the head of"
        value={source}
        choices={others.map(({ id, name }) => ({
          value: id,
          text: id === branch.parent_id ? `${name} (its parent)` : name,
        }))}
        onChange={setSource}
      />
      <TextField
        label="Keep the present data as a branch named"
        hint={
          hasChildren
            ? 'Needed, because branches were made from this one; they move under it.'
            : 'Empty: the present data are lost.'
        }
        value={keptName}
        onChange={setKeptName}
        maxLength={256}
      />
    </FormDialog>
  );
}

function Delete({ branch, onClose, onDeleted }: BranchDialogProps) {
  const remove = useAction(() => api<object>('DELETE', pathOf(branch)), {
    refresh: refreshOf(branch),
    done: `Branch ${branch.name} is deleted.`,
    showsFailure: true,
    onDone: onDeleted,
  });
  return (
    <ConfirmDialog
      title="Delete branch"
      submit="Delete branch"
      typed={branch.name}
      busy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p>Its data, its computes and their host names are deleted. This cannot be undone.</p>
    </ConfirmDialog>
  );
}
