/** Databases of a branch: make, rename or give to another owner, delete. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { Branch, Database } from '../api/generated.ts';
import { databasesQuery, rolesQuery } from '../api/queries.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { Card } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';

type Open = { readonly kind: 'create' } | { readonly kind: 'edit' | 'delete'; readonly database: Database };

const pathOf = (branch: Branch) => at`/projects/${branch.project_id}/branches/${branch.id}/databases`;

export function Databases({ branch }: { readonly branch: Branch }) {
  const databases = useQuery(databasesQuery(branch.project_id, branch.id));
  const [open, setOpen] = useState<Open | null>(null);
  const onClose = () => setOpen(null);
  return (
    <Card
      title="Databases"
      actions={
        <Button small onClick={() => setOpen({ kind: 'create' })}>
          <Icon name="plus" /> New database
        </Button>
      }
    >
      <Loaded query={databases}>{(found) => <DatabaseTable databases={found} onOpen={setOpen} />}</Loaded>
      {open?.kind === 'create' && <SaveDatabase branch={branch} onClose={onClose} />}
      {open?.kind === 'edit' && <SaveDatabase branch={branch} database={open.database} onClose={onClose} />}
      {open?.kind === 'delete' && <DeleteDatabase branch={branch} database={open.database} onClose={onClose} />}
    </Card>
  );
}

interface DatabaseTableProps {
  readonly databases: readonly Database[];
  readonly onOpen: (open: Open) => void;
}

function DatabaseTable({ databases, onOpen }: DatabaseTableProps) {
  if (databases.length === 0) return <Empty title="There is no database." />;
  return (
    <Table label="Databases" columns={['Name', 'Owner']} hasActions>
      {databases.map((database) => (
        <tr key={database.id}>
          <td>
            <code>{database.name}</code>
          </td>
          <td>
            <code>{database.owner_name}</code>
          </td>
          <RowActions>
            <RowAction onClick={() => onOpen({ kind: 'edit', database })}>Edit</RowAction>
            <RowAction onClick={() => onOpen({ kind: 'delete', database })}>Delete</RowAction>
          </RowActions>
        </tr>
      ))}
    </Table>
  );
}

interface SaveDatabaseProps {
  readonly branch: Branch;
  readonly database?: Database;
  readonly onClose: () => void;
}

/** Makes one, or changes the one that is given. */
function SaveDatabase({ branch, database, onClose }: SaveDatabaseProps) {
  const roles = useQuery(rolesQuery(branch.project_id, branch.id)).data ?? [];
  const ownerOf = (chosen: string) => (chosen === '' ? (roles[0]?.name ?? '') : chosen);
  const form = useForm({
    initial: { name: database?.name ?? '', owner: database?.owner_name ?? '' },
    send: ({ name, owner }) => {
      const body = { database: { name, owner_name: ownerOf(owner) } };
      return database === undefined
        ? api<object>('POST', pathOf(branch), { body })
        : api<object>('PATCH', `${pathOf(branch)}/${encodeURIComponent(database.name)}`, { body });
    },
    refresh: [['project', branch.project_id]],
    onDone: onClose,
  });
  const ownerName = ownerOf(form.values.owner);
  return (
    <FormDialog
      title={database === undefined ? 'New database' : 'Edit database'}
      submit={database === undefined ? 'Create database' : 'Save'}
      form={form}
      disabled={form.values.name === '' || ownerName === ''}
      onClose={onClose}
    >
      <TextField label="Name" {...form.field('name')} maxLength={63} autoFocus />
      <SelectField
        label="Owner"
        value={ownerName}
        choices={roles.map((role) => ({ value: role.name, text: role.name }))}
        onChange={(owner) => form.set({ owner })}
      />
    </FormDialog>
  );
}

function DeleteDatabase(props: { readonly branch: Branch; readonly database: Database; readonly onClose: () => void }) {
  const { branch, database, onClose } = props;
  const remove = useConfirm({
    send: () => api<object>('DELETE', `${pathOf(branch)}/${encodeURIComponent(database.name)}`),
    refresh: [['project', branch.project_id]],
    done: `Database ${database.name} is deleted.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      title="Delete database"
      submit="Delete database"
      typed={database.name}
      form={remove}
      onClose={onClose}
    >
      <p>All its tables are deleted, on this branch alone. This cannot be undone.</p>
    </ConfirmDialog>
  );
}
