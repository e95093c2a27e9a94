/**
 * The table of users inside a tenant's database. Only the creation of the writer role runs as superuser: the writer has
 * no rights of its own, and acts as the owner of the table. A trigger of the tenant's therefore runs with the rights
 * that the tenant had anyway. Every function can be repeated.
 */

import { createHmac, randomBytes } from 'node:crypto';
import type postgres from 'postgres';
import { delay } from '../../lib/clock.ts';
import type { ComputeAddress } from '../../lib/model.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import type { ChangesAfter, UsersTable } from '../../lib/users-sync.ts';
import { adminRole, adminScramIterations, replicationRole } from '../interface/own-logins.ts';
import { adminLogin, type OwnLogin, type Session, shielded, withSession } from './admin-session.ts';
import { isVerifierOf } from './replication.ts';
import { quoteIdentifier, quoteLiteral } from './sql-text.ts';
import { applyChanges, prepareTable } from './users-sync-table.ts';

/** The name is derived from the project's secret: no tenant can have created the role first. */
export const usersWriterPattern = '^catnap_users_[0-9a-f]{16}$';

/** The grantor of roles that superusers grant. What tenants have granted besides is up to them. */
const bootstrapUser = 10;
const statementMs = 10_000;
/** A tenant's triggers may lift the statement timeout, or undo the copying: this limits the whole session. */
const sessionMs = 60_000;

type Transaction = postgres.TransactionSql;

interface Writer extends OwnLogin {
  /** Owner of the database. */
  readonly owner: string;
  /** Roles that it may act as. */
  readonly memberOf: readonly string[];
}

/** Brings the table up to the end of the changes; returns the position reached. */
export async function syncUsers(
  server: { readonly address: ComputeAddress; readonly adminSecret: string },
  table: UsersTable,
  changesAfter: ChangesAfter,
): Promise<number> {
  return enter(server, table.database, async (sql, owner) => {
    let position = await actingAs(sql, owner, (tx) => prepareTable(tx, table));
    for (;;) {
      const reached = position;
      const next = await actingAs(sql, owner, (tx) => applyChanges(tx, table, reached, changesAfter));
      if (next === null) return position;
      position = next;
    }
  });
}

/** Drops the schema with everything in it, and what depends on it. */
export async function dropUsers(
  server: { readonly address: ComputeAddress; readonly adminSecret: string },
  database: string,
): Promise<void> {
  await enter(server, database, (sql, owner) =>
    actingAs(sql, owner, (tx) => tx.unsafe('DROP SCHEMA IF EXISTS neon_auth CASCADE')),
  );
}

/** Opens a session of the writer; `owner` is the role to act as: the owner of the schema, or else of the database. */
async function enter<T>(
  { address, adminSecret }: { readonly address: ComputeAddress; readonly adminSecret: string },
  database: string,
  work: (sql: Session, owner: string) => Promise<T>,
): Promise<T> {
  const asAdmin = <R>(ask: (sql: Session) => Promise<R>) => withSession(address, adminLogin(adminSecret), ask);
  const writer = await asAdmin((sql) => ensureWriter(sql, adminSecret, database));
  const inside = async (sql: Session) => {
    // After the database changes its owner, its contents still belong to the previous one.
    const owner = (await schemaOwner(sql)) ?? writer.owner;
    if (writer.memberOf.join() !== owner) await asAdmin((admin) => actForOnly(admin, writer, owner));
    return work(sql, owner);
  };
  const limited = (sql: Session) => within(sessionMs, inside(sql));
  return withSession(address, writer, limited, { statementMs });
}

