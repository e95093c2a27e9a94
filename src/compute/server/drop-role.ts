/**
 * Drops a role, even when it owns objects. What it owns inside a database goes to that database's owner, as on the
 * hosted service. That takes a session inside the tenant's database, which Catnap's superuser must not enter: a janitor
 * role is made, a member of just the two roles concerned, and dropped afterwards. Any code of the tenant's that runs
 * there has only the rights that the tenant already had.
 */

import { randomBytes } from 'node:crypto';
import { CatnapError, withDetails } from '../../lib/errors.ts';
import { newSecret } from '../../lib/ids.ts';
import { buildVerifier } from '../../lib/scram-verifier.ts';
import { adminRole, adminScramIterations } from '../interface/own-logins.ts';
import { type EnterAs, type Session, sqlState } from './admin-session.ts';
import { quoteIdentifier, quoteLiteral } from './sql-text.ts';

/** A random name, so that no tenant can have created the role first and kept control of it. */
export const janitorPattern = '^catnap_janitor_[0-9a-f]{16}$';

export const janitorName = () => `catnap_janitor_${randomBytes(8).toString('hex')}`;

const dependentObjects = '2BP01';

export async function dropRole(sql: Session, name: string, enterAs: EnterAs): Promise<void> {
  const [role] = await sql`SELECT FROM pg_roles WHERE rolname = ${name}`;
  if (!role) return;
  await refuseDatabaseOwner(sql, name);
  await sql.unsafe(`ALTER ROLE ${quoteIdentifier(name)} NOLOGIN`);
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${name}`;
  if (await dropped(sql, name)) return;
  await handOver(sql, name, enterAs);
  const left = await dropped(sql, name);
  if (!left) {
    throw new CatnapError('conflict', withDetails('role still owns objects', { role_name: name }));
  }
}

/** False when something still depends on the role. */
async function dropped(sql: Session, name: string): Promise<boolean> {
  try {
    await sql.unsafe(`DROP ROLE IF EXISTS ${quoteIdentifier(name)}`);
    return true;
  } catch (error) {
    if (sqlState(error) === dependentObjects) return false;
    throw error;
  }
}

async function refuseDatabaseOwner(sql: Session, name: string): Promise<void> {
  const [owned] = await sql<{ datname: string }[]>`
    SELECT datname FROM pg_database WHERE pg_get_userbyid(datdba) = ${name} ORDER BY datname LIMIT 1`;
  if (!owned) return;
  const details = { role_name: name, database_name: owned.datname };
  throw new CatnapError('conflict', withDetails('role owns a database', details));
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
      await enterAs({ username: janitor, password, database }, async (inside) => {
        await inside.unsafe(`REASSIGN OWNED BY ${from} TO ${quoteIdentifier(owner)}; DROP OWNED BY ${from}`);
      });
    }
  } finally {
    await sql.unsafe(`DROP ROLE IF EXISTS ${janitor}`);
  }
}

/** Also removes janitors that a killed Catnap left behind. */
async function makeJanitor(sql: Session, password: string): Promise<string> {
  const leftovers = await sql<{ name: string }[]>`
    SELECT rolname AS name FROM pg_roles
    WHERE rolname ~ ${janitorPattern} AND (rolvaliduntil IS NULL OR rolvaliduntil < now())`;
  for (const { name } of leftovers) await dropped(sql, name);
  const janitor = janitorName();
  const verifier = buildVerifier(password, randomBytes(16), adminScramIterations);
  await sql.unsafe(`CREATE ROLE ${janitor} LOGIN PASSWORD ${quoteLiteral(verifier)}`);
  return janitor;
}
