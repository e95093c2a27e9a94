/**
 * Drops a role, even when it owns objects. What it owns inside a database goes to that database's owner, as on the
 * hosted service. A janitor does that, as a member of just the two roles concerned.
 */

import { withDetails } from '../../lib/errors.ts';
import { newSecret } from '../../lib/ids.ts';
import { adminRole } from '../interface/own-logins.ts';
import { ServerRefusalError } from '../interface/refusal.ts';
import { type EnterAs, type Session, shielded } from './admin-session.ts';
import { dependentObjects, dropped, makeJanitor } from './janitor.ts';
import { endSessionsOf } from './role-sessions.ts';
import { quoteIdentifier } from './sql-text.ts';

export async function dropRole(sql: Session, name: string, enterAs: EnterAs): Promise<void> {
  const [role] = await sql`SELECT FROM pg_roles WHERE rolname = ${name}`;
  if (!role) return;
  await refuseDatabaseOwner(sql, name);
  await sql.unsafe(`ALTER ROLE ${quoteIdentifier(name)} NOLOGIN`);
  await endSessionsOf(sql, name);
  if (await dropped(sql, name)) return;
  await handOver(sql, name, enterAs);
  const left = await dropped(sql, name);
  if (!left) {
    throw new ServerRefusalError(withDetails('role still owns objects', { role_name: name }), dependentObjects);
  }
}

async function refuseDatabaseOwner(sql: Session, name: string): Promise<void> {
  const [owned] = await sql<{ datname: string }[]>`
    SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = ${name} ORDER BY datname LIMIT 1`;
  if (!owned) return;
  const details = { role_name: name, database_name: owned.datname };
  throw new ServerRefusalError(withDetails('role owns a database', details), dependentObjects);
}

async function handOver(sql: Session, name: string, enterAs: EnterAs): Promise<void> {
  const databases = await sql<{ database: string; owner: string }[]>`
    SELECT datname AS database, pg_get_userbyid(datdba) AS owner
    FROM pg_database
    WHERE datallowconn AND datconnlimit <> -2 AND pg_get_userbyid(datdba) <> ${adminRole}`;
  const password = newSecret();
  const janitor = await makeJanitor(sql, password);
  try {
    const members = new Set([name, ...databases.map(({ owner }) => owner)]);
    for (const member of members) await sql.unsafe(`GRANT ${quoteIdentifier(member)} TO ${janitor}`);
    for (const { database, owner } of databases) {
      const from = quoteIdentifier(name);
      await enterAs(await shielded(sql, { username: janitor, password, database }), async (inside) => {
        await inside.unsafe(`REASSIGN OWNED BY ${from} TO ${quoteIdentifier(owner)}; DROP OWNED BY ${from}`);
      });
    }
  } finally {
    await dropped(sql, janitor);
  }
}
