/** What is done to a branch with a question first. */
import { Link } from '@tanstack/react-router';
import { api, at } from '../api/client.ts';
import type { Branch } from '../api/generated.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { ConfirmDialog, Dialog, FormDialog } from '../ui/dialog.tsx';
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

function useUpdate<Values extends object>(
  { branch, onClose }: BranchDialogProps,
  initial: Values,
  changeOf: (values: Values) => object,
) {
  return useForm({
    initial,
    send: (values) => api<object>('PATCH', pathOf(branch), { body: { branch: changeOf(values) } }),
    refresh: refreshOf(branch),
    onDone: onClose,
  });
}

function Rename(props: BranchDialogProps) {
  const form = useUpdate(props, { name: props.branch.name }, ({ name }) => ({ name: name.trim() }));
  const isEmpty = form.values.name.trim() === '';
  return (
    <FormDialog title="Rename branch" submit="Rename" form={form} disabled={isEmpty} onClose={props.onClose}>
      <TextField label="Name" {...form.field('name')} maxLength={256} autoFocus />
    </FormDialog>
  );
}

function MakeDefault({ branch, onClose }: BranchDialogProps) {
  const update = useConfirm({
    send: () => api<object>('POST', `${pathOf(branch)}/set_as_default`),
    refresh: refreshOf(branch),
    onDone: onClose,
  });
  return (
    <FormDialog title="Make default" submit="Make default" form={update} onClose={onClose}>
      <p>{branch.name} becomes the branch that is meant when none is named. Connections are not touched.</p>
    </FormDialog>
  );
}

function Protect(props: BranchDialogProps) {
  const { branch, onClose } = props;
  const next = !branch.protected;
  const form = useUpdate(props, {}, () => ({ protected: next }));
  return (
    <FormDialog
      title={next ? 'Protect branch' : 'Stop protecting branch'}
      submit={next ? 'Protect' : 'Stop protecting'}
      form={form}
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

function Expiry(props: BranchDialogProps) {
  const form = useUpdate(props, { days: '' }, ({ days }) => ({ expires_at: days === '' ? null : expiryOf(days) }));
  return (
    <FormDialog title="Expiry" submit="Save" form={form} onClose={props.onClose}>
      <SelectField
        label="Expires"
        hint="Its data and computes are deleted then."
        {...form.field('days')}
        choices={expiryChoices}
      />
    </FormDialog>
  );
}

/** From its parent this is what people call a reset. */
function Restore({ branch, branches, onClose }: BranchDialogProps) {
  const others = branches.filter(({ id }) => id !== branch.id);
  const hasChildren = branches.some(({ parent_id }) => parent_id === branch.id);
  const parent = others.find(({ id }) => id === branch.parent_id);
  const form = useForm({
    initial: { source: (parent ?? others[0])?.id ?? '', keptName: '' },
    send: ({ source, keptName }) => {
      const kept = keptName.trim();
      const body = { source_branch_id: source, ...(kept === '' ? {} : { preserve_under_name: kept }) };
      return api<object>('POST', `${pathOf(branch)}/restore`, { body });
    },
    refresh: refreshOf(branch),
    done: `${branch.name} is being restored.`,
    onDone: onClose,
  });
  const { source, keptName } = form.values;
  return (
    <FormDialog
      title={`Restore ${branch.name}`}
      submit="Restore"
      tone="danger"
      form={form}
      disabled={source === '' || (hasChildren && keptName.trim() === '')}
      onClose={onClose}
    >
      <p>Its data, roles and databases become those of the other branch. Host names stay; connections drop briefly.</p>
      <SelectField
        label="To the head of"
        {...form.field('source')}
        choices={others.map(({ id, name }) => ({
          value: id,
          text: id === branch.parent_id ? `${name} (its parent)` : name,
        }))}
      />
      <TextField
        label="Keep the present data as a branch named"
        hint={
          hasChildren
            ? 'Needed, because branches were made from this one; they move under it.'
            : 'Empty: the present data is lost.'
        }
        {...form.field('keptName')}
        maxLength={256}
      />
    </FormDialog>
  );
}

/** What cannot be deleted is said before anybody types a name. */
function Delete(props: BranchDialogProps) {
  const children = props.branches.filter(({ parent_id }) => parent_id === props.branch.id);
  return children.length === 0 ? <ConfirmDelete {...props} /> : <HasChildren {...props}>{children}</HasChildren>;
}

interface HasChildrenProps extends BranchDialogProps {
  readonly children: readonly Branch[];
}

/** More than these would fill the screen. */
const namedMax = 12;

function HasChildren({ branch, children, onClose }: HasChildrenProps) {
  return (
    <Dialog title="Delete branch" onClose={onClose}>
      <div className="dialog-body">
        <p>
          {branch.name} cannot be deleted while it has children. Delete{' '}
          {children.length === 1 ? 'this one' : `these ${children.length}`} first:
        </p>
        <ul className="named-list">
          {children.slice(0, namedMax).map(({ id, name, project_id: projectId }) => (
            <li key={id}>
              <Link to="/projects/$projectId/branches/$branchId" params={{ projectId, branchId: id }} onClick={onClose}>
                {name}
              </Link>
            </li>
          ))}
        </ul>
        {children.length > namedMax && <p className="hint">And {children.length - namedMax} more.</p>}
      </div>
    </Dialog>
  );
}

function ConfirmDelete({ branch, onClose, onDeleted }: BranchDialogProps) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', pathOf(branch)),
    refresh: [...refreshOf(branch), ['deleted']],
    done: `Branch ${branch.name} is deleted.`,
    onDone: onDeleted,
  });
  return (
    <ConfirmDialog title="Delete branch" submit="Delete branch" typed={branch.name} form={remove} onClose={onClose}>
      <p>Its data and its computes are deleted. It can be recovered under Deleted until the time shown there.</p>
    </ConfirmDialog>
  );
}
