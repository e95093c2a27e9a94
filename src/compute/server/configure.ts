/**
 * The SQL that Catnap runs inside a tenant's server: roles and databases, which are shared catalogs and can be changed
 * from Catnap's own database. A superuser session never enters a tenant's database, because a tenant's code (a trigger,
 * a function in the search path) would run as superuser; janitors, which have to work inside one, are
 * ordinary roles. Every function can be repeated.
 */

import { withDetails } from '../../lib/errors.ts';
import type { ServerCatalog } from '../../lib/model.ts';
import type { CatalogChange, ConfiguredCatalog, DesiredDatabase, DesiredRole } from '../interface/driver.ts';
import { adminDatabase, adminRole, replicationRole, spareDatabase } from '../interface/own-logins.ts';
import { ServerRefusalError } from '../interface/refusal.ts';
import { type Session, sqlState } from './admin-session.ts';
import { makingWay, rollBackIn, type WayMade, type Ways } from './blockers.ts';
import { dropRole } from './drop-role.ts';
import { janitorPattern } from './janitor.ts';
import { grantReplication } from './logical-replication.ts';
import { isOfPlatform } from './platform-roles.ts';
import { endSessionsOf } from './role-sessions.ts';
import { quoteIdentifier, quoteLiteral } from './sql-text.ts';
import { usersWriterPattern } from './users-sync.ts';

const ownRoles: readonly string[] = [adminRole, replicationRole];
const helperPatterns = [new RegExp(janitorPattern), new RegExp(usersWriterPattern)];
const ownDatabases: readonly string[] = [adminDatabase, 'postgres', 'template0', 'template1'];

/** `sql` is a session of Catnap's own login. */
export async function applyCatalogChange(
  sql: Session,
  change: CatalogChange,
  options: { readonly ways: Ways; readonly hasOwnUid: boolean },
): Promise<ConfiguredCatalog> {
  const made: WayMade = { sessions: 0, prepared: [] };
  await makingWay(options.ways, made, () => applyEach(sql, change, { ...options, made }));
  const catalog = await readCatalog(sql);
  return made.sessions + made.prepared.length === 0 ? catalog : { ...catalog, madeWay: made };
}

async function applyEach(
  sql: Session,
  change: CatalogChange,
  { ways, hasOwnUid, made }: { readonly ways: Ways; readonly hasOwnUid: boolean; readonly made: WayMade },
): Promise<void> {
  const clear = (database: string) => rollBackIn(sql, database, ways, made);
  for (const name of change.dropDatabases) await dropDatabase(sql, name, clear);
  const facts = await readFacts(sql, change);
  // Projects from before had closed it; on any server everybody may connect to it.
  if (!facts.isTemplateOpen) await sql`GRANT CONNECT ON DATABASE template1 TO PUBLIC`;
  for (const role of change.roles) await ensureRole(sql, role, facts, change.replication ?? false);
  if (change.replication) await grantReplication(sql, hasOwnUid);
  for (const database of change.databases) await ensureDatabase(sql, database, facts, clear);
  for (const name of change.dropRoles) {
    refuseOwnRole(name);
    await dropRole(sql, name, ways.enterAs);
  }
}

/** Rolls back the prepared transactions of a database. */
type Clear = (database: string) => Promise<void>;

interface RoleFacts {
  readonly name: string;
  readonly verifier: string | null;
  readonly canLogin: boolean;
  readonly createDb: boolean;
  readonly createRole: boolean;
  readonly replicates: boolean;
  /** It inherits, and has none of the rights that no role of a tenant's has. */
  readonly isOrdinary: boolean;
  readonly isOfPlatform: boolean;
}

/** What a change depends on. The client of a new project waits for each round trip, so one reads all of it. */
interface Facts {
  readonly isTemplateOpen: boolean;
  readonly version: number;
  readonly roles: ReadonlyMap<string, RoleFacts>;
  /** The owner of each database that exists, kept up to date by what changes them. */
  readonly owners: Map<string, string>;
}

