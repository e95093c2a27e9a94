/** Roles of a branch: make, show or reset a password, delete. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type {
  Branch,
  CreateProjectBranchRoleReply,
  GetProjectBranchRolePasswordReply,
  ResetProjectBranchRolePasswordReply,
  Role,
} from '../api/generated.ts';
import { rolesQuery } from '../api/queries.ts';
import { useAction } from '../forms/action.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { Badge, Card, Secret } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, Dialog, FormDialog } from '../ui/dialog.tsx';
import { CheckField, TextField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'reset' | 'delete'; readonly role: Role }
  | { readonly kind: 'password'; readonly name: string; readonly password: string };

const pathOf = (branch: Branch) => at`/projects/${branch.project_id}/branches/${branch.id}/roles`;

export function Roles({ branch }: { readonly branch: Branch }) {
  const roles = useQuery(rolesQuery(branch.project_id, branch.id));
  const [open, setOpen] = useState<Open | null>(null);
  const onClose = () => setOpen(null);
  const showPassword = (name: string, password: string) => setOpen({ kind: 'password', name, password });
  return (
    <Card
      title="Roles"
      actions={
        <Button small onClick={() => setOpen({ kind: 'create' })}>
          <Icon name="plus" /> New role
        </Button>
      }
    >
      <Loaded query={roles}>{(found) => <RoleTable branch={branch} roles={found} onOpen={setOpen} />}</Loaded>
      {open?.kind === 'create' && <CreateRole branch={branch} onClose={onClose} onMade={showPassword} />}
      {open?.kind === 'reset' && (
        <ResetPassword branch={branch} role={open.role} onClose={onClose} onReset={showPassword} />
      )}
      {open?.kind === 'delete' && <DeleteRole branch={branch} role={open.role} onClose={onClose} />}
      {open?.kind === 'password' && (
        <Dialog title={`Password of ${open.name}`} onClose={onClose}>
          <div className="dialog-body">
            <Secret text={open.password} label="the password" />
          </div>
        </Dialog>
      )}
    </Card>
  );
}

interface RoleTableProps {
  readonly branch: Branch;
  readonly roles: readonly Role[];
  readonly onOpen: (open: Open) => void;
}

function RoleTable({ branch, roles, onOpen }: RoleTableProps) {
  const reveal = useAction(
    async (name: string) => ({
      name,
      ...(await api<GetProjectBranchRolePasswordReply>(
        'GET',
        `${pathOf(branch)}/${encodeURIComponent(name)}/reveal_password`,
      )),
    }),
    { refresh: [], onDone: ({ name, password }) => onOpen({ kind: 'password', name, password }) },
  );
  return (
    <Table label="Roles" columns={['Name']} hasActions>
      {roles.map((role) => (
        <tr key={role.name}>
          <td>
            <code>{role.name}</code> {role.authentication_method === 'no_login' && <Badge>cannot log in</Badge>}
          </td>
          <RowActions>
            {role.authentication_method !== 'no_login' && (
              <>
                <RowAction onClick={() => reveal.mutate(role.name)}>Password</RowAction>
                <RowAction onClick={() => onOpen({ kind: 'reset', role })}>Reset</RowAction>
              </>
            )}
            <RowAction disabled={role.protected === true} onClick={() => onOpen({ kind: 'delete', role })}>
              Delete
            </RowAction>
          </RowActions>
        </tr>
      ))}
    </Table>
  );
}

interface CreateRoleProps {
  readonly branch: Branch;
  readonly onClose: () => void;
  readonly onMade: (name: string, password: string) => void;
}

function CreateRole({ branch, onClose, onMade }: CreateRoleProps) {
  const form = useForm({
    initial: { name: '', canLogIn: true },
    send: ({ name, canLogIn }) => {
      const role = { name, ...(canLogIn ? {} : { no_login: true }) };
      return api<CreateProjectBranchRoleReply>('POST', pathOf(branch), { body: { role } });
    },
    refresh: [['project', branch.project_id]],
    onDone: ({ role }) => (role.password === undefined ? onClose() : onMade(role.name, role.password)),
  });
  return (
    <FormDialog title="New role" submit="Create role" form={form} disabled={form.values.name === ''} onClose={onClose}>
      <TextField label="Name" {...form.field('name')} maxLength={63} autoFocus />
      <CheckField label="Can log in, with a password" {...form.check('canLogIn')} />
    </FormDialog>
  );
}

interface OfRole {
  readonly branch: Branch;
  readonly role: Role;
  readonly onClose: () => void;
}

function ResetPassword(props: OfRole & { readonly onReset: (name: string, password: string) => void }) {
  const { branch, role, onClose, onReset } = props;
  const path = `${pathOf(branch)}/${encodeURIComponent(role.name)}/reset_password`;
  const reset = useConfirm({
    send: () => api<ResetProjectBranchRolePasswordReply>('POST', path),
    refresh: [['project', branch.project_id]],
    onDone: ({ role: changed }) => onReset(changed.name, changed.password ?? ''),
  });
  return (
    <ConfirmDialog title="Reset password" submit="Reset password" form={reset} onClose={onClose}>
      <p>Clients that connect as {role.name} with the old password are refused from now on.</p>
    </ConfirmDialog>
  );
}

function DeleteRole({ branch, role, onClose }: OfRole) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', `${pathOf(branch)}/${encodeURIComponent(role.name)}`),
    refresh: [['project', branch.project_id]],
    done: `Role ${role.name} is deleted.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog title="Delete role" submit="Delete role" typed={role.name} form={remove} onClose={onClose}>
      <p>Nobody can connect as {role.name} any more.</p>
    </ConfirmDialog>
  );
}
