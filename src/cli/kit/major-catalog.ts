/** The roles and databases that a copy of a branch in another project begins with. */
import { type ApiClient, ApiRefusal } from './client.ts';
import type {
  CreateProjectBranchDatabaseReply,
  CreateProjectBranchRoleReply,
  ListProjectBranchDatabasesReply,
  ListProjectBranchRolesReply,
} from './generated.ts';
import { waitFor } from './operations.ts';
import type { Session } from './session.ts';

export interface SourceCatalog {
  readonly databases: readonly { readonly name: string; readonly owner: string }[];
  readonly roles: readonly { readonly name: string; readonly hasLogin: boolean }[];
}

/**
 * Of the roles those that Catnap makes: owners of databases, and those whose password it has on record. Roles that were
 * made by SQL may do less than Catnap's, and come along with the databases.
 */
export async function readCatalog(client: ApiClient, path: string): Promise<SourceCatalog> {
  const { databases } = await client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  const { roles } = await client.get<ListProjectBranchRolesReply>(`${path}/roles`);
  const owners = new Set(databases.map(({ owner_name: owner }) => owner));
  const wanted = [];
  for (const { name, protected: isOfSystem, authentication_method: method } of roles) {
    if (isOfSystem) continue;
    const hasLogin = method !== 'no_login';
    if (owners.has(name) || (hasLogin && (await isOnRecord(client, path, name)))) wanted.push({ name, hasLogin });
  }
  return { databases: databases.map(({ name, owner_name: owner }) => ({ name, owner })), roles: wanted };
}

async function isOnRecord(client: ApiClient, path: string, role: string): Promise<boolean> {
  return client
    .get(`${path}/roles/${encodeURIComponent(role)}/reveal_password`)
    .then(() => true)
    .catch((error) => {
      if (error instanceof ApiRefusal && error.status === 412) return false;
      throw error;
    });
}

/** What is there already is left as it is. */
export async function makeCatalog(session: Session, path: string, { roles, databases }: SourceCatalog): Promise<void> {
  const { client } = session;
  const known = await client.get<ListProjectBranchRolesReply>(`${path}/roles`);
  const there = await client.get<ListProjectBranchDatabasesReply>(`${path}/databases`);
  const isNew = (found: readonly { readonly name: string }[], name: string) => !found.some((one) => one.name === name);
  for (const { name, hasLogin } of roles.filter((role) => isNew(known.roles, role.name))) {
    const role = { name, ...(!hasLogin && { no_login: true }) };
    const { operations } = await client.post<CreateProjectBranchRoleReply>(`${path}/roles`, { role });
    await waitFor(session, operations);
  }
  for (const { name, owner } of databases.filter((database) => isNew(there.databases, database.name))) {
    const database = { name, owner_name: owner };
    const { operations } = await client.post<CreateProjectBranchDatabaseReply>(`${path}/databases`, { database });
    await waitFor(session, operations);
  }
}
