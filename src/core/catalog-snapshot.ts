/**
 * All rows about a branch's roles and databases as one value, so that a restore can carry them in its operation from
 * the moment at which the source was copied to the moment at which the copy is put in place. Passwords stay sealed.
 */
import type { JsonValue, Sql } from '../db/client.ts';
import { insertDatabase, moveDatabases, selectAllDatabases } from '../db/databases.ts';
import { insertRole, moveRoles, selectAllRoles } from '../db/roles.ts';
import type { BranchId } from '../lib/ids.ts';
import type { ServerCatalog } from '../lib/model.ts';

export type CatalogSnapshot = {
  readonly roles: readonly {
    readonly name: string;
    readonly verifier: string | null;
    /** Base64 of the sealed password. */
    readonly password: string | null;
    readonly noLogin: boolean;
    readonly protected: boolean;
    /** Missing in what an older version has taken. */
    readonly limited?: boolean;
    readonly applied: boolean;
    readonly pending: boolean;
    readonly droppedAt: string | null;
  }[];
  readonly databases: readonly {
    readonly name: string;
    readonly ownerName: string;
    readonly appliedName: string | null;
    readonly pending: boolean;
    readonly droppedAt: string | null;
  }[];
};

/** Returned as JSON, so that it can be part of an operation's state. */
export async function takeCatalogSnapshot(sql: Sql, branchId: BranchId): Promise<JsonValue> {
  const [roles, databases] = await Promise.all([selectAllRoles(sql, branchId), selectAllDatabases(sql, branchId)]);
  return {
    roles: roles.map(({ password, droppedAt, ...role }) => ({
      name: role.name,
      verifier: role.verifier,
      noLogin: role.noLogin,
      applied: role.applied,
      pending: role.pending,
      protected: role.protected,
      limited: role.limited,
      password: password === null ? null : Buffer.from(password).toString('base64'),
      droppedAt: droppedAt?.toISOString() ?? null,
    })),
    databases: databases.map(({ name, ownerName, appliedName, pending, droppedAt }) => ({
      name,
      ownerName,
      appliedName,
      pending,
      droppedAt: droppedAt?.toISOString() ?? null,
    })),
  };
}

/** Of a server on data of the past: what only the rows know of its roles is taken from the branch as it is now. */
export async function snapshotOf(sql: Sql, branchId: BranchId, seen: ServerCatalog): Promise<JsonValue> {
  const known = new Map((await selectAllRoles(sql, branchId)).map((role) => [role.name, role]));
  const settled = { pending: false, droppedAt: null };
  return {
    roles: seen.roles.map(({ name, verifier }) => ({
      ...settled,
      name,
      verifier,
      password: null,
      noLogin: verifier === null,
      applied: true,
      protected: known.get(name)?.protected ?? false,
      limited: known.get(name)?.limited ?? false,
    })),
    databases: seen.databases.map(({ name, ownerName }) => ({ ...settled, name, ownerName, appliedName: name })),
  };
}

/** Gives a branch these rows; its previous ones move to `keepAs`, or are deleted. */
export async function putCatalogSnapshot(
  sql: Sql,
  branchId: BranchId,
  snapshot: CatalogSnapshot,
  keepAs: BranchId | null,
): Promise<void> {
  await moveRoles(sql, branchId, keepAs);
  await moveDatabases(sql, branchId, keepAs);
  for (const { password, droppedAt, ...role } of snapshot.roles) {
    const sealed = password === null ? null : Buffer.from(password, 'base64');
    await insertRole(sql, { ...role, branchId, password: sealed, droppedAt: dateOf(droppedAt) });
  }
  for (const { droppedAt, ...database } of snapshot.databases) {
    await insertDatabase(sql, { ...database, branchId, droppedAt: dateOf(droppedAt) });
  }
}

const dateOf = (text: string | null) => (text === null ? null : new Date(text));
