/** `catnap roles` and `catnap databases`: what is inside a branch, as the API keeps it. */
import type { Command } from 'commander';
import { confirm } from '../kit/confirm.ts';
import { CliFailure } from '../kit/failure.ts';
import type {
  CreateProjectBranchDatabaseReply,
  CreateProjectBranchRoleReply,
  GetProjectBranchRolePasswordReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchRolesReply,
  Operation,
} from '../kit/generated.ts';
import { waitFor } from '../kit/operations.ts';
import { type Named, onBranch, type Waiting, withName, withWait } from '../kit/options.ts';
import type { RunCommand, Session } from '../kit/session.ts';
import { findBranch, type OnBranch } from '../kit/targets.ts';

const roleColumns = { name: 'name', protected: 'protected', created_at: 'created at', updated_at: 'updated at' };
const databaseColumns = { name: 'name', owner_name: 'owner', created_at: 'created at' };

interface CreateRole extends OnBranch, Named, Waiting {
  readonly login: boolean;
}

interface CreateDatabase extends OnBranch, Named, Waiting {
  readonly owner?: string;
  /** What neonctl calls it. */
  readonly ownerName?: string;
}

interface Removal extends OnBranch, Waiting {
  readonly yes?: boolean;
}

export function addRoles(program: Command, run: RunCommand): void {
  const roles = program
    .command('roles')
    .alias('role')
    .description('roles of a branch: list, create, passwords, delete');
  onBranch(roles.command('list').description('list the roles of a branch')).action((options: OnBranch) =>
    run((session) => listRoles(session, options)),
  );
  withWait(onBranch(withName(roles.command('create').description('make a role, and print its password'), 'role')))
    .option('--no-login', 'a role that cannot log in')
    .action((name: string | undefined, options: CreateRole) => run((session) => createRole(session, name, options)));
  onBranch(roles.command('password').description('print the password that Catnap keeps of a role'))
    .argument('<role>', 'name of the role')
    .action((name: string, options: OnBranch) => run((session) => showPassword(session, name, options)));
  withWait(onBranch(roles.command('reset-password').description('give a role a new password, and print it')))
    .argument('<role>', 'name of the role')
    .action((name: string, options: OnBranch & Waiting) => run((session) => resetPassword(session, name, options)));
  withWait(onBranch(roles.command('delete').description('delete a role')))
    .argument('<role>', 'name of the role')
    .action((name: string, options: Removal) => run((session) => remove(session, 'roles', name, options)));
}

export function addDatabases(program: Command, run: RunCommand): void {
  const databases = program
    .command('databases')
    .alias('database')
    .description('databases of a branch: list, create, delete');
  onBranch(databases.command('list').description('list the databases of a branch')).action((options: OnBranch) =>
    run((session) => listDatabases(session, options)),
  );
  withWait(onBranch(withName(databases.command('create').description('make a database'), 'database')))
    .option('--owner <role>', 'the role that owns it (default: the owner of the oldest database)')
    .option('--owner-name <role>', 'the same, as neonctl has it')
    .action((name: string | undefined, options: CreateDatabase) =>
      run((session) => createDatabase(session, name, options)),
    );
  withWait(onBranch(databases.command('delete').description('delete a database with all that is in it')))
    .argument('<database>', 'name of the database')
    .option('--yes', 'do not ask')
    .action((name: string, options: Removal) =>
      run(async (session) => {
        if (!options.yes && !(await confirm(session.parts, `Delete the database ${JSON.stringify(name)}?`))) {
          throw new CliFailure('nothing was deleted');
        }
        return remove(session, 'databases', name, options);
      }),
    );
}

const member = (path: string, kind: string, name: string) => `${path}/${kind}/${encodeURIComponent(name)}`;

async function listRoles(session: Session, options: OnBranch): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const { roles } = await session.client.get<ListProjectBranchRolesReply>(`${path}/roles`);
  session.writer.list(roles, roleColumns, 'There are no roles.');
}

async function createRole(session: Session, given: string | undefined, options: CreateRole): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const body = { role: { name: required(given ?? options.name), ...(!options.login && { no_login: true }) } };
  const made = await session.client.post<CreateProjectBranchRoleReply>(`${path}/roles`, body);
  if (options.wait) await waitFor(session, made.operations);
  session.writer.record(made.role, { name: 'role', password: 'password' });
}

async function showPassword(session: Session, name: string, options: OnBranch): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const reply = await session.client.get<GetProjectBranchRolePasswordReply>(
    `${member(path, 'roles', name)}/reveal_password`,
  );
  session.writer.record({ role: name, ...reply }, { role: 'role', password: 'password' });
}

async function resetPassword(session: Session, name: string, options: OnBranch & Waiting): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const reply = await session.client.post<CreateProjectBranchRoleReply>(
    `${member(path, 'roles', name)}/reset_password`,
    {},
  );
  if (options.wait) await waitFor(session, reply.operations);
  session.writer.record(reply.role, { name: 'role', password: 'password' });
}

async function listDatabases(session: Session, options: OnBranch): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const { databases } = await session.client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  session.writer.list(databases, databaseColumns, 'There are no databases.');
}

async function createDatabase(
  session: Session,
  given: string | undefined,
  options: CreateDatabase,
): Promise<undefined> {
  const { path, branch } = await findBranch(session, options);
  const { databases } = await session.client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  const owner = options.owner ?? options.ownerName ?? databases[0]?.owner_name;
  if (owner === undefined) throw new CliFailure(`branch ${branch.name} has no database yet: pass --owner`);
  const body = { database: { name: required(given ?? options.name), owner_name: owner } };
  const made = await session.client.post<CreateProjectBranchDatabaseReply>(`${path}/databases`, body);
  if (options.wait) await waitFor(session, made.operations);
  session.writer.record(made.database, databaseColumns);
}

async function remove(session: Session, kind: string, name: string, options: Removal): Promise<undefined> {
  const { path } = await findBranch(session, options);
  const reply = await session.client.delete<{ readonly operations?: readonly Operation[] }>(member(path, kind, name));
  if (options.wait) await waitFor(session, reply.operations ?? []);
  session.writer.record({ name }, { name: 'deleted' });
}

function required(name: string | undefined): string {
  if (name === undefined) throw new CliFailure('a name is needed: write it behind the command', 2);
  return name;
}
