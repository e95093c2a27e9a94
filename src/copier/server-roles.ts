/** What belongs to no database of a server: the roles that are the tenant's, their members, and `ALTER … SET`. */
import { quoteIdentifier, quoteLiteral } from '../compute/server/sql-text.ts';
import { isDenied, isUnknown, wordsOf } from './failure.ts';
import { attributesOf, type RoleAttributes, readOwnRights } from './roles.ts';
import { inPlace } from './session.ts';

export interface ServerRole extends RoleAttributes {
  readonly name: string;
  /** It may make databases and roles, as roles do that are made over the API. */
  readonly isOfApi: boolean;
}

interface Membership {
  readonly role: string;
  readonly member: string;
  readonly isAdmin: boolean;
  readonly inherits: boolean;
  readonly canSet: boolean;
}

/** Of a database, of a role, or of a role in a database. */
export interface ServerSetting {
  readonly database: string | null;
  readonly role: string | null;
  /** `name=value`, as Postgres keeps it. */
  readonly text: string;
}

export interface ServerRoles {
  readonly roles: readonly ServerRole[];
  readonly memberships: readonly Membership[];
  readonly settings: readonly ServerSetting[];
}

/** `names` are the roles that are the tenant's. */
export async function readServerRoles(url: string, names: readonly string[]): Promise<ServerRoles> {
  return inPlace('source', url, async (session) => {
    // Before Postgres 16 no role of Catnap's may make roles.
    const roles = await session<ServerRole[]>`
      SELECT rolname AS name, rolcanlogin AS "canLogin", rolinherit AS inherits, rolconnlimit AS "connectionLimit",
             rolcreatedb AS "createsDatabases", rolcreaterole AS "createsRoles", rolreplication AS replicates,
             rolcreatedb AND (rolcreaterole OR current_setting('server_version_num')::int < 160000) AS "isOfApi"
        FROM pg_catalog.pg_roles WHERE rolname = ANY (${[...names]}::text[]) ORDER BY oid`;
    // Before Postgres 16 the last two are no columns.
    const memberships = await session<Membership[]>`
      SELECT r.rolname AS role, m.rolname AS member, bool_or(a.admin_option) AS "isAdmin",
             bool_or(coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit)) AS inherits,
             bool_or(coalesce((to_jsonb(a) ->> 'set_option')::boolean, true)) AS "canSet"
        FROM pg_catalog.pg_auth_members a
        JOIN pg_catalog.pg_roles r ON r.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member
       WHERE m.rolname = ANY (${[...names]}::text[]) AND r.rolname = ANY (${[...names]}::text[])
       GROUP BY 1, 2 ORDER BY 1, 2`;
    const settings = await session<ServerSetting[]>`
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

export interface RolesToMake extends Pick<ServerRoles, 'roles' | 'memberships'> {
  /** By name, of those that log in. */
  readonly verifiers: ReadonlyMap<string, string>;
}

/** Those that are not made over the API. Can be repeated. */
export async function makeServerRoles(url: string, { roles, memberships, verifiers }: RolesToMake): Promise<void> {
  const wanted = roles.filter(({ isOfApi }) => !isOfApi);
  if (wanted.length === 0) return;
  await inPlace('target', url, async (session) => {
    const there = await session<{ name: string }[]>`SELECT rolname AS name FROM pg_catalog.pg_roles`;
    const known = new Set(there.map(({ name }) => name));
    const own = await readOwnRights(session);
    await session.unsafe('BEGIN');
    for (const role of wanted) {
      const name = quoteIdentifier(role.name);
      const verb = known.has(role.name) ? 'ALTER' : 'CREATE';
      await session.unsafe(`${verb} ROLE ${name} ${attributesOf(role, own, verifiers.get(role.name))}`);
      // To give it what it owns.
      await session.unsafe(`GRANT ${name} TO CURRENT_USER`);
    }
    const made = new Set(wanted.map(({ name }) => name));
    // The role that makes them is a member and the administrator of each already.
    for (const link of memberships.filter(({ role, member }) => made.has(role) && member !== own.name)) {
      // An administrator may give itself the rest.
      const options = link.isAdmin ? 'ADMIN OPTION' : `INHERIT ${link.inherits}, SET ${link.canSet}`;
      await session.unsafe(`GRANT ${quoteIdentifier(link.role)} TO ${quoteIdentifier(link.member)} WITH ${options}`);
    }
    await session.unsafe('COMMIT');
  });
}

/** These keep lists of quoted names; as one text such a list would be one name. */
const listSettings = ['search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries'];

/** Returns sentences about those that the login of the URL may not make, or that the target does not know. */
export async function makeServerSettings(url: string, settings: readonly ServerSetting[]): Promise<string[]> {
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
        if (!isDenied(error) && !isUnknown(error)) throw error;
        notes.push(`the setting ${name} of ${role ?? database} was left out: ${wordsOf(error)}`);
      });
    }
    return notes;
  });
}
