/**
 * Which roles and databases a copy holds: what the rows said before it was made, corrected by what the server of the
 * source reported while it was copied, or by what a server on the data of a past moment reports.
 */
import type { ServerCatalog } from '../lib/model.ts';
import type { CatalogSnapshot } from './catalog-snapshot.ts';

type Role = CatalogSnapshot['roles'][number];
type Database = CatalogSnapshot['databases'][number];

/**
 * At the head, a change that waits for a server stays pending, and is carried out where the copy is served. In the past
 * there was no such change: what the server reports is all there is. A stored password is kept if it is still the one
 * that the server knows.
 */
export function catalogOfCopy(rows: CatalogSnapshot, seen: ServerCatalog, at: 'head' | 'past'): CatalogSnapshot {
  const waits = (row: { readonly pending: boolean }) => at === 'head' && row.pending;
  const roles = byName(rows.roles);
  const databases = byName(rows.databases);
  const seenRoles = seen.roles.map((role): Role => {
    const row = roles.get(role.name);
    if (row !== undefined && waits(row)) return row;
    return {
      name: role.name,
      verifier: role.verifier,
      password: row?.verifier === role.verifier ? row.password : null,
      noLogin: role.verifier === null,
      protected: row?.protected ?? false,
      limited: row?.limited ?? false,
      applied: true,
      pending: false,
      droppedAt: null,
    };
  });
  const seenDatabases = seen.databases.map((database): Database => {
    const row = databases.get(database.name);
    if (row !== undefined && waits(row)) return row;
    return { ...database, appliedName: database.name, pending: false, droppedAt: null };
  });
  return {
    roles: inOrderOf(rows.roles, [...seenRoles, ...rows.roles.filter((row) => waits(row) && !seenRoles.includes(row))]),
    databases: inOrderOf(rows.databases, [
      ...seenDatabases,
      ...rows.databases.filter((row) => waits(row) && !seenDatabases.includes(row)),
    ]),
  };
}

/** People know their roles and databases in the order in which they were made; new ones come last. */
function inOrderOf<Row extends { readonly name: string }>(rows: readonly Row[], found: readonly Row[]): Row[] {
  const positions = new Map(rows.map(({ name }, position) => [name, position]));
  const positionOf = ({ name }: Row) => positions.get(name) ?? rows.length;
  return [...found].sort((a, b) => positionOf(a) - positionOf(b));
}

/** A name can belong to a row that waits to be dropped and to a newer one; the newer one counts. */
function byName<Row extends { readonly name: string; readonly droppedAt: string | null }>(rows: readonly Row[]) {
  const sorted = [...rows].sort((a, b) => Number(a.droppedAt === null) - Number(b.droppedAt === null));
  return new Map(sorted.map((row) => [row.name, row]));
}
