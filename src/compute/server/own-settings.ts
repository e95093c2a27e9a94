/**
 * Keeps tenants' settings out of Catnap's own sessions. Whoever owns a database can attach settings to it that every
 * session starts with: another role, a search path, a timeout, a library that does not exist. What a client asks for as
 * it connects outranks them, so each session of Catnap's asks for the server's own value of everything attached.
 */

import type postgres from 'postgres';

export type SessionSettings = Readonly<Record<string, string>>;

/** For every session. An owner may have made some of these stricter for the whole server. */
export const ownSettings: SessionSettings = {
  role: 'none',
  // Makes sure that no unqualified name refers to something that a tenant defined.
  search_path: 'pg_catalog',
  default_transaction_read_only: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  standard_conforming_strings: 'on',
  row_security: 'on',
};

/**
 * What a session of `username` in `database` has to ask for besides. `sql` is a session in Catnap's own database, to
 * which no tenant can attach anything. Settings that the server does not know have no effect, and are left out.
 */
export async function settingsAgainst(sql: postgres.Sql, database: string, username: string): Promise<SessionSettings> {
  const attached = await sql<{ name: string; value: string }[]>`
    SELECT name, current_setting(name) AS value
    FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase,
      unnest(s.setconfig) AS line, split_part(line, '=', 1) AS name
    WHERE d.datname = ${database} AND s.setrole = 0 AND current_setting(name, true) IS NOT NULL`;
  const others = Object.fromEntries(attached.map(({ name, value }) => [name.toLowerCase(), value]));
  if ('session_authorization' in others) others.session_authorization = username;
  return { ...others, ...ownSettings };
}

/** As the `options` of a connection. */
export function asOptions(settings: SessionSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`)
    .join(' ');
}