async function readFacts(sql: Session, change: CatalogChange): Promise<Facts> {
  const roleNames = change.roles.map(({ name }) => name);
  const databaseNames = change.databases.flatMap(({ name, renameFrom }) => [name, renameFrom ?? name]);
  type Found = [{ isTemplateOpen: boolean; version: number }[], RoleFacts[], { name: string; owner: string }[]];
  const [[server], roles, databases] = await sql.unsafe<Found>(`
    SELECT has_database_privilege('public', 'template1', 'CONNECT') AS "isTemplateOpen",
           current_setting('server_version_num')::int AS version;
    SELECT rolname AS name, rolpassword AS verifier, rolcanlogin AS "canLogin", rolcreatedb AS "createDb",
           rolcreaterole AS "createRole", rolreplication AS replicates,
           rolinherit AND NOT (rolsuper OR rolbypassrls) AS "isOrdinary", ${isOfPlatform} AS "isOfPlatform"
    FROM pg_authid WHERE rolname = ANY (${quoteList(roleNames)});
    SELECT datname AS name, pg_get_userbyid(datdba) AS owner
    FROM pg_database WHERE datname = ANY (${quoteList([spareDatabase, ...databaseNames])})`);
  return {
    isTemplateOpen: server?.isTemplateOpen ?? true,
    version: server?.version ?? 0,
    roles: new Map(roles.map((role) => [role.name, role])),
    owners: new Map(databases.map(({ name, owner }) => [name, owner])),
  };
}

const quoteList = (texts: readonly string[]) => `ARRAY[${texts.map(quoteLiteral).join(', ')}]::text[]`;

export async function readCatalog(sql: Session): Promise<ServerCatalog> {
  type Found = [{ name: string; verifier: string | null }[], { name: string; ownerName: string }[]];
  // In one round trip. A role without a SCRAM verifier cannot log in, whatever its LOGIN attribute says: the servers
  // accept nothing else. A connection limit of -2 marks a database whose removal was interrupted.
  const [roles, databases] = await sql.unsafe<Found>(`
    SELECT rolname AS name,
           CASE WHEN rolcanlogin AND rolpassword LIKE 'SCRAM-SHA-256$%' THEN rolpassword END AS verifier
    FROM pg_authid
    WHERE rolname <> ALL (${quoteList(ownRoles)}) AND NOT ${isOfPlatform} AND rolname !~ '^pg_' AND rolname !~ ${quoteLiteral(janitorPattern)}
      AND rolname !~ ${quoteLiteral(usersWriterPattern)}
    ORDER BY rolname;
    SELECT datname AS name, pg_get_userbyid(datdba) AS "ownerName"
    FROM pg_database
    WHERE datname <> ALL (${quoteList(ownDatabases)}) AND datconnlimit <> -2
      AND NOT (datname = ${quoteLiteral(spareDatabase)} AND pg_get_userbyid(datdba) = ${quoteLiteral(adminRole)})
    ORDER BY datname`);
  return {
    roles: roles.map(({ name, verifier }) => ({ name, verifier })),
    databases: databases.map(({ name, ownerName }) => ({ name, ownerName })),
  };
}

/** The verifier of one role that may log in; null when there is none, or no password that the servers accept. */
export async function readVerifier(sql: Session, name: string): Promise<string | null> {
  const [found] = await sql<{ verifier: string }[]>`
    SELECT rolpassword AS verifier FROM pg_authid
    WHERE rolname = ${name} AND rolcanlogin AND rolpassword LIKE 'SCRAM-SHA-256$%'
      AND rolname NOT IN ${sql(ownRoles)} AND rolname !~ '^pg_' AND rolname !~ ${janitorPattern}`;
  return found?.verifier ?? null;
}

async function ensureRole(sql: Session, role: DesiredRole, facts: Facts, replicates: boolean): Promise<void> {
  refuseOwnRole(role.name);
  const wanted = roleAttributes(role, facts.version, replicates);
  const found = facts.roles.get(role.name);
  if (found?.isOfPlatform) throw reservedRole(role.name);
  const isAsWanted =
    found?.isOrdinary &&
    found.verifier === role.verifier &&
    found.canLogin === (role.verifier !== null) &&
    found.createDb === wanted.createDb &&
    found.createRole === wanted.createRole &&
    found.replicates === wanted.replicates;
  const verb = found ? 'ALTER' : 'CREATE';
  // They may have locked the role. After the change come those that have logged in meanwhile with the old password.
  if (role.endSessions) await endSessionsOf(sql, role.name);
  if (!isAsWanted) await sql.unsafe(`${verb} ROLE ${quoteIdentifier(role.name)} ${wanted.text}`);
  if (role.endSessions) await endSessionsOf(sql, role.name);
}

