/**
 * The roles that a database needs: owners, those with rights or policies in it, and members of these. Superusers, and
 * the role that copies, become the role that copies in the target: what was theirs belongs to whoever runs the copy.
 */
import { quoteLiteral } from '../compute/server/sql-text.ts';
import { isDenied, wordsOf } from './failure.ts';
import type { Session } from './session.ts';

export interface RoleAttributes {
  readonly canLogin: boolean;
  readonly inherits: boolean;
  readonly connectionLimit: number;
  readonly createsDatabases: boolean;
  readonly createsRoles: boolean;
  readonly replicates: boolean;
}

interface SourceRole extends RoleAttributes {
  /** As pg_dump writes it: quoted where that is needed. */
  readonly quoted: string;
  readonly isSuperuser: boolean;
  readonly isCopying: boolean;
}

export interface RolePlan {
  readonly roles: readonly SourceRole[];
  /** What roles of the source are called in the target, where that differs. */
  readonly names: ReadonlyMap<string, string>;
  /** A role and one of its members. */
  readonly memberships: readonly { readonly role: string; readonly member: string }[];
  /** Null where the source does not show them. */
  readonly verifiers: ReadonlyMap<string, string> | null;
}

/** Superusers are all in it: what the first one of a server owns is recorded nowhere. */
export async function readRoles(source: Session, targetUser: string): Promise<RolePlan> {
  const all = await source<SourceRole[]>`
    WITH RECURSIVE named(oid) AS (
      SELECT d.refobjid FROM pg_catalog.pg_shdepend d
       WHERE d.refclassid = 'pg_catalog.pg_authid'::regclass
         AND d.dbid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
      UNION SELECT m.member FROM pg_catalog.pg_auth_members m JOIN named n ON n.oid = m.roleid)
    SELECT DISTINCT quote_ident(r.rolname) AS quoted, r.rolsuper AS "isSuperuser", r.rolname = current_user AS "isCopying",
           r.rolcanlogin AS "canLogin", r.rolinherit AS inherits, r.rolconnlimit AS "connectionLimit",
           r.rolcreatedb AS "createsDatabases", r.rolcreaterole AS "createsRoles", r.rolreplication AS replicates
      FROM pg_catalog.pg_roles r
     WHERE (r.oid IN (SELECT oid FROM named) OR r.rolname = current_user OR r.rolsuper) AND r.rolname !~ '^pg_'
     ORDER BY 1`;
  const isTaken = ({ isSuperuser, isCopying }: SourceRole) => isSuperuser || isCopying;
  const roles = all.filter((role) => !isTaken(role));
  const wanted = new Set(roles.map(({ quoted }) => quoted));
  const links = await source<{ role: string; member: string }[]>`
    SELECT DISTINCT quote_ident(r.rolname) AS role, quote_ident(m.rolname) AS member
      FROM pg_catalog.pg_auth_members a
      JOIN pg_catalog.pg_roles r ON r.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member ORDER BY 1, 2`;
  return {
    roles,
    names: new Map(all.filter(isTaken).map(({ quoted }) => [quoted, targetUser])),
    memberships: links.filter(({ role, member }) => wanted.has(role) && wanted.has(member)),
    verifiers: await readVerifiers(source),
  };
}

/** Superusers alone read them. */
async function readVerifiers(source: Session): Promise<ReadonlyMap<string, string> | null> {
  await source.unsafe('SAVEPOINT verifiers');
  try {
    const rows = await source<{ quoted: string; verifier: string }[]>`
      SELECT quote_ident(rolname) AS quoted, rolpassword AS verifier FROM pg_catalog.pg_authid
       WHERE rolpassword IS NOT NULL`;
    return new Map(rows.map(({ quoted, verifier }) => [quoted, verifier]));
  } catch (error) {
    if (!isDenied(error)) throw error;
    await source.unsafe('ROLLBACK TO SAVEPOINT verifiers');
    return null;
  }
}

/** In the transaction of the target. Returns sentences about what differs. */
export async function makeRoles(tx: Session, plan: RolePlan): Promise<string[]> {
  const { roles, memberships, verifiers } = plan;
  const notes: string[] = [];
  const there = await tx<{ quoted: string }[]>`SELECT quote_ident(rolname) AS quoted FROM pg_catalog.pg_roles`;
  const known = new Set(there.map(({ quoted }) => quoted));
  const own = await readOwnRights(tx);
  for (const role of roles) {
    if (known.has(role.quoted)) {
      notes.push(`role ${role.quoted} was there already, and was left as it is`);
      continue;
    }
    const verifier = verifiers?.get(role.quoted);
    const usable = verifier?.startsWith('SCRAM-SHA-256$') ? verifier : undefined;
    await tx.unsafe(`CREATE ROLE ${role.quoted} ${attributesOf(role, own, usable)}`);
    // To give it what it owns.
    await tx.unsafe(`GRANT ${role.quoted} TO CURRENT_USER`);
    if (role.canLogin && usable === undefined)
      notes.push(`role ${role.quoted} has no password yet: ${whyNone(verifier)}`);
  }
  for (const link of memberships) notes.push(...(await makeMember(tx, link)));
  return notes;
}

interface OwnRights {
  readonly name: string;
  readonly databases: boolean;
  readonly roles: boolean;
  readonly replicates: boolean;
}

/** A role gives others no attribute that it has not. */
export async function readOwnRights(session: Session): Promise<OwnRights> {
  const [own] = await session<OwnRights[]>`
    SELECT rolname AS name, rolcreatedb OR rolsuper AS databases, rolcreaterole OR rolsuper AS roles,
           rolreplication OR rolsuper AS replicates FROM pg_catalog.pg_roles WHERE rolname = current_user`;
  if (own === undefined) throw new Error('BUG: a session without a role');
  return own;
}

export function attributesOf(role: RoleAttributes, own: OwnRights, verifier: string | undefined): string {
  return [
    role.canLogin ? 'LOGIN' : 'NOLOGIN',
    role.inherits ? 'INHERIT' : 'NOINHERIT',
    `CONNECTION LIMIT ${role.connectionLimit}`,
    role.createsDatabases && own.databases ? 'CREATEDB' : '',
    role.createsRoles && own.roles ? 'CREATEROLE' : '',
    role.replicates && own.replicates ? 'REPLICATION' : '',
    verifier === undefined ? '' : `PASSWORD ${quoteLiteral(verifier)}`,
  ].join(' ');
}

/** Roles that the target had before may not be for the role that copies to grant. */
async function makeMember(tx: Session, { role, member }: RolePlan['memberships'][number]): Promise<string[]> {
  await tx.unsafe('SAVEPOINT member');
  try {
    await tx.unsafe(`GRANT ${role} TO ${member}`);
    return [];
  } catch (error) {
    if (!isDenied(error)) throw error;
    await tx.unsafe('ROLLBACK TO SAVEPOINT member');
    return [`role ${member} was not made a member of ${role}: ${wordsOf(error)}`];
  }
}

const whyNone = (verifier: string | undefined) =>
  verifier === undefined ? 'the source does not show it' : 'it is kept in a form that cannot be used here (md5)';
