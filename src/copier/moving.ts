/**
 * What `catnap move` needs of the two servers beside the copy of each database: what stands against a move, and what
 * belongs to no database, which are roles, their members and their settings.
 */
import { quoteIdentifier, quoteLiteral } from '../compute/server/sql-text.ts';
import { type CopyReport, copyDatabase } from './copy.ts';
import { CopyFailure, CopyPaused, isDenied, wordsOf } from './failure.ts';
import type { Report } from './progress.ts';
import { dropReplication, whyNotReplicated, whyTablesNotReplicated } from './replication.ts';
import { openPlace, parsePlace, reserve, type Session, type Side, type Sql } from './session.ts';

export interface MoveFacts {
  readonly bytes: number;
  /** The end of a sentence; null if changes can be followed. */
  readonly whyNotReplicated: string | null;
  /** As if the server did permit it. */
  readonly whyTablesNotReplicated: string | null;
  readonly largeObjects: number;
  /** They write without a session that could be ended. */
  readonly subscriptions: readonly string[];
  readonly publications: readonly string[];
  /** Logical replication slots of others. */
  readonly slots: readonly string[];
}

export async function inspectDatabase(url: string): Promise<MoveFacts> {
  return inPlace('source', url, async (session, sql) => {
    const [row] = await session<
      (Omit<MoveFacts, 'bytes' | 'whyNotReplicated' | 'whyTablesNotReplicated'> & { bytes: string })[]
    >`
      SELECT pg_catalog.pg_database_size(current_database()) AS bytes,
             (SELECT count(*)::int FROM pg_catalog.pg_largeobject_metadata) AS "largeObjects",
             ARRAY(SELECT subname::text FROM pg_catalog.pg_subscription JOIN pg_catalog.pg_database d ON d.oid = subdbid
                    WHERE d.datname = current_database() AND subenabled ORDER BY 1) AS subscriptions,
             ARRAY(SELECT pubname::text FROM pg_catalog.pg_publication
                    WHERE pubname !~ '^catnap_import_' ORDER BY 1) AS publications,
             ARRAY(SELECT slot_name::text FROM pg_catalog.pg_replication_slots
                    WHERE database = current_database() AND slot_name !~ '^catnap_import_' ORDER BY 1) AS slots`;
    if (row === undefined) throw new CopyFailure('the source does not answer');
    return {
      ...row,
      bytes: Number(row.bytes),
      whyNotReplicated: await whyNotReplicated(sql),
      whyTablesNotReplicated: await whyTablesNotReplicated(sql),
    };
  });
}

export interface MovedRole {
  readonly name: string;
  readonly canLogin: boolean;
  readonly inherits: boolean;
  readonly connectionLimit: number;
  readonly replicates: boolean;
  /** It may make databases and roles, as roles do that are made over the API. */
  readonly isOfApi: boolean;
}

export interface MovedRoles {
  readonly roles: readonly MovedRole[];
  readonly memberships: readonly { readonly role: string; readonly member: string; readonly isAdmin: boolean }[];
  readonly settings: readonly MovedSetting[];
}

/** Of a database, of a role, or of a role in a database. */
export interface MovedSetting {
  readonly database: string | null;
  readonly role: string | null;
  /** `name=value`, as Postgres keeps it. */
  readonly text: string;
}

/** `names` are the roles that are the tenant's. */
export async function readMovedRoles(url: string, names: readonly string[]): Promise<MovedRoles> {
  return inPlace('source', url, async (session) => {
    // Before Postgres 16 no role of Catnap's may make roles.
    const roles = await session<MovedRole[]>`
      SELECT rolname AS name, rolcanlogin AS "canLogin", rolinherit AS inherits, rolconnlimit AS "connectionLimit",
             rolreplication AS replicates,
             rolcreatedb AND (rolcreaterole OR current_setting('server_version_num')::int < 160000) AS "isOfApi"
        FROM pg_catalog.pg_roles WHERE rolname = ANY (${[...names]}::text[]) ORDER BY oid`;
    const memberships = await session<{ role: string; member: string; isAdmin: boolean }[]>`
      SELECT r.rolname AS role, m.rolname AS member, bool_or(a.admin_option) AS "isAdmin"
        FROM pg_catalog.pg_auth_members a
        JOIN pg_catalog.pg_roles r ON r.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
       WHERE m.rolname = ANY (${[...names]}::text[]) AND r.rolname = ANY (${[...names]}::text[])
       GROUP BY 1, 2 ORDER BY 1, 2`;
    const settings = await session<MovedSetting[]>`
      SELECT d.datname AS database, r.rolname AS role, unnest(s.setconfig) AS text
        FROM pg_catalog.pg_db_role_setting s
        LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
        LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
       WHERE (s.setrole = 0 OR r.rolname = ANY (${[...names]}::text[])) AND (s.setdatabase = 0 OR d.datname IS NOT NULL)
         AND (s.setrole <> 0 OR s.setdatabase <> 0)
       ORDER BY 1, 2, 3`;
    return { roles: [...roles], memberships: [...memberships], settings: [...settings] };
  });
}

export interface RolesToMake extends Pick<MovedRoles, 'roles' | 'memberships'> {
  /** By name, of those that log in. */
  readonly verifiers: ReadonlyMap<string, string>;
}