/**
 * Until Postgres 16 CREATEROLE let a role grant itself any other role that is not a superuser, including
 * pg_execute_server_program; on those versions it is withheld.
 */
function roleAttributes(role: DesiredRole, version: number, replication: boolean) {
  const createDb = role.limited !== true;
  const createRole = createDb && version >= 160_000;
  const login = role.verifier === null ? 'NOLOGIN PASSWORD NULL' : `LOGIN PASSWORD ${quoteLiteral(role.verifier)}`;
  const attributes = `${createDb ? 'CREATEDB' : 'NOCREATEDB'} ${createRole ? 'CREATEROLE' : 'NOCREATEROLE'} INHERIT`;
  const replicates = createDb && replication;
  const replicationText = replicates ? 'REPLICATION' : 'NOREPLICATION';
  const text = `${login} ${attributes} NOSUPERUSER ${replicationText} NOBYPASSRLS`;
  return { text, createDb, createRole, replicates };
}

async function ensureDatabase(sql: Session, database: DesiredDatabase, { owners }: Facts, clear: Clear): Promise<void> {
  refuseOwnDatabase(database.name);
  const { name, renameFrom, ownerName } = database;
  const quoted = quoteIdentifier(name);
  const oldOwner = renameFrom === null || renameFrom === name ? undefined : owners.get(renameFrom);
  if (renameFrom !== null && oldOwner !== undefined) {
    refuseOwnDatabase(renameFrom);
    if (owners.has(name)) {
      throw new ServerRefusalError(withDetails('database already exists', { database_name: name }), '42P04');
    }
    await clear(renameFrom);
    await renameDatabase(sql, renameFrom, name);
    owners.delete(renameFrom);
    owners.set(name, oldOwner);
  }
  const owner = owners.get(name);
  if (owner === undefined && owners.get(spareDatabase) === adminRole) {
    const became = `ALTER DATABASE ${spareDatabase} RENAME TO ${quoted}`;
    // One transaction, so that no database of the tenant's name is ever Catnap's.
    await sql.unsafe(`${became}; ALTER DATABASE ${quoted} OWNER TO ${quoteIdentifier(ownerName)}`);
    owners.delete(spareDatabase);
  } else if (owner === undefined) {
    // template0, because it accepts no connections: a session in template1 would make this fail.
    await sql.unsafe(`CREATE DATABASE ${quoted} OWNER ${quoteIdentifier(ownerName)} TEMPLATE template0`);
  } else if (owner !== ownerName) {
    await sql.unsafe(`ALTER DATABASE ${quoted} OWNER TO ${quoteIdentifier(ownerName)}`);
  }
  owners.set(name, ownerName);
}

/**
 * A rename needs the database to itself. It holds a lock that keeps new sessions out while it waits 5 s for old ones,
 * so only those that slip in between our two statements can make it fail, and not for long.
 */
async function renameDatabase(sql: Session, from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${from}`;
    try {
      await sql.unsafe(`ALTER DATABASE ${quoteIdentifier(from)} RENAME TO ${quoteIdentifier(to)}`);
      return;
    } catch (error) {
      if (sqlState(error) !== '55006' || attempt === 5) throw error;
    }
  }
}

async function dropDatabase(sql: Session, name: string, clear: Clear): Promise<void> {
  refuseOwnDatabase(name);
  const quoted = quoteIdentifier(name);
  const [row] = await sql<{ isTemplate: boolean }[]>`
    SELECT datistemplate AS "isTemplate" FROM pg_database WHERE datname = ${name}`;
  if (!row) return;
  // An owner may have marked it as a template, and Postgres then refuses to drop it.
  if (row.isTemplate) await sql.unsafe(`ALTER DATABASE ${quoted} IS_TEMPLATE false`);
  await clear(name);
  await sql.unsafe(`DROP DATABASE IF EXISTS ${quoted} WITH (FORCE)`);
}

const reservedRole = (name: string) =>
  new ServerRefusalError(withDetails('role name is reserved', { role_name: name }), '42939');

function refuseOwnRole(name: string): void {
  if (ownRoles.includes(name) || name.startsWith('pg_') || helperPatterns.some((pattern) => pattern.test(name))) {
    throw reservedRole(name);
  }
}

function refuseOwnDatabase(name: string): void {
  if (ownDatabases.includes(name)) {
    throw new ServerRefusalError(withDetails('database name is reserved', { database_name: name }), '42939');
  }
}
