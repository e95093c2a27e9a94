/** The data of a branch in the fake driver: roles, databases and tables of users. */

import { withDetails } from '../../lib/errors.ts';
import type { ReplicationSlot, ServerCatalog } from '../../lib/model.ts';
import type { ChangesAfter, UserChange, UsersTable } from '../../lib/users-sync.ts';
import type { BranchReceipt, CatalogChange, DesiredRole } from '../interface/driver.ts';
import { ServerRefusalError } from '../interface/refusal.ts';
import type { FakeLog, FakeUsers } from './history.ts';

export interface FakeBranch {
  readonly projectId: string;
  readonly pgVersion: number;
  readonly receipt: BranchReceipt;
  readonly roles: Map<string, DesiredRole>;
  /** Owner by database name. */
  readonly databases: Map<string, string>;
  /** Tables of users by database name. */
  readonly users: Map<string, FakeUsers>;
  /** Whether its roles were given what logical replication needs. */
  replicates: boolean;
  /** A copy that was cut off from its source's publishers. */
  isDetached: boolean;
  readonly log: FakeLog;
  /** Set by tests. */
  slots: readonly ReplicationSlot[];
}

export async function syncFakeUsers(
  { databases, users }: FakeBranch,
  { database }: UsersTable,
  changesAfter: ChangesAfter,
): Promise<number> {
  if (!databases.has(database)) throw new Error(`the database ${database} does not exist`);
  for (;;) {
    const { position = 0, rows = new Map<string, UserChange>() } = users.get(database) ?? {};
    const changes = await changesAfter(position);
    const next = { position: changes.at(-1)?.seq ?? position, rows: new Map(rows) };
    for (const change of changes) next.rows.set(change.userId, change);
    users.set(database, next);
    if (changes.length === 0) return position;
  }
}

export function applyChange(branch: FakeBranch, change: CatalogChange): void {
  const { roles, databases } = branch;
  branch.replicates ||= change.replication ?? false;
  for (const name of change.dropDatabases) databases.delete(name);
  for (const role of change.roles) roles.set(role.name, { name: role.name, verifier: role.verifier });
  for (const { name, renameFrom, ownerName } of change.databases) {
    if (!roles.has(ownerName)) throw new Error(`role "${ownerName}" does not exist`);
    if (renameFrom !== null && renameFrom !== name && databases.has(renameFrom)) {
      if (databases.has(name)) {
        throw new ServerRefusalError(withDetails('database already exists', { database_name: name }), '42P04');
      }
      databases.delete(renameFrom);
    }
    databases.set(name, ownerName);
  }
  for (const name of change.dropRoles) {
    const owned = [...databases].find(([, owner]) => owner === name);
    if (owned)
      throw new ServerRefusalError(`role owns a database; role_name:"${name}"; database_name:"${owned[0]}"`, '2BP01');
    roles.delete(name);
  }
}

export function catalogOf(branch: FakeBranch): ServerCatalog {
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  const databases = Array.from(branch.databases, ([name, ownerName]) => ({ name, ownerName }));
  return { roles: [...branch.roles.values()].sort(byName), databases: databases.sort(byName) };
}