/** The caller that opened the session ends it, and with it any statement still running. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const done = new AbortController();
  const tooLong = delay(ms, done.signal).then(() => {
    throw new Error(`the database took longer than ${ms / 1000} seconds`);
  });
  try {
    return await Promise.race([work, tooLong]);
  } finally {
    done.abort();
  }
}

async function schemaOwner(sql: Session): Promise<string | null> {
  const [found] = await sql<{ owner: string }[]>`
    SELECT pg_get_userbyid(coalesce(c.relowner, n.nspowner)) AS owner
    FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'users_sync'
    WHERE n.nspname = 'neon_auth'`;
  return found?.owner ?? null;
}

async function actingAs<T>(sql: Session, owner: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const result = await sql.begin(async (tx) => {
    // A tenant's session that locks the table must not delay other projects' users for long.
    await tx.unsafe(`SET LOCAL ROLE ${quoteIdentifier(owner)}; SET LOCAL lock_timeout = '2s'`);
    return work(tx);
  });
  return result as T;
}

async function ensureWriter(sql: Session, adminSecret: string, database: string): Promise<Writer> {
  const [found] = await sql<{ owner: string }[]>`
    SELECT pg_get_userbyid(datdba) AS owner FROM pg_database
    WHERE datname = ${database} AND datallowconn AND datconnlimit <> -2`;
  if (found === undefined) throw new Error(`the database ${database} does not exist`);
  const derive = (what: string) => createHmac('sha256', adminSecret).update(what);
  const username = `catnap_users_${derive('name of the writer of users').digest('hex').slice(0, 16)}`;
  const password = derive('password of the writer of users').digest('base64url');
  await ensureRole(sql, username, password);
  const [rights] = await sql<{ canConnect: boolean; memberOf: string[] }[]>`
    SELECT has_database_privilege(oid, ${database}, 'CONNECT') AS "canConnect",
           (SELECT coalesce(json_agg(pg_get_userbyid(roleid)), '[]') FROM pg_auth_members
            WHERE member = r.oid AND grantor = ${bootstrapUser}) AS "memberOf"
    FROM pg_roles r WHERE rolname = ${username}`;
  // An owner may have revoked this right from PUBLIC.
  if (!rights?.canConnect) {
    await sql.unsafe(`GRANT CONNECT ON DATABASE ${quoteIdentifier(database)} TO ${quoteIdentifier(username)}`);
  }
  const login = await shielded(sql, { username, password, database });
  return { ...login, owner: found.owner, memberOf: rights?.memberOf ?? [] };
}

async function ensureRole(sql: Session, name: string, password: string): Promise<void> {
  const [found] = await sql<{ asWanted: boolean; hasMembers: boolean; verifier: string | null }[]>`
    SELECT rolcanlogin AND NOT (rolsuper OR rolinherit OR rolcreaterole OR rolcreatedb OR rolreplication
             OR rolbypassrls) AS "asWanted",
           EXISTS (SELECT FROM pg_auth_members WHERE roleid = r.oid) AS "hasMembers",
           rolpassword AS verifier
    FROM pg_authid r WHERE rolname = ${name}`;
  // A tenant created this role, and can change it as a member: not ours to use.
  if (found?.hasMembers) throw new Error(`the role name ${name} is taken by a role that is not Catnap's`);
  if (found?.asWanted && isVerifierOf(password, found.verifier)) return;
  const verifier = buildVerifier(password, randomBytes(16), adminScramIterations);
  const attributes = 'LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS';
  const verb = found ? 'ALTER' : 'CREATE';
  await sql.unsafe(`${verb} ROLE ${quoteIdentifier(name)} ${attributes} PASSWORD ${quoteLiteral(verifier)}`);
}

/** A trigger can change to every role that the writer is a member of, so the writer acts for one owner at a time. */
async function actForOnly(sql: Session, { username, memberOf }: Writer, owner: string): Promise<void> {
  const [found] = await sql<{ isOrdinary: boolean }[]>`
    SELECT NOT (rolsuper OR rolreplication OR rolbypassrls) AND rolname !~ '^pg_'
             AND rolname NOT IN ${sql([adminRole, replicationRole])} AS "isOrdinary"
    FROM pg_roles WHERE rolname = ${owner}`;
  if (!found?.isOrdinary)
    throw new Error(`the schema neon_auth belongs to ${owner}, which is not a role of the project`);
  const writer = quoteIdentifier(username);
  for (const other of memberOf.filter((name) => name !== owner)) {
    await sql.unsafe(`REVOKE ${quoteIdentifier(other)} FROM ${writer}`);
  }
  if (!memberOf.includes(owner)) await sql.unsafe(`GRANT ${quoteIdentifier(owner)} TO ${writer}`);
}
