/** Users of the app: the table of the database as it is, making one, deleting one. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { api, at } from '../api/client.ts';
import type { NeonAuthIntegration } from '../api/generated.ts';
import { integrationsQuery } from '../api/queries.ts';
import { runSql, SqlError } from '../api/sql.ts';
import { useConfirm, useForm } from '../forms/use-form.ts';
import { type Target, WithUri } from '../target/target.tsx';
import { Ago, Card, CopyableId } from '../ui/bits.tsx';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog, FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/field.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/states.tsx';
import { RowAction, RowActions, Table } from '../ui/table.tsx';
import { AuthSync } from './auth-sync.tsx';

interface AuthUsersProps {
  readonly projectId: string;
  readonly integration: NeonAuthIntegration;
}

interface AuthUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly createdAt: string;
}

const usersOfPage = 25;
/** Copying takes a moment after a change; polling for longer would keep the compute awake. */
const polling = { everyMs: 1_000, forMs: 20_000 };

export function AuthUsers({ projectId, integration }: AuthUsersProps) {
  return (
    <WithUri projectId={projectId} branchId={integration.branch_id} database={integration.db_name}>
      {(target) => <Users projectId={projectId} integration={integration} target={target} />}
    </WithUri>
  );
}

function Users({ projectId, integration, target }: AuthUsersProps & { readonly target: Target }) {
  const { q = '', page = 1 } = useSearch({ from: '/projects/$projectId/auth' });
  const navigate = useNavigate({ from: '/projects/$projectId/auth' });
  const [isCreating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<AuthUser | null>(null);
  const [changedAt, setChangedAt] = useState(() => Date.now());
  const onChanged = () => setChangedAt(Date.now());
  const refetchInterval = () => (Date.now() - changedAt < polling.forMs ? polling.everyMs : false);
  useQuery({ ...integrationsQuery(projectId), refetchInterval });
  const users = useQuery({
    // Not under the project: a change there, such as a suspend, must not cause a query that wakes the compute again.
    queryKey: ['auth-users', projectId, q, page],
    queryFn: () => readUsers(target.uri, q, page),
    refetchInterval,
    refetchOnWindowFocus: false,
    placeholderData: (previous) => previous,
    retry: false,
  });
  return (
    <Card
      title="Users"
      actions={
        <>
          <Button small onClick={onChanged}>
            Refresh
          </Button>
          <Button small onClick={() => setCreating(true)}>
            <Icon name="plus" /> New user
          </Button>
        </>
      }
    >
      <div className="toolbar">
        <TextField
          label="Search"
          type="search"
          placeholder="Email or name"
          value={q}
          onChange={(value) => navigate({ search: { q: value === '' ? undefined : value }, replace: true })}
        />
      </div>
      <AuthSync projectId={projectId} integration={integration} />
      {isTableMissing(users.error) && <Empty title="The table is being created; it is there in a moment." />}
      {!isTableMissing(users.error) && (
        <Loaded query={users}>
          {(found) => (
            <>
              <UserTable users={found.slice(0, usersOfPage)} search={q} onDelete={setDeleting} />
              <Pages
                page={page}
                hasMore={found.length > usersOfPage}
                onPage={(next) => navigate({ search: (now) => ({ ...now, page: next === 1 ? undefined : next }) })}
              />
            </>
          )}
        </Loaded>
      )}
      {isCreating && <CreateUser projectId={projectId} onMade={onChanged} onClose={() => setCreating(false)} />}
      {deleting !== null && (
        <DeleteUser projectId={projectId} user={deleting} onDeleted={onChanged} onClose={() => setDeleting(null)} />
      )}
    </Card>
  );
}

const isTableMissing = (error: Error | null) => error instanceof SqlError && missingCodes.includes(error.code);
/** No such table, no such schema. */
const missingCodes: readonly string[] = ['42P01', '3F000'];

/** One more than a page holds tells whether there is another page. A deleted user stays in the table for a while. */
async function readUsers(uri: string, search: string, page: number): Promise<readonly AuthUser[]> {
  const query = `
    select id::text, coalesce(email, ''), coalesce(name, ''), to_json(created_at) #>> '{}' from neon_auth.users_sync
    where deleted_at is null and ($1 = '' or position(lower($1) in lower(concat_ws(' ', email, name))) > 0)
    order by created_at desc, id limit ${usersOfPage + 1} offset ${usersOfPage * (page - 1)}`;
  const { rows } = await runSql(uri, query, { params: [search], readOnly: true });
  return rows.map(([id, email, name, createdAt]) => ({
    id: id ?? '',
    email: email ?? '',
    name: name ?? '',
    createdAt: createdAt ?? '',
  }));
}

interface UserTableProps {
  readonly users: readonly AuthUser[];
  readonly search: string;
  readonly onDelete: (user: AuthUser) => void;
}

function UserTable({ users, search, onDelete }: UserTableProps) {
  if (users.length === 0)
    return <Empty title={search === '' ? 'There is nobody yet.' : `Nobody has “${search}” in email or name.`} />;
  return (
    <Table label="Users" columns={['Email', 'Name', 'Id', 'Created']} hasActions>
      {users.map((user) => (
        <tr key={user.id}>
          <td>{user.email}</td>
          <td>{user.name}</td>
          <td>
            <CopyableId id={user.id} label="the user id" />
          </td>
          <td>{user.createdAt !== '' && <Ago at={user.createdAt} />}</td>
          <RowActions>
            <RowAction onClick={() => onDelete(user)}>Delete</RowAction>
          </RowActions>
        </tr>
      ))}
    </Table>
  );
}

interface PagesProps {
  readonly page: number;
  readonly hasMore: boolean;
  readonly onPage: (page: number) => void;
}

function Pages({ page, hasMore, onPage }: PagesProps) {
  if (page === 1 && !hasMore) return null;
  return (
    <nav className="pages" aria-label="Pages of users">
      <Button small disabled={page === 1} onClick={() => onPage(page - 1)}>
        Previous
      </Button>
      <span className="hint">Page {page}</span>
      <Button small disabled={!hasMore} onClick={() => onPage(page + 1)}>
        Next
      </Button>
    </nav>
  );
}

interface CreateUserProps {
  readonly projectId: string;
  readonly onMade: () => void;
  readonly onClose: () => void;
}

function CreateUser({ projectId, onMade, onClose }: CreateUserProps) {
  const form = useForm({
    initial: { email: '', name: '' },
    send: (values) => {
      const name = values.name.trim();
      const body = {
        auth_provider: 'stack',
        project_id: projectId,
        email: values.email.trim(),
        ...(name === '' ? {} : { name }),
      };
      return api<object>('POST', '/projects/auth/user', { body });
    },
    refresh: [],
    done: 'The user is created and appears in the table in a moment.',
    onDone: () => {
      onMade();
      onClose();
    },
  });
  return (
    <FormDialog
      title="New user"
      submit="Create user"
      form={form}
      disabled={form.values.email.trim() === ''}
      onClose={onClose}
    >
      <TextField
        label="Email"
        type="email"
        hint="There is no password at first: “Forgot password” in your app mails a link to set one."
        {...form.field('email')}
        autoFocus
        required
      />
      <TextField label="Name" {...form.field('name')} maxLength={255} />
    </FormDialog>
  );
}

interface DeleteUserProps {
  readonly projectId: string;
  readonly user: AuthUser;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
}

function DeleteUser({ projectId, user, onDeleted, onClose }: DeleteUserProps) {
  const remove = useConfirm({
    send: () => api<object>('DELETE', at`/projects/${projectId}/auth/users/${user.id}`),
    refresh: [],
    done: `${user.email} is deleted.`,
    onDone: () => {
      onDeleted();
      onClose();
    },
  });
  return (
    <ConfirmDialog title="Delete user" submit="Delete user" form={remove} onClose={onClose}>
      <p>{user.email} cannot sign in any more.</p>
    </ConfirmDialog>
  );
}