/** Those that are not made over the API. Can be repeated. */
export async function makeMovedRoles(url: string, { roles, memberships, verifiers }: RolesToMake): Promise<void> {
  const wanted = roles.filter(({ isOfApi }) => !isOfApi);
  if (wanted.length === 0) return;
  await inPlace('target', url, async (session) => {
    const there = await session<{ name: string }[]>`SELECT rolname AS name FROM pg_catalog.pg_roles`;
    const known = new Set(there.map(({ name }) => name));
    const [me] = await session<{ name: string }[]>`SELECT current_user AS name`;
    await session.unsafe('BEGIN');
    for (const role of wanted) await makeRole(session, role, known.has(role.name), verifiers.get(role.name));
    const made = new Set(wanted.map(({ name }) => name));
    // The role that makes them is a member and the administrator of each already.
    for (const { role, member, isAdmin } of memberships.filter((link) => made.has(link.role))) {
      if (member === me?.name) continue;
      const admin = isAdmin ? ' WITH ADMIN OPTION' : '';
      await session.unsafe(`GRANT ${quoteIdentifier(role)} TO ${quoteIdentifier(member)}${admin}`);
    }
    await session.unsafe('COMMIT');
  });
}

async function makeRole(session: Session, role: MovedRole, isThere: boolean, verifier: string | undefined) {
  const attributes = [
    role.canLogin ? 'LOGIN' : 'NOLOGIN',
    role.inherits ? 'INHERIT' : 'NOINHERIT',
    `CONNECTION LIMIT ${role.connectionLimit}`,
    verifier === undefined ? '' : `PASSWORD ${quoteLiteral(verifier)}`,
  ];
  const name = quoteIdentifier(role.name);
  await session.unsafe(`${isThere ? 'ALTER' : 'CREATE'} ROLE ${name} ${attributes.join(' ')}`);
  // To give it what it owns.
  await session.unsafe(`GRANT ${name} TO CURRENT_USER`);
}

/** These keep lists of quoted names; as one text such a list would be one name. */
const listSettings = ['search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries'];

/** Returns sentences about those that the login of the URL may not make. */
export async function makeMovedSettings(url: string, settings: readonly MovedSetting[]): Promise<string[]> {
  return inPlace('target', url, async (session) => {
    const notes: string[] = [];
    for (const { database, role, text } of settings) {
      const [name = '', ...rest] = text.split('=');
      const value = rest.join('=');
      const on = role === null ? `DATABASE ${quoteIdentifier(database ?? '')}` : `ROLE ${quoteIdentifier(role)}`;
      const where = role !== null && database !== null ? ` IN DATABASE ${quoteIdentifier(database)}` : '';
      const parameter = name.split('.').map(quoteIdentifier).join('.');
      const given = listSettings.includes(name.toLowerCase()) && value !== '' ? value : quoteLiteral(value);
      await session.unsafe(`ALTER ${on}${where} SET ${parameter} TO ${given}`).catch((error: unknown) => {
        if (!isDenied(error)) throw new CopyFailure(`a setting cannot be made in the target: ${wordsOf(error)}`);
        notes.push(`the setting ${name} of ${role ?? database} was left out: ${wordsOf(error)}`);
      });
    }
    return notes;
  });
}

export interface MoveCopyRequest {
  readonly source: string;
  readonly target: string;
  /** The name of the source database before it was closed to others, if it is. */
  readonly knownAs?: string;
  readonly method: 'replication' | 'copy';
  readonly withoutLargeObjects: boolean;
  /** Called when the target has what the source has; the copy pauses when it resolves. Without it, it is finished. */
  readonly untilPause?: () => Promise<void>;
}

/** Null where it has paused. */
export async function copyForMove(request: MoveCopyRequest, report: Report): Promise<CopyReport | null> {
  const { untilPause, ...others } = request;
  const whenCaughtUp = async () => {
    await untilPause?.();
    if (untilPause !== undefined) throw new CopyPaused('paused');
  };
  return copyDatabase({ ...others, whenCaughtUp, hasRoles: true, keepsRecord: true }, report).catch((error) => {
    if (error instanceof CopyPaused) return null;
    throw error;
  });
}

/** Ends what a copy that is given up has in the source: its slot, for which the source keeps its log. */
export async function abandonCopy(url: string): Promise<void> {
  await inPlace('source', url, async (session, sql) => {
    const slots = await session<{ name: string }[]>`
      SELECT slot_name::text AS name FROM pg_catalog.pg_replication_slots
       WHERE database = current_database() AND slot_name ~ '^catnap_import_'
      UNION SELECT pubname::text FROM pg_catalog.pg_publication WHERE pubname ~ '^catnap_import_'`;
    for (const { name } of slots) await dropReplication(sql, name);
  });
}

async function inPlace<T>(side: Side, url: string, work: (session: Session, sql: Sql) => Promise<T>): Promise<T> {
  const place = parsePlace(side, url);
  const sql = openPlace(place);
  try {
    const session = await reserve(sql, place);
    try {
      return await work(session, sql);
    } finally {
      session.release();
    }
  } catch (error) {
    throw error instanceof CopyFailure ? error : new CopyFailure(`the ${side} refuses: ${wordsOf(error)}`);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
